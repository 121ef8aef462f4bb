package webhooks

import (
	"cmp"
	"context"
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

// deliveriesQuery reads the deliveries of each address by the indexes of the sources, so
// the cost of a page does not depend on how many there are. It begins before the delivery @before.
func deliveriesQuery(sources string) string {
	return `
	SELECT ` + deliveryColumns + `
	FROM (SELECT h.id, s.sends, s.held_before FROM webhooks h JOIN sending s ON s.webhook_id = h.id
		JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
		WHERE @webhook = '' OR h.id = @webhook OFFSET 0) h
	CROSS JOIN LATERAL (SELECT * FROM (` + sources + `) o ORDER BY o.id DESC LIMIT @scan) d
	CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
	ORDER BY d.id DESC LIMIT @scan`
}

// Deliveries returns a page of deliveries, newest first. It is for operators: it does not
// check permissions. Errors: invalid_request, not_found (no such address), unavailable.
func (s *Webhooks) Deliveries(ctx context.Context, filter DeliveryFilter) ([]DeliveryView, error) {
	sources, err := filter.sources()
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"webhook": filter.WebhookID, "before": cmp.Or(filter.Before, lastID), "after": "",
		"scan": min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize),
	}
	of := []any{args}
	return store.KnownList[DeliveryView](ctx, s.Store, "", `
		SELECT @webhook = '' OR EXISTS (SELECT FROM webhooks h JOIN integrations i ON i.id = h.integration_id
			WHERE h.id = @webhook AND i.deleted_at IS NULL)`, of,
		deliveriesQuery(sources), of)
}

// sources returns the sources of the page: one for each status. They are written out because partial indexes do not
// serve a parameter. Errors: invalid_request.
func (f DeliveryFilter) sources() (string, error) {
	if f.Limit < 0 {
		return "", models.Errorf(models.CodeInvalidRequest, "The limit must be at least 1.")
	}
	if len(f.Statuses) == 0 {
		return DeliverySearch{}.sources(), nil
	}
	var open, finished []string
	for _, status := range f.Statuses {
		switch status {
		case models.DeliveryPending, models.DeliveryRetrying:
			open = append(open, "h.sends AND d.queued_at >= h.held_before AND d.status = '"+string(status)+"'")
		case models.DeliveryHeld:
			open = append(open, "NOT (h.sends AND d.queued_at >= h.held_before)")
		case models.DeliveryDelivered, models.DeliveryFailed, models.DeliverySkipped:
			finished = append(finished, "d.status = '"+string(status)+"'")
		default:
			return "", models.Errorf(models.CodeInvalidRequest, "There is no delivery status %q.", status)
		}
	}
	var sources []string
	for _, condition := range open {
		sources = append(sources, searchSource("open_deliveries", openColumns, condition))
	}
	for _, condition := range finished {
		sources = append(sources, searchSource("deliveries", finishedColumns, condition))
	}
	return strings.Join(sources, " UNION ALL "), nil
}
