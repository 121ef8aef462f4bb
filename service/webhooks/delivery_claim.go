package webhooks

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// Address is a webhook address as the sender of its deliveries needs it.
type Address struct {
	ID             string
	OrganizationID string
	IntegrationID  string
	URL            string
	// Secrets sign each delivery, newest first: several while the overlap of a renewal lasts.
	Secrets []string `db:"-"`
	// Sends is false if its deliveries are held: it is off, or its integration may not use the
	// service.
	Sends bool
	// Failing is true if the last attempt failed.
	Failing bool
}

// ClaimRequest is what a dispatcher asks for.
type ClaimRequest struct {
	// Renew also renews the lease.
	Renew bool
	// Limit bounds what is claimed.
	Limit int
	// InFlight are the ids of deliveries that are being sent or recorded, Records their records: a record's own
	// deliveries are sent one after another.
	InFlight, Records []string
}

// Claim is what is pending at one address.
type Claim struct {
	Address Address
	// Deliveries are of different records, in the order in which they were queued.
	Deliveries []RenderedDelivery
	// More is true if others may be due.
	More bool
	// WaitsUntil is when the next one is tried, nil unless the address is failing (outageFailures).
	WaitsUntil *models.Time
}

// addressRow is an address with what decides its deliveries.
type addressRow struct {
	Address
	SecretSealed                          []byte
	PreviousSecret, OlderSecret           []byte
	PreviousSecretUntil, OlderSecretUntil *models.Time
	// Usable is true if its integration may use the service.
	Usable     bool
	ShowPeople bool
	Scopes     []string
	Events     []models.EventType
	// Redelivering is true if a redelivery is unfinished.
	Redelivering bool
	WaitsUntil   *models.Time
	// Epoch is the epoch of the address's lease, 0 without one.
	Epoch int64
}

// Sends is the condition that the address w sends. Otherwise its deliveries are held.
func Sends(w string) string { return `(SELECT sends FROM sending s WHERE s.webhook_id = ` + w + `.id)` }

// Queued is the condition that the open delivery d is due, or will be, if its address sends.
const Queued = `d.queued_at >= (SELECT held_before FROM webhooks WHERE id = d.webhook_id)`

// unusableReason is why the integration of the address w may not use the service, or NULL.
func unusableReason(w string) string {
	return `(SELECT ` + access.UnusableReason + ` FROM integrations i JOIN organizations o ON o.id = i.organization_id
	JOIN plans p ON p.organization_id = i.organization_id WHERE i.id = ` + w + `.integration_id)`
}

