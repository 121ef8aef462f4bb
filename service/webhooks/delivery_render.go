package webhooks

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/records"
	"millwright/service/store"
)

// RenderedDelivery is a delivery rendered for its next attempt.
type RenderedDelivery struct {
	DeliveryID string
	RecordID   string
	EventID    string
	EventType  models.EventType `db:"-"`
	// Seq orders the deliveries of an address.
	Seq int64
	// Attempts counts the earlier attempts, AttemptsBefore those among them in earlier runs
	// of the retry schedule.
	Attempts, AttemptsBefore int
	// Retry is true if it is a retry, not the first attempt of a run of the schedule.
	Retry bool
	// EventAt is the time of the event.
	EventAt time.Time `db:"-"`
	// TraceParent is the span of the call that caused the event (W3C traceparent),
	// "" if that call's trace is not kept.
	TraceParent string `db:"-"`
	// Body is the event with the record as it is now.
	Body []byte `db:"-"`
}

// envelope is the body of a test (api.md 6.5). Events that happened have no test:
// claimedEvent writes them.
type envelope struct {
	ID             string           `json:"id"`
	Type           models.EventType `json:"type"`
	CreatedAt      models.Time      `json:"created_at"`
	OrganizationID string           `json:"organization_id"`
	Data           map[string]any   `json:"data"`
	Test           bool             `json:"test"`
}

var skipQuery = closing(models.DeliverySkipped, "$1::text[]", "true", "coalesce(workflow, false)")

// claimedEvent is the event of a delivery to send.
type claimedEvent struct {
	ID             string
	Type           models.EventType
	OrganizationID string
	ActorID        string
	// Data is a JSON object, as Postgres encodes it.
	Data        []byte
	CreatedAt   models.Time
	TraceParent *string
}

// claimedEventsQuery reads the events $1, which are between $2 and $3. The bounds spare
// opening the partitions of other days, which took longer than the rest. LATERAL and LIMIT
// read each event along the primary key, whatever the planner knows of the table.
const claimedEventsQuery = `
	SELECT e.id, e.type, e.organization_id, e.actor_id, e.data, e.created_at, e.trace_parent
	FROM unnest($1::text[]) u (id)
	CROSS JOIN LATERAL (SELECT * FROM events WHERE id = u.id AND id >= $2 AND id <= $3 LIMIT 1) e`

// render builds the bodies of the deliveries with their records as they are now.
// It skips those that the address does not subscribe to or that its integration
// may no longer read. Deliveries whose event has expired since are left to its removal.
func (s *Webhooks) render(ctx context.Context, address addressRow, claimed []RenderedDelivery) ([]RenderedDelivery, error) {
	events, readable, err := s.readClaimed(ctx, address, claimed)
	if err != nil {
		return nil, err
	}
	var rendered []RenderedDelivery
	var skipped []string
	for _, d := range claimed {
		event, stored := events[d.EventID]
		if !stored {
			continue
		}
		record, ok := readable[d.RecordID]
		if !ok || !slices.Contains(address.Events, event.Type) {
			skipped = append(skipped, d.DeliveryID)
			continue
		}
		d.EventType, d.EventAt, d.TraceParent, d.Body = event.Type, event.CreatedAt.Time, store.TextOf(event.TraceParent), event.body(record)
		rendered = append(rendered, d)
	}
	if len(skipped) > 0 {
		if err := s.skip(ctx, address.OrganizationID, skipped); err != nil {
			return nil, err
		}
	}
	return rendered, nil
}

// skip marks deliveries of the organization skipped and wakes their open workflows.
func (s *Webhooks) skip(ctx context.Context, organizationID string, ids []string) error {
	var wakes []store.WakeTarget
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	pipeline.Queue(skipQuery, ids).Query(func(rows pgx.Rows) error {
		var id string
		var workflow bool
		_, err := pgx.ForEachRow(rows, []any{&id, &workflow}, func() error {
			if workflow {
				wakes = append(wakes, store.NewWakeTarget(organizationID, id))
			}
			return nil
		})
		return err
	})
	if err := s.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return s.Translate(err)
	}
	s.Committed(ctx, wakes)
	return nil
}

