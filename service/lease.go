package service

import (
	"context"
	"time"
)

// AcquireLease tells writers that the dispatchers of these addresses poll for new
// deliveries until the time, so that writes need not wake them. Errors: unavailable.
func (s *Service) AcquireLease(ctx context.Context, webhookIDs []string, until time.Time) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO mailboxes (webhook_id, attended_until) SELECT DISTINCT id, $2::timestamptz FROM unnest($1::text[]) id
		ON CONFLICT (webhook_id) DO UPDATE SET attended_until = excluded.attended_until`, webhookIDs, until.UTC())
	return s.translate(err)
}

// ReleaseLease ends the lease of the address: writes wake its workflow again.
// Errors: unavailable.
func (s *Service) ReleaseLease(ctx context.Context, webhookID string) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM mailboxes WHERE webhook_id = $1`, webhookID)
	return s.translate(err)
}