// addressQuery loads the address @webhook.
const addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until, h.older_secret, h.older_secret_until,
		s.sends, ` + access.UsableIntegration + ` AS usable,
		EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = h.id AND y.failing_since IS NOT NULL) AS failing,
		(SELECT y.waits_until FROM webhook_health y WHERE y.webhook_id = h.id) AS waits_until,
		'people:read' = ANY (i.scopes) AS show_people, i.scopes, h.events,
		EXISTS (SELECT FROM redeliveries r WHERE r.webhook_id = h.id) AS redelivering,
		coalesce((SELECT m.epoch FROM webhook_leases m WHERE m.webhook_id = h.id), 0) AS epoch
	FROM webhooks h
	JOIN sending s ON s.webhook_id = h.id
	JOIN integrations i ON i.id = h.integration_id
	JOIN organizations o ON o.id = h.organization_id
	JOIN plans p ON p.organization_id = h.organization_id
	WHERE h.id = @webhook`

// indexPlans is store.IndexPlans without bitmaps: these would read all deliveries of an address before a limit.
const indexPlans = store.IndexPlans + `, set_config('enable_bitmapscan', 'off', true)`

const claimColumns = `d.id AS delivery_id, d.record_id, d.event_id, d.generation, d.attempts, d.attempts_before`

// claimQuery reads what is pending, or while the address is failing one delivery at a time.
const claimQuery = `SELECT ` + claimColumns + ` FROM open_deliveries d
	WHERE d.webhook_id = ANY (ARRAY[@webhook]) AND d.id <> ALL (@in_flight::text[]) AND d.record_id <> ALL (@records::text[])
		AND d.queued_at >= (SELECT held_before FROM webhooks WHERE id = @webhook) AND d.status = 'pending'
	ORDER BY d.webhook_id, d.queued_at, d.id
	LIMIT (SELECT CASE WHEN until IS NULL THEN @limit::bigint WHEN until <= @now AND cardinality(@in_flight::text[]) = 0 THEN 1 ELSE 0 END
		FROM (SELECT (SELECT waits_until FROM webhook_health WHERE webhook_id = @webhook) AS until) health)`

// Claim returns what is pending at the lease's address and not in flight, each with its record as it is now. An address
// that does not send has nothing due. An event that it does not subscribe to, or whose record its integration may no longer read, is
// skipped and not returned. An unfinished redelivery continues with its next batch once what is pending has been
// claimed. An unknown address has nothing due. Errors: ErrLeaseLost, unavailable.
func (s *Webhooks) Claim(ctx context.Context, lease Lease, request ClaimRequest) (Claim, error) {
	address, pending, err := s.readPending(ctx, lease, request)
	if errors.Is(err, pgx.ErrNoRows) {
		return Claim{}, nil
	}
	if err != nil {
		return Claim{}, s.Translate(err)
	}
	if address.Epoch > lease.Epoch {
		return Claim{}, ErrLeaseLost
	}
	claim := Claim{WaitsUntil: address.WaitsUntil}
	if claim.Address, err = s.openAddress(address); err != nil || !address.Sends {
		return claim, err
	}
	var due []RenderedDelivery
	records := map[string]bool{}
	for _, d := range pending {
		if records[d.RecordID] {
			claim.More = true
			continue
		}
		records[d.RecordID] = true
		due = append(due, d)
	}
	full := len(pending) == request.Limit
	claim.More = (claim.More || full) && claim.WaitsUntil == nil || address.Redelivering
	if address.Redelivering && !full { // so that new deliveries wait for a batch at most
		if err := s.continueRedelivery(ctx, address.OrganizationID, address.ID); err != nil {
			return claim, err
		}
	}
	if len(due) > 0 {
		claim.Deliveries, err = s.render(ctx, address, due)
	}
	return claim, err
}

// readPending reads an address and what is pending there, in one round trip.
func (s *Webhooks) readPending(ctx context.Context, lease Lease, r ClaimRequest) (address addressRow, pending []RenderedDelivery, err error) {
	now := s.CurrentTime()
	args := pgx.NamedArgs{
		"webhook": lease.WebhookID, "now": now, "limit": r.Limit,
		"in_flight": append([]string{}, r.InFlight...), "records": append([]string{}, r.Records...), // NULL would exclude everything
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	if r.Renew {
		queueRenewal(pipeline, now, lease)
	}
	store.QueueOne(pipeline, &address, pgx.ErrNoRows, addressQuery, args)
	store.QueueAll(pipeline, &pending, claimQuery, args)
	err = s.Pool.SendBatch(ctx, pipeline).Close()
	return address, pending, err
}

// openAddress opens the sealed secrets of an address that are valid now, newest first.
func (s *Webhooks) openAddress(row addressRow) (Address, error) {
	address := row.Address
	sealed, now := [][]byte{row.SecretSealed}, s.Now()
	if until := row.PreviousSecretUntil; until != nil && until.Time.After(now) {
		sealed = append(sealed, row.PreviousSecret)
	}
	if until := row.OlderSecretUntil; until != nil && until.Time.After(now) {
		sealed = append(sealed, row.OlderSecret)
	}
	for _, one := range sealed {
		secret, err := s.Vault.Open(one, row.ID)
		if err != nil {
			return address, err
		}
		address.Secrets = append(address.Secrets, string(secret))
	}
	return address, nil
}
