package service

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// DeliveryView is a delivery as operators and managers of integrations see it
// (docs/contract.md, Operators' commands).
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
	OrganizationID string
	WebhookID      string
	Statuses       []models.DeliveryStatus
	// Before is the id of the last delivery of the previous page, "" for the first page.
	Before string
	// Limit is the page size: 0 means models.DefaultPageSize, values over
	// models.MaxPageSize are capped.
	Limit int
}

// deliveriesQuery reads the deliveries of each address along an index, so the cost
// of a page does not depend on how many there are.
const deliveriesQuery = `
	SELECT ` + deliveryColumns + `
	FROM webhooks h
	JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	CROSS JOIN LATERAL (
		SELECT * FROM deliveries o
		WHERE o.webhook_id = h.id AND o.id < @before AND {statuses}
		ORDER BY o.id DESC LIMIT @limit) d
	JOIN events e ON e.id = d.event_id
	WHERE (@organization = '' OR h.organization_id = @organization) AND (@webhook = '' OR h.id = @webhook)
	ORDER BY d.id DESC LIMIT @limit`

// Deliveries returns a page of deliveries, the newest first. It does not check
// permissions: callers other than operator commands must set OrganizationID.
// Errors: invalid_request, not_found (no such address), unavailable.
func (s *Service) Deliveries(ctx context.Context, filter DeliveryFilter) ([]DeliveryView, error) {
	statuses, err := filter.statuses()
	if err != nil {
		return nil, err
	}
	args := pgx.NamedArgs{
		"organization": filter.OrganizationID, "webhook": filter.WebhookID,
		"before": cmp.Or(filter.Before, maxID), "limit": min(cmp.Or(filter.Limit, models.DefaultPageSize), models.MaxPageSize),
	}
	of := []any{args}
	return knownList[DeliveryView](ctx, s, filter.OrganizationID, `
		SELECT @webhook = '' OR EXISTS (SELECT FROM webhooks h JOIN integrations i ON i.id = h.integration_id
			WHERE h.id = @webhook AND i.deleted_at IS NULL AND (@organization = '' OR h.organization_id = @organization))`, of,
		with(deliveriesQuery, "statuses", statuses), of)
}

// maxID sorts after every id.
const maxID = "~"

var deliveryStatuses = []models.DeliveryStatus{
	models.DeliveryPending, models.DeliveryDelivered, models.DeliveryRetrying,
	models.DeliveryFailed, models.DeliveryHeld, models.DeliverySkipped,
}

// statuses returns the condition on the status of the row o. It is written out
// because partial indexes do not serve a parameter. Errors: invalid_request.
func (f DeliveryFilter) statuses() (string, error) {
	if f.Limit < 0 {
		return "", models.Errorf(models.CodeInvalidRequest, "The limit must be at least 1.")
	}
	if len(f.Statuses) == 0 {
		return "true", nil
	}
	var named []string
	for _, status := range f.Statuses {
		if !slices.Contains(deliveryStatuses, status) {
			return "", models.Errorf(models.CodeInvalidRequest, "There is no delivery status %q.", status)
		}
		named = append(named, "'"+string(status)+"'")
	}
	return "o.status IN (" + strings.Join(named, ", ") + ")", nil
}
