package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// LeaseDuration is the life of a lease after it was acquired or renewed. Its holder
// sends nothing later than that after the last renewal that it began and that succeeded.
const LeaseDuration = 6 * time.Second

// ErrLeaseLost is returned if another dispatcher has acquired the address's lease.
var ErrLeaseLost = errors.New("another dispatcher has taken over the address")

// Lease is a dispatcher's ownership of an address. Only the holder of the highest epoch
// claims deliveries.
type Lease struct {
	WebhookID string
	Epoch     int64
}

// AcquireLease makes the owner, a name for people, the dispatcher of the address. Writes
// see that it polls for new deliveries and do not wake it. A dispatcher that holds the
// lease already loses it: it claims nothing more, and after wait it sends nothing more.
// Errors: unavailable.
func (s *Webhooks) AcquireLease(ctx context.Context, webhookID, owner string) (lease Lease, wait time.Duration, err error) {
	lease.WebhookID = webhookID
	now := s.CurrentTime()
	pipeline := &pgx.Batch{}
	// Acquisitions of one address wait for each other.
	pipeline.Queue(`SELECT pg_advisory_xact_lock(hashtextextended('lease ' || $1, 0))`, webhookID)
	// For how many more seconds the holder before may send what it has claimed, by the database's
	// clock: 0 if it released the address or its lease expired.
	pipeline.Queue(`
		SELECT coalesce(max(greatest(0, $2::float8 - extract(epoch FROM clock_timestamp() - renewed_at))), 0)::float8
		FROM webhook_leases WHERE webhook_id = $1 AND leased_until > $3`, webhookID, LeaseDuration.Seconds(), now).QueryRow(func(row pgx.Row) error {
		var seconds float64
		err := row.Scan(&seconds)
		wait = min(time.Duration(seconds*float64(time.Second)), LeaseDuration)
		return err
	})
	pipeline.Queue(`
		INSERT INTO webhook_leases (webhook_id, leased_until, owner, epoch, renewed_at)
		VALUES ($1, $2, $3, nextval('lease_epochs'), clock_timestamp())
		ON CONFLICT (webhook_id) DO UPDATE SET
			leased_until = excluded.leased_until, owner = excluded.owner, epoch = excluded.epoch, renewed_at = excluded.renewed_at
		RETURNING epoch`, webhookID, now.Add(LeaseDuration), owner).QueryRow(func(row pgx.Row) error { return row.Scan(&lease.Epoch) })
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return lease, wait, err
}

// renewQuery renews leases, including those that a crash of the database removed. It returns
// the addresses whose leases are still held.
const renewQuery = `
	INSERT INTO webhook_leases AS m (webhook_id, epoch, leased_until, renewed_at)
	SELECT id, e, $3, clock_timestamp() FROM unnest($1::text[], $2::bigint[]) AS u (id, e) ORDER BY id
	ON CONFLICT (webhook_id) DO UPDATE SET epoch = excluded.epoch, leased_until = excluded.leased_until, renewed_at = excluded.renewed_at
	WHERE m.epoch <= excluded.epoch
	RETURNING webhook_id`

// RenewLeases renews leases of different addresses and returns those that are lost.
// Errors: unavailable.
func (s *Webhooks) RenewLeases(ctx context.Context, leases []Lease) (lost []Lease, err error) {
	ids, epochs := make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		ids[i], epochs[i] = l.WebhookID, l.Epoch
	}
	rows, err := s.Pool.Query(ctx, renewQuery, ids, epochs, s.CurrentTime().Add(LeaseDuration))
	if err != nil {
		return nil, s.Translate(err)
	}
	held := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { held[id] = true; return nil }); err != nil {
		return nil, s.Translate(err)
	}
	for _, l := range leases {
		if !held[l.WebhookID] {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// ReleaseLease ends the lease: writes wake the address's workflow again. A lost one stays
// with its new holder. It also stores what was counted of the address. Errors: unavailable.
func (s *Webhooks) ReleaseLease(ctx context.Context, lease Lease) error {
	pipeline := &pgx.Batch{}
	hours := s.hours.takeAll(lease.WebhookID)
	queueHours(pipeline, lease.WebhookID, hours)
	pipeline.Queue(`DELETE FROM webhook_leases WHERE webhook_id = $1 AND epoch <= $2`, lease.WebhookID, lease.Epoch)
	err := s.Pool.SendBatch(ctx, pipeline).Close()
	if err != nil {
		s.hours.putBack(lease.WebhookID, hours)
	}
	return s.Translate(err)
}
