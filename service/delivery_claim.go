package service

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// Address is a webhook address as the sender of its deliveries needs it.
type Address struct {
	ID            string
	IntegrationID string
	URL           string
	// Secrets sign each delivery, the newest first: two during a rotation's overlap.
	Secrets []string
	Enabled bool
}

// ClaimPosition is a place in the order of an address's deliveries. The zero value is
// the beginning.
type ClaimPosition struct {
	// After is the RenderedDelivery.Seq up to which everything pending was claimed, except
	// deliveries whose transaction had not ended.
	After int64
	// Requeues is how often deliveries had been made pending again, with their old
	// positions. When that changes, claims begin at the beginning.
	Requeues int64
	// All has one claim begin at the beginning, to find those whose transaction had not ended.
	All bool
}

// Claim is what is due at one address.
type Claim struct {
	Address    Address
	Deliveries []RenderedDelivery
	// More says that the limit left pending deliveries unclaimed.
	More bool
	// Position is where the next claim begins.
	Position ClaimPosition
	// Notices says that notices about the address wait to be mailed.
	Notices bool
}

// addressRow is an address with what decides its deliveries.
type addressRow struct {
	ID                  string
	OrganizationID      string
	IntegrationID       string
	URL                 string
	SecretSealed        []byte
	PreviousSecret      []byte
	PreviousSecretUntil *models.Time
	Enabled             bool
	// Usable says whether its integration may use the service.
	Usable     bool
	ShowPeople bool
	Scopes     []string
	Events     []models.EventType
	// Notices says whether notices about the address wait to be mailed.
	Notices bool
	// Releasing says that a release of failed and held deliveries is unfinished.
	Releasing bool
	Requeues  int64
	// Adopting says that deliveries of the previous release's program are pending.
	Adopting bool
}

// addressQuery loads an address at the time $2. The caller appends its id.
var addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until,
		h.enabled, ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + ` AS usable,
		'people:read' = ANY (i.scopes) AS show_people, i.scopes, h.events,
		` + with(waitsForMail, "w", "h", "now", "$2") + ` AS notices,
		EXISTS (SELECT FROM delivery_releases r WHERE r.webhook_id = h.id) AS releasing, h.requeues,
		EXISTS (SELECT FROM former_deliveries d WHERE d.webhook_id = h.id AND d.status = 'pending') AS adopting
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id
	JOIN organizations o ON o.id = h.organization_id
	JOIN plans p ON p.organization_id = h.organization_id
	WHERE h.id = `

// claimedDelivery is a delivery to send.
type claimedDelivery struct {
	DeliveryID     string
	Seq            int64
	RecordID       string
	Attempts       int
	AttemptsBefore int
	EventID        string
}

// claimQuery selects claimedDelivery rows for the open deliveries {open}. Their events
// are read with their records (claimedEventsQuery).
const claimQuery = `
	SELECT o.id AS delivery_id, o.seq, o.record_id, o.attempts, o.attempts_before, o.event_id
	FROM ({open}) o ORDER BY o.seq`

// claimPendingQuery begins after a position: until the next vacuum, and longer while a
// dump runs, the index has the entries of deliveries that were finished since.
var claimPendingQuery = with(claimQuery, "open", `
		SELECT * FROM open_deliveries
		WHERE webhook_id = $1 AND status = 'pending' AND id <> ALL ($3::text[])
			AND seq > CASE WHEN $5::bigint = (SELECT requeues FROM webhooks WHERE id = $1) THEN $4::bigint ELSE 0 END
			AND seq <= coalesce((SELECT after_seq FROM delivery_releases WHERE webhook_id = $1), 9223372036854775807)
			AND `+adoptedUpTo+`
		ORDER BY seq LIMIT $2`)

var claimRetryQuery = with(claimQuery, "open", `SELECT * FROM open_deliveries WHERE id = $1 AND `+isRetrying+` LIMIT $2`)

