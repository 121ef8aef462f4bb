package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// Address is a webhook address as the sender of its deliveries needs it.
type Address struct {
	ID             string
	OrganizationID string
	URL            string
	// Secrets sign each delivery, newest first: two during a rotation's overlap.
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
	// Limit bounds what is claimed, Retries the due retries among that. Without Retries the claim does not look
	// for them.
	Limit, Retries int
	// InFlight are the ids of deliveries that are being sent or recorded, Records their records: a record's own
	// deliveries are sent one after another.
	InFlight, Records []string
}

// Claim is what is due at one address.
type Claim struct {
	Address Address
	// Deliveries are of different records: retries for an eighth of the limit, then first attempts, then other
	// retries, each in the order in which they are due.
	Deliveries []RenderedDelivery
	// More is true if others may be due.
	More bool
	// NextRetryAt is when the next retry is due that is not claimed, nil without one or if the claim did not look.
	NextRetryAt *models.Time
}

// addressRow is an address with what decides its deliveries.
type addressRow struct {
	Address
	IntegrationID                         string
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
	// Epoch is the epoch of the address's lease, 0 without one.
	Epoch int64
}

// Sends is the condition that the address {w} sends. Otherwise its deliveries are held.
const Sends = `(SELECT sends FROM sending s WHERE s.webhook_id = {w}.id)`

// Queued is the condition that the open delivery {d} is due, or will be, if its address sends.
const Queued = `{d}.queued_at >= (SELECT held_before FROM webhooks WHERE id = {d}.webhook_id)`

// unusableReason is why the integration of the address {w} may not use the service, or NULL.
const unusableReason = `(SELECT ` + access.UnusableReason + ` FROM integrations i JOIN organizations o ON o.id = i.organization_id
	JOIN plans p ON p.organization_id = i.organization_id WHERE i.id = {w}.integration_id)`

// addressQuery loads the address @webhook.
const addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until, h.older_secret, h.older_secret_until,
		s.sends, ` + access.UsableIntegration + ` AS usable,
		EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = h.id AND y.failing_since IS NOT NULL) AS failing,
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

const claimColumns = `SELECT d.id AS delivery_id, d.record_id, d.event_id, d.generation, d.attempts, d.attempts_before FROM open_deliveries d
	WHERE d.webhook_id = ANY (ARRAY[@webhook]) AND d.id <> ALL (@in_flight::text[]) AND d.record_id <> ALL (@records::text[])
		AND d.queued_at >= (SELECT held_before FROM webhooks WHERE id = @webhook) `

const (
	claimPendingQuery = claimColumns + `AND d.status = 'pending' ORDER BY d.webhook_id, d.queued_at, d.id LIMIT @limit`
	claimRetriesQuery = claimColumns + `AND d.status = 'retrying' AND d.next_attempt_at <= @now ORDER BY d.webhook_id, d.next_attempt_at, d.id LIMIT @retries`
	nextRetryQuery    = `
	SELECT next_attempt_at FROM open_deliveries
	WHERE webhook_id = ANY (ARRAY[@webhook]) AND status = 'retrying' AND next_attempt_at > @now
	ORDER BY webhook_id, next_attempt_at LIMIT 1`
)

// Claim returns what is due at the lease's address and not in flight, each with its record as it is now. An address
// that does not send has nothing due. An event that it does not subscribe to, or whose record its integration may no longer read, is
// skipped and not returned. An unfinished redelivery continues with its
// next batch once what is pending has been claimed. An unknown address
// has nothing due. Errors: ErrLeaseLost, unavailable.
func (s *Webhooks) Claim(ctx context.Context, lease Lease, request ClaimRequest) (Claim, error) {
	address, pending, retries, next, err := s.readDue(ctx, lease, request)
	if errors.Is(err, pgx.ErrNoRows) {
		return Claim{}, nil
	}
	if err != nil {
		return Claim{}, s.Translate(err)
	}
	if address.Epoch > lease.Epoch {
		return Claim{}, ErrLeaseLost
	}
	claim := Claim{NextRetryAt: next}
	if claim.Address, err = s.openAddress(address); err != nil || !address.Sends {
		return claim, err
	}
	for n := range retries {
		retries[n].Retry = true
	}
	reserved := min(len(retries), max(1, request.Limit/8))
	var due []RenderedDelivery
	records := map[string]bool{}
	for _, d := range slices.Concat(retries[:reserved], pending, retries[reserved:]) {
		if len(due) == request.Limit || records[d.RecordID] {
			claim.More = true
			continue
		}
		records[d.RecordID] = true
		due = append(due, d)
	}
	claim.More = claim.More || len(pending) == request.Limit
	if len(retries) == request.Retries && len(retries) > 0 {
		claim.NextRetryAt = new(s.CurrentTime()) // there may be others
	}
	if address.Redelivering {
		claim.More = true
	}
	if address.Redelivering && len(pending) < request.Limit { // so that new deliveries wait for a batch at most
		if err := s.continueRedelivery(ctx, address.OrganizationID, address.ID); err != nil {
			return claim, err
		}
	}
	if len(due) > 0 {
		claim.Deliveries, err = s.render(ctx, address, due)
	}
	return claim, err
}

// readDue reads an address and what is due there, in one round trip.
func (s *Webhooks) readDue(ctx context.Context, lease Lease, r ClaimRequest) (address addressRow, pending, retries []RenderedDelivery, next *models.Time, err error) {
	now := s.CurrentTime()
	args := pgx.NamedArgs{
		"webhook": lease.WebhookID, "now": now, "limit": r.Limit, "retries": r.Retries,
		"in_flight": append([]string{}, r.InFlight...), "records": append([]string{}, r.Records...), // NULL would exclude everything
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(indexPlans)
	if r.Renew {
		queueRenewal(pipeline, now, lease)
	}
	store.QueueOne(pipeline, &address, pgx.ErrNoRows, addressQuery, args)
	store.QueueAll(pipeline, &pending, claimPendingQuery, args)
	if r.Retries > 0 {
		store.QueueAll(pipeline, &retries, claimRetriesQuery, args)
		pipeline.Queue(nextRetryQuery, args).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowTo[models.Time])
			if len(found) > 0 {
				next = &found[0]
			}
			return err
		})
	}
	err = s.Pool.SendBatch(ctx, pipeline).Close()
	return address, pending, retries, next, err
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
