package service

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Address is a webhook address as its deliveries need it.
type Address struct {
	ID            string
	IntegrationID string
	URL           string
	// Secrets sign each delivery, the newest first; two while a rotation overlaps.
	Secrets []string
	Enabled bool
}

// Claim is what is due at one address.
type Claim struct {
	Address    Address
	Deliveries []RenderedDelivery
	// More says that further deliveries were pending beyond the limit.
	More bool
	// Notices says that people are to be told about the address by e-mail.
	Notices bool
}

type addressRow struct {
	ID                  string
	OrganizationID      string
	IntegrationID       string
	URL                 string
	SecretSealed        []byte
	PreviousSecret      []byte
	PreviousSecretUntil *models.Time
	Enabled             bool
	// Usable is whether its integration may use the service and read records.
	Usable     bool
	ShowPeople bool
	Scopes     []string
	Events     []models.EventType
	// Notices is whether some about the address wait to be mailed.
	Notices bool
}

// addressQuery reads an address at the time $2; what follows is its id.
var addressQuery = `
	SELECT h.id, h.organization_id, h.integration_id, h.url, h.secret_sealed, h.previous_secret, h.previous_secret_until,
		h.enabled, ` + with(usableIntegration, "i", "i", "o", "o", "p", "p") + ` AS usable,
		'people:read' = ANY (i.scopes) AS show_people, i.scopes, h.events,
		` + with(waitsForMail, "w", "h", "now", "$2") + ` AS notices
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id
	JOIN organizations o ON o.id = h.organization_id
	JOIN plans p ON p.organization_id = h.organization_id
	WHERE h.id = `

type pendingRow struct {
	DeliveryID     string
	Seq            int64
	RecordID       string
	Attempts       int
	AttemptsBefore int
	EventID        string
	EventType      models.EventType
	OrganizationID string
	ActorID        string
	Data           map[string]any
	CreatedAt      models.Time
	TraceParent    *string
}

const pendingColumns = `
	SELECT d.id AS delivery_id, d.seq, d.record_id, d.attempts, d.attempts_before, e.id AS event_id, e.type AS event_type,
		e.organization_id, e.actor_id, e.data, e.created_at, e.trace_parent
	FROM deliveries d JOIN events e ON e.id = d.event_id`

// ClaimPending returns up to limit pending deliveries of the address beside those
// in hand, oldest first, each with its record as it is now. Those of an address
// that is off are held, those it does not subscribe to or its integration may not
// read any more are skipped; neither is returned. One mailbox claims for an address at a time; should two
// overlap after a crash, deliveries are doubled, never lost. A missing address
// claims nothing. Errors: unavailable.
func (s *Service) ClaimPending(ctx context.Context, webhookID string, inHand []string, limit int) (Claim, error) {
	if inHand == nil {
		inHand = []string{} // not NULL, which nothing differs from
	}
	return s.claim(ctx, addressQuery+`$1`, webhookID, limit, pendingColumns+`
		WHERE d.webhook_id = $1 AND d.status = 'pending' AND d.id <> ALL ($3::text[]) ORDER BY d.seq LIMIT $2`, inHand)
}

// ClaimRetry returns the delivery if it is due for another attempt, rendered
// like those of ClaimPending.
func (s *Service) ClaimRetry(ctx context.Context, deliveryID string) (Claim, error) {
	return s.claim(ctx, addressQuery+`(SELECT webhook_id FROM deliveries WHERE id = $1)`, deliveryID, 1, pendingColumns+`
		WHERE d.id = $1 AND d.status = 'retrying' LIMIT $2`)
}

func (s *Service) claim(ctx context.Context, addressSQL, id string, limit int, pendingSQL string, args ...any) (Claim, error) {
	var claim Claim
	var address addressRow
	var pending []pendingRow
	pipeline := &pgx.Batch{}
	pipeline.Queue(addressSQL, id, s.now()).Query(func(rows pgx.Rows) error {
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[addressRow])
		address = row
		return err
	})
	pipeline.Queue(pendingSQL, append([]any{id, limit + 1}, args...)...).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, pgx.RowToStructByName[pendingRow])
		pending = all
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
	if len(pending) > limit {
		claim.More, pending = true, pending[:limit]
	}
	if len(pending) == 0 {
		return claim, nil
	}
	if !address.Enabled {
		claim.More = false
		_, err := s.pool.Exec(ctx, with(holdQuery, "webhook", "$1"), address.ID)
		return claim, s.translate(err)
	}
	claim.Deliveries, err = s.render(ctx, address, pending)
	return claim, err
}

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
