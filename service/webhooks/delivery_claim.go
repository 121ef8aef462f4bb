package webhooks

import (
	"cmp"
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

// ClaimPosition is a place in the order of an address's deliveries. The zero value is
// the beginning.
type ClaimPosition struct {
	// After is the RenderedDelivery.Seq up to which everything pending was claimed, except
	// deliveries whose transaction had not ended.
	After int64
	// Requeues counts how many times deliveries were made pending again, with their old
	// positions. When that changes, claims begin at the beginning.
	Requeues int64
	// All has one claim begin at the beginning, to find those whose transaction had not ended.
	All bool
}

// ClaimOptions are what a dispatcher adds to its claims.
type ClaimOptions struct {
	// Epoch is the epoch of its lease. A claim fails with ErrLeaseLost if there is a higher one.
	Epoch int64
	// Retries limits the due retries that it claims, besides pending deliveries. With
	// 0 the claim does not look for them.
	Retries int
}

// Claim is what is due at one address.
type Claim struct {
	Address Address
	// Deliveries are in the order of their events.
	Deliveries []RenderedDelivery
	// More is true if the limit left pending deliveries unclaimed, MoreRetries if it left
	// due retries.
	More, MoreRetries bool
	// NextRetryAt is when the next retry that is not claimed is due, nil without one or if
	// the claim did not look.
	NextRetryAt *models.Time
	// Position is where the next claim begins.
	Position ClaimPosition
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
	Requeues     int64
	// Epoch is the epoch of the address's lease, 0 without one.
	Epoch int64
}

// Sends is the condition that what is due at the address {w} is sent: it is on, and its
// integration may use the service. Otherwise it is held.
var Sends = `({w}.enabled AND (SELECT ` + access.UsableIntegration + ofAddress + `))`

// unusableReason is why the integration of the address {w} may not use the service, or NULL.
var unusableReason = `(SELECT ` + access.UnusableReason + ofAddress + `)`

const ofAddress = ` FROM integrations i JOIN organizations o ON o.id = i.organization_id
	JOIN plans p ON p.organization_id = i.organization_id WHERE i.id = {w}.integration_id`

// addressQuery loads the address $1.
var addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until, h.older_secret, h.older_secret_until,
		h.enabled AND ` + access.UsableIntegration + ` AS sends, ` + access.UsableIntegration + ` AS usable,
		EXISTS (SELECT FROM webhook_health y WHERE y.webhook_id = h.id AND y.failing_since IS NOT NULL) AS failing,
		'people:read' = ANY (i.scopes) AS show_people, i.scopes, h.events,
		EXISTS (SELECT FROM redeliveries r WHERE r.webhook_id = h.id) AS redelivering, h.requeues,
		coalesce((SELECT m.epoch FROM webhook_leases m WHERE m.webhook_id = h.id), 0) AS epoch
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id
	JOIN organizations o ON o.id = h.organization_id
	JOIN plans p ON p.organization_id = h.organization_id
	WHERE h.id = $1`

// claimQuery selects the open deliveries {open}. Their events are read with their records
// (claimedEventsQuery).
const claimQuery = `
	SELECT o.id AS delivery_id, o.seq, o.record_id, o.attempts, o.attempts_before, o.event_id,
		o.next_attempt_at IS NOT NULL AS retry
	FROM ({open}) o ORDER BY o.seq`

// claimPendingQuery begins after a position: until the next vacuum, and longer while a
// dump runs, the index has the entries of deliveries that were finished since.
var claimPendingQuery = store.Fill(claimQuery, "open", `
		SELECT * FROM open_deliveries
		WHERE webhook_id = $1 AND status = 'pending' AND id <> ALL ($3::text[])
			AND seq > CASE WHEN $5::bigint = (SELECT requeues FROM webhooks WHERE id = $1) THEN $4::bigint ELSE 0 END
			AND seq <= coalesce((SELECT min(after_seq) FROM redeliveries WHERE webhook_id = $1 AND search -> 'missed' = 'true'), 9223372036854775807)
		ORDER BY seq LIMIT $2`)

// claimRetriesQuery claims the retries that are due at $4, the longest overdue first.
var claimRetriesQuery = store.Fill(claimQuery, "open", `
		SELECT * FROM open_deliveries
		WHERE webhook_id = $1 AND status = 'retrying' AND next_attempt_at <= $4 AND id <> ALL ($3::text[])
		ORDER BY next_attempt_at, seq LIMIT $2`)

// nextRetryQuery returns when the first retry after $2 is due.
const nextRetryQuery = `
	SELECT next_attempt_at FROM open_deliveries
	WHERE webhook_id = $1 AND status = 'retrying' AND next_attempt_at > $2
	ORDER BY next_attempt_at LIMIT 1`

// ClaimPending returns up to limit pending deliveries of the address, oldest first, and
// due retries as far as the options ask for them, each with its record as it is now;
// claimed are the ids of those that the caller
// already has, and from is the position of an earlier claim. If the address is off, or its
// integration may not use the service, its deliveries are held. Those that it does not subscribe to or that its integration may
// no longer read are skipped. Neither are returned. An unfinished redelivery continues with
// its next batch; deliveries after one of what was missed wait, so that all go out in the order of the
// events. Only one dispatcher claims for an address at a time; if two overlap after a
// crash, deliveries are sent twice, never lost. An unknown address claims nothing.
// Errors: ErrLeaseLost, unavailable.
func (s *Webhooks) ClaimPending(
	ctx context.Context, webhookID string, claimed []string, from ClaimPosition, limit int, options ...ClaimOptions,
) (Claim, error) {
	if claimed == nil {
		claimed = []string{} // NULL would make the comparison NULL, too
	}
	var o ClaimOptions
	if len(options) > 0 {
		o = options[0]
	}
	rows, err := s.claimRows(ctx, webhookID, claimed, from, limit, o)
	if errors.Is(err, pgx.ErrNoRows) {
		return Claim{}, nil
	}
	if err != nil {
		return Claim{}, s.Translate(err)
	}
	address := rows.address
	if o.Epoch != 0 && address.Epoch > o.Epoch {
		return Claim{}, ErrLeaseLost
	}
	claim := Claim{NextRetryAt: rows.nextRetryAt}
	if claim.Address, err = s.openAddress(address); err != nil {
		return claim, err
	}
	// The address was read before the deliveries, so a requeue in between is noticed next time.
	claim.Position = ClaimPosition{After: from.After, Requeues: address.Requeues}
	due := rows.due(&claim, limit, o.Retries)
	if err := s.continueMoves(ctx, address, &claim); err != nil || len(due) == 0 {
		return claim, err
	}
	claim.Deliveries, err = s.render(ctx, address, due)
	return claim, err
}

// due returns what is due, in the order of the events, within the limits.
func (r claimedRows) due(claim *Claim, limit, retries int) []RenderedDelivery {
	if !r.address.Sends {
		return nil
	}
	if len(r.pending) > limit {
		claim.More, r.pending = true, r.pending[:limit]
	}
	if len(r.retries) > retries {
		claim.MoreRetries, r.retries = true, r.retries[:retries]
	}
	if n := len(r.pending); n > 0 && (claim.More || r.pending[n-1].Seq > claim.Position.After) {
		claim.Position.After = r.pending[n-1].Seq
	}
	due := slices.Concat(r.pending, r.retries)
	slices.SortStableFunc(due, func(a, b RenderedDelivery) int { return cmp.Compare(a.Seq, b.Seq) })
	return due
}

// continueMoves continues what moves many deliveries of the address: holding
// them while it does not send, a redelivery.
func (s *Webhooks) continueMoves(ctx context.Context, address addressRow, claim *Claim) (err error) {
	switch {
	case !address.Sends:
		err = s.Transaction(ctx, address.OrganizationID, store.NoKey, func(t *store.Tx) (err error) {
			claim.More, err = holdBatch(t, address.OrganizationID, address.ID)
			return err
		})
	case address.Redelivering && !claim.More:
		claim.More, err = true, s.continueRedelivery(ctx, address.OrganizationID, address.ID)
	}
	return err
}

// claimedRows are what one round trip of a claim reads.
type claimedRows struct {
	address          addressRow
	pending, retries []RenderedDelivery
	nextRetryAt      *models.Time
}

// claimRows reads an address and one delivery more than each limit, if there are as many.
func (s *Webhooks) claimRows(
	ctx context.Context, webhookID string, claimed []string, from ClaimPosition, limit int, o ClaimOptions,
) (found claimedRows, err error) {
	after := from.After
	if from.All {
		after = 0
	}
	now := s.CurrentTime()
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	store.QueueOne(pipeline, &found.address, pgx.ErrNoRows, addressQuery, webhookID)
	store.QueueAll(pipeline, &found.pending, claimPendingQuery, webhookID, limit+1, claimed, after, from.Requeues)
	if o.Retries > 0 {
		store.QueueAll(pipeline, &found.retries, claimRetriesQuery, webhookID, o.Retries+1, claimed, now)
		pipeline.Queue(nextRetryQuery, webhookID, now).Query(func(rows pgx.Rows) error {
			next, err := pgx.CollectRows(rows, pgx.RowTo[models.Time])
			if len(next) > 0 {
				found.nextRetryAt = &next[0]
			}
			return err
		})
	}
	err = s.Pool.SendBatch(ctx, pipeline).Close()
	return found, err
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