// namedRecord is a record under its name in an event's data.
type namedRecord struct {
	name   string
	record store.JSONRecord
}

type workOrderForReader struct {
	records.WorkOrderRow
	Readable bool
}

type feedbackForReader struct {
	records.FeedbackRow
	Readable bool
}

var (
	workOrderForReaderQuery = forReader("work_orders", records.WorkOrderColumns, access.ReadableWorkOrder)
	feedbackForReaderQuery  = forReader("feedback", records.FeedbackColumns, access.ReadableFeedback)
)

// forReader is the query for the records of the table with the ids $1, each with
// whether the integration $2 may read it.
func forReader(table, columns, readable string) map[bool]string {
	return store.ByPeople(func(people string) string {
		return store.Fill(`SELECT `+columns+`, `+readable+` AS readable FROM `+table+` {w} WHERE {w}.id = ANY ($1)`,
			"w", "w", "people", people, "actor", "$2")
	})
}

// readClaimed returns the events and the records of the deliveries, by id: the records as
// they are now, except those that the address's integration may not read.
func (s *Webhooks) readClaimed(ctx context.Context, address addressRow, claimed []RenderedDelivery) (map[string]claimedEvent, map[string]namedRecord, error) {
	ids, eventIDs := make([]string, len(claimed)), make([]string, len(claimed))
	for i, d := range claimed {
		ids[i], eventIDs[i] = d.RecordID, d.EventID
	}
	var found []claimedEvent
	var workOrders []workOrderForReader
	var feedback []feedbackForReader
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	store.QueueAll(pipeline, &found, claimedEventsQuery, eventIDs, slices.Min(eventIDs), slices.Max(eventIDs))
	store.QueueAll(pipeline, &workOrders, workOrderForReaderQuery[address.ShowPeople], ids, address.IntegrationID)
	if slices.ContainsFunc(ids, func(id string) bool { return models.IsID(id, models.PrefixFeedback) }) {
		store.QueueAll(pipeline, &feedback, feedbackForReaderQuery[address.ShowPeople], ids, address.IntegrationID)
	}
	if err := s.Pool.SendBatch(ctx, pipeline).Close(); err != nil {
		return nil, nil, s.Translate(err)
	}
	events, records := map[string]claimedEvent{}, map[string]namedRecord{}
	for _, e := range found {
		events[e.ID] = e
	}
	scopes, _ := models.ScopesOf(address.Scopes)
	for i, row := range workOrders {
		if row.Readable && scopes.Has(models.ScopeWorkOrdersRead) {
			records[row.ID] = namedRecord{"work_order", &workOrders[i].WorkOrderRow}
		}
	}
	for i, row := range feedback {
		if row.Readable && scopes.Has(models.ScopeIssuesRead) {
			records[row.ID] = namedRecord{"issue", &feedback[i].FeedbackRow}
		}
	}
	return events, records, nil
}

// body is the envelope with the record and the actor, and what the event's own data has
// besides them (api.md 6.5).
func (e claimedEvent) body(r namedRecord) []byte {
	b := make([]byte, 0, store.RecordSize)
	b = store.AppendText(b, `{"id":`, e.ID)
	b = store.AppendText(b, `,"type":`, e.Type)
	b = store.AppendTime(b, `,"created_at":`, &e.CreatedAt)
	b = store.AppendText(b, `,"organization_id":`, e.OrganizationID)
	b = store.AppendText(b, `,"data":{"actor":{"identity_id":`, e.ActorID)
	if e.Type == models.EventIssueResolved { // only people resolve feedback
		b = store.AppendText(b, `,"user_id":`, e.ActorID)
	}
	b = append(b, '}')
	if own := bytes.TrimSpace(e.Data); len(own) > len("{}") {
		b = append(append(b, ','), own[1:len(own)-1]...)
	}
	b = r.record.AppendJSON(append(append(append(b, `,"`...), r.name...), `":`...))
	return append(b, "}}"...)
}
