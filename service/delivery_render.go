package service

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// RenderedDelivery is a delivery rendered for its next attempt.
type RenderedDelivery struct {
	DeliveryID string
	RecordID   string
	EventID    string
	EventType  models.EventType
	// Seq orders the deliveries of an address.
	Seq int64
	// Attempts is how many were made before, AttemptsBefore how many of them
	// before the present run of the retry schedule.
	Attempts, AttemptsBefore int
	// EventAt is when it happened.
	EventAt time.Time
	// TraceParent is the span of the call it comes from (W3C traceparent), "" when
	// that call's trace is not kept.
	TraceParent string
	// Body is the event with the record as it is now.
	Body []byte
}

// envelope is the body of a delivery (spec section 6, request).
type envelope struct {
	ID             string           `json:"id"`
	Type           models.EventType `json:"type"`
	CreatedAt      models.Time      `json:"created_at"`
	OrganizationID string           `json:"organization_id"`
	Data           map[string]any   `json:"data"`
}

type renderedWorkOrder struct {
	workOrderRow
	Readable bool
}

type renderedFeedback struct {
	feedbackRow
	Readable bool
}

var (
	renderWorkOrders = byPeople(func(people string) string {
		return `SELECT ` + with(workOrderColumns, "w", "w", "people", people) + `,
		` + with(readableWorkOrder, "w", "w", "actor", "$2") + ` AS readable
		FROM work_orders w WHERE w.id = ANY ($1)`
	})
	renderFeedback = `SELECT ` + with(feedbackColumns, "w", "w", "people", "$2::boolean") + `,
		` + with(readableFeedback, "w", "w", "actor", "$3") + ` AS readable
		FROM feedback w WHERE w.id = ANY ($1)`
)

// rendered is a record under the name it has in data.
type rendered struct {
	name   string
	record any
}

// readRecords reads those of the records that the address may be told, as they are now.
func (s *Service) readRecords(ctx context.Context, address addressRow, ids []string) (map[string]rendered, error) {
	records := map[string]rendered{}
	if !address.Usable {
		return records, nil
	}
	scopes, _ := models.ScopesOf(address.Scopes)
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.ForceGenericPlans)
	pipeline.Queue(renderWorkOrders[address.ShowPeople], ids, address.IntegrationID).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[renderedWorkOrder])
		for _, row := range found {
			if row.Readable && scopes.Has(models.ScopeWorkOrdersRead) {
				records[row.ID] = rendered{"work_order", row.record()}
			}
		}
		return err
	})
	if slices.ContainsFunc(ids, func(id string) bool { return models.IsID(id, models.PrefixFeedback) }) {
		pipeline.Queue(renderFeedback, ids, address.ShowPeople, address.IntegrationID).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[renderedFeedback])
			for _, row := range found {
				if row.Readable && scopes.Has(models.ScopeIssuesRead) {
					records[row.ID] = rendered{"issue", row.record()}
				}
			}
			return err
		})
	}
	return records, s.translate(s.pool.SendBatch(ctx, pipeline).Close())
}

// render builds the bodies of the deliveries with their records as they are now,
// and skips those the address does not want or the integration may not read any more.
func (s *Service) render(ctx context.Context, address addressRow, pending []pendingRow) ([]RenderedDelivery, error) {
	ids := make([]string, len(pending))
	for i, p := range pending {
		ids[i] = p.RecordID
	}
	readable, err := s.readRecords(ctx, address, ids)
	if err != nil {
		return nil, err
	}
	var outgoing []RenderedDelivery
	var skipped []string
	for _, p := range pending {
		record, ok := readable[p.RecordID]
		if !ok || !slices.Contains(address.Events, p.EventType) {
			skipped = append(skipped, p.DeliveryID)
			continue
		}
		body, err := p.body(record)
		if err != nil {
			return nil, err
		}
		d := RenderedDelivery{
			DeliveryID: p.DeliveryID, Seq: p.Seq, RecordID: p.RecordID, EventID: p.EventID, EventType: p.EventType,
			Attempts: p.Attempts, AttemptsBefore: p.AttemptsBefore, EventAt: p.CreatedAt.Time, Body: body,
		}
		if p.TraceParent != nil {
			d.TraceParent = *p.TraceParent
		}
		outgoing = append(outgoing, d)
	}
	if len(skipped) > 0 {
		if _, err := s.pool.Exec(ctx, `
			UPDATE deliveries SET status = 'skipped', next_attempt_at = NULL, finished_at = $2
			WHERE id = ANY ($1) AND status IN ('pending', 'retrying')`, skipped, s.now()); err != nil {
			return nil, s.translate(err)
		}
	}
	return outgoing, nil
}

func (p pendingRow) body(r rendered) ([]byte, error) {
	data := p.Data
	if data == nil {
		data = map[string]any{}
	}
	data[r.name] = r.record
	data["actor"] = p.actor()
	return Encode(envelope{ID: p.EventID, Type: p.EventType, CreatedAt: p.CreatedAt, OrganizationID: p.OrganizationID, Data: data})
}

// actor is data.actor: feedback is resolved by a person in the app, who is named
// as a user too (spec section 6, request).
func (p pendingRow) actor() map[string]string {
	actor := map[string]string{"identity_id": p.ActorID}
	if p.EventType == models.EventIssueResolved {
		actor["user_id"] = p.ActorID
	}
	return actor
}