// ClaimPending returns up to limit pending deliveries of the address, oldest first,
// each with its record as it is now; claimed are the ids of those that the caller
// already has, and from is the position of an earlier claim. If the address is off, its
// deliveries are held. Those that it does not subscribe to or that its integration may
// no longer read are skipped. Neither are returned. An unfinished release continues with
// its next batch; deliveries after it wait, so that all go out in the order of the
// events. Only one dispatcher claims for an address at a time; if two overlap after a
// crash, deliveries are sent twice, never lost. An unknown address claims nothing.
// Errors: unavailable.
func (s *Service) ClaimPending(ctx context.Context, webhookID string, claimed []string, from ClaimPosition, limit int) (Claim, error) {
	if claimed == nil {
		claimed = []string{} // NULL would make the comparison NULL, too
	}
	after := from.After
	if from.All {
		after = 0
	}
	return s.claim(ctx, addressQuery+`$1`, webhookID, from, limit, claimPendingQuery, claimed, after, from.Requeues)
}

// ClaimRetry returns the delivery if it waits for another attempt, rendered like
// those of ClaimPending.
func (s *Service) ClaimRetry(ctx context.Context, deliveryID string) (Claim, error) {
	if err := s.execOnDeliveries(ctx, adoptOneQuery, deliveryID); err != nil {
		return Claim{}, err
	}
	return s.claim(ctx, addressQuery+`(SELECT webhook_id FROM open_deliveries WHERE id = $1)`, deliveryID, ClaimPosition{}, 1, claimRetryQuery)
}

func (s *Service) claim(ctx context.Context, addressSQL, id string, from ClaimPosition, limit int, claimSQL string, args ...any) (Claim, error) {
	var claim Claim
	var address addressRow
	var claimed []claimedDelivery
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	pipeline.Queue(addressSQL, id, s.now()).Query(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[addressRow])
		address = row
		return err
	})
	pipeline.Queue(claimSQL, append([]any{id, limit + 1}, args...)...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[claimedDelivery])
		claimed = all
		return err
	})
	err := s.pool.SendBatch(ctx, pipeline).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return claim, nil
	}
	if err != nil {
		return claim, s.translate(err)
	}
	if claim.Address, err = s.openAddress(address); err != nil {
		return claim, err
	}
	claim.Notices = address.Notices
	if !address.Enabled {
		claimed = nil
	}
	if len(claimed) > limit {
		claim.More, claimed = true, claimed[:limit]
	}
	// The address was read before the deliveries, so a requeue in between is noticed next time.
	claim.Position = ClaimPosition{After: from.After, Requeues: address.Requeues}
	if n := len(claimed); n > 0 && (claim.More || claimed[n-1].Seq > from.After) {
		claim.Position.After = claimed[n-1].Seq
	}
	switch {
	case address.Adopting && !claim.More:
		claim.More, err = true, s.adopt(ctx, address.OrganizationID, address.ID)
	case !address.Enabled:
		err = s.transaction(ctx, address.OrganizationID, func(t *ormTx) (err error) {
			claim.More, err = t.holdBatch(address.ID)
			return err
		})
	case address.Releasing && !claim.More:
		claim.More, err = true, s.continueRelease(ctx, address.OrganizationID, address.ID)
	}
	if err != nil || len(claimed) == 0 {
		return claim, err
	}
	claim.Deliveries, err = s.render(ctx, address, claimed)
	return claim, err
}

// openAddress opens the sealed secrets of an address.
func (s *Service) openAddress(row addressRow) (Address, error) {
	address := Address{ID: row.ID, IntegrationID: row.IntegrationID, URL: row.URL, Enabled: row.Enabled}
	secret, err := s.Vault.Open(row.SecretSealed, row.ID)
	if err != nil {
		return address, err
	}
	address.Secrets = []string{string(secret)}
	if row.PreviousSecretUntil != nil && row.PreviousSecretUntil.Time.After(s.Now()) {
		previous, err := s.Vault.Open(row.PreviousSecret, row.ID)
		if err != nil {
			return address, err
		}
		address.Secrets = append(address.Secrets, string(previous))
	}
	return address, nil
}
