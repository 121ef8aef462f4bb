package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
)

// RenderedDelivery is a delivery rendered for its next attempt.
type RenderedDelivery struct {
	DeliveryID string
	RecordID   string
	EventID    string
	EventType  models.EventType `db:"-"`
	// Generation counts the redeliveries before.
	Generation int
	// Attempts counts the earlier attempts, AttemptsBefore those among them in earlier runs
	// of the retry schedule.
	Attempts, AttemptsBefore int
	// EventAt is the time of the event.
	EventAt time.Time `db:"-"`
	// TraceParent is the span of the call that caused the event (W3C traceparent),
	// "" if that call's trace is not kept.
	TraceParent string `db:"-"`
	// Body is the event with the record as it is now.
	Body []byte `db:"-"`
}

// envelope is the body of an event (api.md 6.5).
type envelope struct {
	ID             string           `json:"id"`
	Type           models.EventType `json:"type"`
	CreatedAt      models.Time      `json:"created_at"`
	OrganizationID string           `json:"organization_id"`
	Data           any              `json:"data"`
	// Test is absent from events that happened.
	Test bool `json:"test,omitzero"`
}

// eventData is the data of an event about a record.
type eventData struct {
	Actor eventActor `json:"actor"`
	ownData
	WorkOrder *models.WorkOrderRecord `json:"work_order,omitempty"`
	Issue     *models.FeedbackRecord  `json:"issue,omitempty"`
}

// eventActor is who made the change. Only people resolve feedback, so that event has a user_id.
type eventActor struct {
	IdentityID string `json:"identity_id"`
	UserID     string `json:"user_id,omitempty"`
}

// ownData is what is stored with an event: what its record does not show.
type ownData struct {
	PreviousStatus models.WorkOrderStatus `json:"previous_status,omitempty"`
	Status         models.WorkOrderStatus `json:"status,omitempty"`
	Fields         []string               `json:"fields,omitempty"`
	Added          *people.Roles          `json:"added,omitempty"`
	Removed        *people.Roles          `json:"removed,omitempty"`
}

var skipQuery = closing(models.DeliverySkipped, "$1::text[]", "true", "workflow")

// claimedEvent is the event of a delivery to send.
type claimedEvent struct {
	ID             string
	Type           models.EventType
	OrganizationID string
	ActorID        string
	Data           ownData
	CreatedAt      models.Time
	TraceParent    *string
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
		d.EventType, d.EventAt, d.TraceParent = event.Type, event.CreatedAt.Time, store.TextOf(event.TraceParent)
		if d.Body, err = event.body(record); err != nil {
			return nil, err
		}
		rendered = append(rendered, d)
	}
	if len(skipped) > 0 {
		if err := s.skip(ctx, address.OrganizationID, skipped); err != nil {
			return nil, err
		}
	}
	return rendered, nil
}

// skip marks deliveries of the organization skipped and wakes their open workflows. The sweep wakes those that this
// process does not.
func (s *Webhooks) skip(ctx context.Context, organizationID string, ids []string) error {
	var wakes []store.WakeTarget
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	pipeline.Queue(`INSERT INTO dirty_records (record_id, since) SELECT id, $2 FROM open_deliveries WHERE id = ANY ($1) AND workflow
		ON CONFLICT (record_id) DO NOTHING`, ids, s.CurrentTime())
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

// eventRecord is the record of an event: one of them is set.
type eventRecord struct {
	workOrder *models.WorkOrderRecord
	feedback  *models.FeedbackRecord
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
func forReader(table string, columns func(people string) string, readable func(w, actor string) string) map[bool]string {
	return store.ByPeople(func(people string) string {
		return `SELECT ` + columns(people) + `, ` + readable("w", "$2") + ` AS readable FROM ` + table + ` w WHERE w.id = ANY ($1)`
	})
}

// readClaimed returns the events and the records of the deliveries, by id: the records as
// they are now, except those that the address's integration may not read.
func (s *Webhooks) readClaimed(ctx context.Context, address addressRow, claimed []RenderedDelivery) (map[string]claimedEvent, map[string]eventRecord, error) {
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
	events, records := map[string]claimedEvent{}, map[string]eventRecord{}
	for _, e := range found {
		events[e.ID] = e
	}
	scopes, _ := models.ScopesOf(address.Scopes)
	for i, row := range workOrders {
		if row.Readable && scopes.Has(models.ScopeWorkOrdersRead) {
			records[row.ID] = eventRecord{workOrder: workOrders[i].Shown()}
		}
	}
	for i, row := range feedback {
		if row.Readable && scopes.Has(models.ScopeIssuesRead) {
			records[row.ID] = eventRecord{feedback: feedback[i].Shown()}
		}
	}
	return events, records, nil
}

// body encodes the event with the record.
func (e claimedEvent) body(r eventRecord) ([]byte, error) {
	data := eventData{Actor: eventActor{IdentityID: e.ActorID}, ownData: e.Data, WorkOrder: r.workOrder, Issue: r.feedback}
	if e.Type == models.EventIssueResolved {
		data.Actor.UserID = e.ActorID
	}
	return store.Encode(envelope{ID: e.ID, Type: e.Type, CreatedAt: e.CreatedAt, OrganizationID: e.OrganizationID, Data: data})
}
