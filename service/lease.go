package service

import (
	"context"
	"time"
)

// AcquireLease tells writers that the addresses' mailboxes look for new deliveries by
// themselves until the time, so that no poke is needed.
func (s *Service) AcquireLease(ctx context.Context, webhookIDs []string, until time.Time) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO mailboxes (webhook_id, attended_until) SELECT DISTINCT id, $2::timestamptz FROM unnest($1::text[]) id
		ON CONFLICT (webhook_id) DO UPDATE SET attended_until = excluded.attended_until`, webhookIDs, until.UTC())
	return s.translate(err)
}

// ReleaseLease tells writers that the address needs pokes again.
func (s *Service) ReleaseLease(ctx context.Context, webhookID string) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM mailboxes WHERE webhook_id = $1`, webhookID)
	return s.translate(err)
}
