package webhooks

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// DeliveryView is a delivery as operators and managers of integrations see it
// (docs/commands.md).
type DeliveryView struct {
	ID            string                `json:"id"`
	EventID       string                `json:"event_id"`
	EventType     models.EventType      `json:"event_type"`
	WebhookID     string                `json:"webhook_id"`
	Status        models.DeliveryStatus `json:"status"`
	Attempts      int                   `json:"attempts"`
	NextAttemptAt *models.Time          `json:"next_attempt_at"`
	LastStatus    *int                  `json:"last_status"`
	LastError     *string               `json:"last_error"`
	CreatedAt     models.Time           `json:"created_at"`
}

const deliveryColumns = `d.id, d.event_id, e.type AS event_type, d.webhook_id, d.status, d.attempts,
		d.next_attempt_at, d.last_status, d.last_error, d.created_at`

// DeliveryFilter restricts a list of deliveries. Empty fields restrict nothing.
type DeliveryFilter struct {
	WebhookID string
	Statuses  []models.DeliveryStatus
	// Before is the id of the last delivery of the previous page, "" for the first page.
	Before string
	// Limit is the page size: 0 means models.DefaultPageSize, values over
	// models.MaxPageSize are capped.
	Limit int
}

// deliveriesQuery reads the deliveries of each address by the indexes {sources}, so
// the cost of a page does not depend on how many there are. It begins before the
// position of the delivery @before.
const deliveriesQuery = `
	WITH start AS (
		SELECT CASE WHEN @before = '' THEN 9223372036854775807
			ELSE (SELECT seq FROM all_deliveries WHERE id = @before) END AS seq
	)
	SELECT ` + deliveryColumns + `
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	CROSS JOIN LATERAL (SELECT * FROM ({sources}) o ORDER BY o.seq DESC LIMIT @limit) d
	CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
	WHERE @webhook = '' OR h.id = @webhook
	ORDER BY d.seq DESC LIMIT @limit`

// deliverySource is a source of deliveriesQuery: the rows of a table with the statuses.
const deliverySource = `(
			SELECT id, seq, event_id, webhook_id, status, attempts, {next} AS next_attempt_at, last_status, last_error, created_at FROM {table}
			WHERE webhook_id = h.id AND seq < (SELECT seq FROM start) AND {statuses}
			ORDER BY seq DESC LIMIT @limit)`

// Deliveries returns a page of deliveries, newest first. It is for operators: it does not
// check permissions. Errors: invalid_request, not_found (no such address), unavailable.
func (s *Webhooks) Deliveries(ctx context.Context, filter DeliveryFilter) ([]DeliveryView, error) {
	sources, err := filter.sources()
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"webhook": filter.WebhookID, "before": filter.Before,
		"limit": min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize),
	}
	of := []any{args}
	return store.KnownList[DeliveryView](ctx, s.Store, "", `
		SELECT @webhook = '' OR EXISTS (SELECT FROM webhooks h JOIN integrations i ON i.id = h.integration_id
			WHERE h.id = @webhook AND i.deleted_at IS NULL)`, of,
		store.Fill(deliveriesQuery, "sources", sources), of)
}

// sources returns the sources of the page: one for each open status, one for all others.
// The statuses are written out because partial indexes do not serve a parameter. Errors:
// invalid_request.
func (f DeliveryFilter) sources() (string, error) {
	if f.Limit < 0 {
		return "", models.Errorf(models.CodeInvalidRequest, "The limit must be at least 1.")
	}
	statuses := f.Statuses
	if len(statuses) == 0 {
		statuses = models.DeliveryStatuses
	}
	var sources, named []string
	for _, status := range statuses {
		if !slices.Contains(models.DeliveryStatuses, status) {
			return "", models.Errorf(models.CodeInvalidRequest, "There is no delivery status %q.", status)
		}
		named = append(named, "'"+string(status)+"'")
		if status == models.DeliveryPending || status == models.DeliveryRetrying {
			sources = append(sources, store.Fill(deliverySource, "table", "open_deliveries", "next", "next_attempt_at", "statuses", "status = '"+string(status)+"'"))
		}
	}
	condition := "status IN (" + strings.Join(named, ", ") + ")"
	if len(f.Statuses) == 0 {
		condition = "true"
	}
	sources = append(sources, store.Fill(deliverySource, "table", "deliveries", "next", "NULL::timestamptz", "statuses", condition))
	return strings.Join(sources, " UNION ALL "), nil
}
