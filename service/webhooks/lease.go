package webhooks

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
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

// queueRenewal renews leases of different addresses, including any that a crash of the database removed, but none that
// another dispatcher has acquired since.
func queueRenewal(pipeline *pgx.Batch, now models.Time, leases ...Lease) {
	ids, epochs := make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		ids[i], epochs[i] = l.WebhookID, l.Epoch
	}
	pipeline.Queue(`
		INSERT INTO webhook_leases AS m (webhook_id, epoch, leased_until, renewed_at)
		SELECT id, e, $3, clock_timestamp() FROM unnest($1::text[], $2::bigint[]) AS u (id, e) ORDER BY id
		ON CONFLICT (webhook_id) DO UPDATE SET epoch = excluded.epoch, leased_until = excluded.leased_until, renewed_at = excluded.renewed_at
		WHERE m.epoch <= excluded.epoch`, ids, epochs, models.TimeOf(now.Add(LeaseDuration)))
}

// RenewLeases renews the leases of dispatchers that have nothing to send. One that is lost is noticed at the next
// claim. Errors: unavailable.
func (s *Webhooks) RenewLeases(ctx context.Context, leases []Lease) error {
	pipeline := &pgx.Batch{}
	queueRenewal(pipeline, s.CurrentTime(), leases...)
	return s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
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
