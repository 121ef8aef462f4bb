package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// WebhookDetail is an address with everything that its page shows.
type WebhookDetail struct {
	WebhookSummary
	Integration string
	// PreviousSecretUntil is when the previous signing secret ends, OlderSecretUntil when the one
	// before it does, nil if it has ended.
	PreviousSecretUntil, OlderSecretUntil *models.Time
	EnabledSince                          models.Time
	// ShutOffAt is when the next final failure turns the address off, nil unless it fails.
	ShutOffAt *models.Time `db:"-"`
	// Test is the last test within TestRetention, nil if none was sent.
	Test *WebhookTest `db:"-"`
	// State has the numbers of its deliveries.
	State AddressState `db:"-"`
	// Owners are the ids of the owners of its integration, OwnerNames their names.
	Owners, OwnerNames []string
}

// ManagedWebhookQuery reads an address with its health for the people who manage it.
var ManagedWebhookQuery = `
	SELECT ` + WebhookSummaryColumns + `, n.name AS integration, h.enabled_since, i.owners, ` + access.OwnerNames("i") + ` AS owner_names,
		CASE WHEN h.previous_secret_until > $3 THEN h.previous_secret_until END AS previous_secret_until,
		CASE WHEN h.older_secret_until > $3 THEN h.older_secret_until END AS older_secret_until
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	JOIN identities n ON n.id = i.id
	LEFT JOIN webhook_health g ON g.webhook_id = h.id
	WHERE h.id = $1 AND h.organization_id = $2`

// ManagedWebhook returns an address of the actor's organization. Errors: not_found,
// permission_denied, unavailable.
func (s *Webhooks) ManagedWebhook(ctx context.Context, actor store.Actor, id string) (WebhookDetail, error) {
	if !models.IsID(id, models.PrefixWebhook) {
		return WebhookDetail{}, models.NotFound()
	}
	var found WebhookDetail
	var tests []Attempt
	now := s.CurrentTime()
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), ManagedWebhookQuery, id, actor.OrganizationID, now)
		access.QueueMayManage(pipeline, actor)
		store.QueueOne(pipeline, &found.State, models.NotFound(), addressStateQuery, s.addressStateArgs(id, now))
		pipeline.Queue(testQuery+` ORDER BY event_id DESC LIMIT 1`, id).Query(func(rows pgx.Rows) (err error) {
			tests, err = pgx.CollectRows(rows, pgx.RowToStructByNameLax[Attempt])
			return err
		})
		return nil
	}, func() (WebhookDetail, error) {
		if len(tests) > 0 {
			test := testOf(id, tests[0])
			found.Test = &test
		}
		found.State.LoadedAt = now
		found.ShutOffAt = s.shutOffAt(found)
		return found, nil
	})
}

// shutOffAt returns when the period without success is over.
func (s *Webhooks) shutOffAt(h WebhookDetail) *models.Time {
	if !h.Enabled || h.FailingSince == nil {
		return nil
	}
	from := h.EnabledSince
	if h.LastSuccessAt != nil && h.LastSuccessAt.Time.After(from.Time) {
		from = *h.LastSuccessAt
	}
	at := models.TimeOf(from.Add(s.ShutOffAfter))
	return &at
}

// CountMissed returns how many failed, retrying and held deliveries of events since then the address
// has, at most models.MaxCounted. Errors: not_found, permission_denied, unavailable.
func (s *Webhooks) CountMissed(ctx context.Context, actor store.Actor, webhookID string, since models.Time) (int, error) {
	if !models.IsID(webhookID, models.PrefixWebhook) {
		return 0, models.NotFound()
	}
	var missed int
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		var known WebhookDetail
		store.QueueOne(pipeline, &known, models.NotFound(), ManagedWebhookQuery, webhookID, actor.OrganizationID, s.CurrentTime())
		access.QueueMayManage(pipeline, actor)
		pipeline.Queue(missedQuery, pgx.NamedArgs(missedArgs(s.Now(), webhookID, since))).QueryRow(func(row pgx.Row) error { return row.Scan(&missed) })
		return nil
	}, func() (int, error) { return missed, nil })
}

// WebhookSummary is an address with its health.
type WebhookSummary struct {
	Webhook
	Health
	CreatedAt models.Time
}

// WebhookSummaryColumns are the columns of a WebhookSummary.
const WebhookSummaryColumns = healthColumns + `, h.created_at`
