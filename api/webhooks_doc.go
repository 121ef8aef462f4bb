package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
)

// deliveryText describes what all webhooks share.
const deliveryText = "Respond with 2xx within 10 seconds; redirects are not followed. A failed delivery is retried after 1 minute, " +
	"5 minutes, 30 minutes, 2, 6, 12 and 24 hours. The same event may arrive twice, and events may arrive out of order: " +
	"order a record's events by its `changed_at`. To skip your own changes, compare `data.actor.identity_id` with the `identity_id` of GET /me. " +
	"Respond to events with `test` and do nothing else: their record is made up."

// event is the body of a delivery with data of type D (api.md 6.5).
type event[D any] struct {
	ID             string           `json:"id" doc:"Event id, as in Service-Event-Id and webhook-id." example:"evt_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Type           models.EventType `json:"type" doc:"Event type, as in Service-Event-Type."`
	CreatedAt      models.Time      `json:"created_at" format:"date-time" doc:"When it happened." example:"2026-03-02T12:15:30.000Z"`
	OrganizationID string           `json:"organization_id" doc:"The organization in which it happened." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3ta"`
	Data           D                `json:"data" doc:"The event's data."`
	Test           bool             `json:"test,omitempty" doc:"True if someone sent the event to test the address: its record is made up, and nothing happened. Events that happened do not have it."`
}

// eventActor identifies who made a change.
type eventActor struct {
	IdentityID string `json:"identity_id" doc:"Identity id of who made the change." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3td"`
}

// resolvedActor identifies who resolved feedback.
type resolvedActor struct {
	UserID     string `json:"user_id" doc:"Identity id of the person who resolved it." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	IdentityID string `json:"identity_id" doc:"The same id, as in other events." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

// eventWorkOrder is the data of work_order.created.
type eventWorkOrder struct {
	WorkOrder models.WorkOrderRecord `json:"work_order" doc:"The work order as GET /work-orders/{id} returns it at delivery time."`
	Actor     eventActor             `json:"actor" doc:"Who made the change."`
}

// eventWorkOrderUpdate is the data of work_order.updated.
type eventWorkOrderUpdate struct {
	Fields    []string               `json:"fields" nullable:"false" uniqueItems:"true" minItems:"1" enum:"title,description,priority,target_date" doc:"The fields that changed."`
	WorkOrder models.WorkOrderRecord `json:"work_order" doc:"The work order as GET /work-orders/{id} returns it at delivery time."`
	Actor     eventActor             `json:"actor" doc:"Who made the change."`
}

// eventWorkOrderStatus is the data of every event that reports a change of status.
type eventWorkOrderStatus struct {
	PreviousStatus models.WorkOrderStatus `json:"previous_status" enum:"open,in_progress,sent_to_inspection,back_from_inspection,complete,cancelled,on_hold" doc:"Status code before the change." example:"in_progress"`
	Status         models.WorkOrderStatus `json:"status" enum:"open,in_progress,sent_to_inspection,back_from_inspection,complete,cancelled,on_hold" doc:"Status code after the change." example:"complete"`
	WorkOrder      models.WorkOrderRecord `json:"work_order" doc:"The work order as GET /work-orders/{id} returns it at delivery time."`
	Actor          eventActor             `json:"actor" doc:"Who made the change."`
}

// eventAssignees is the data of work_order.assignees_changed.
type eventAssignees struct {
	Added     eventRoles             `json:"added" doc:"The identities that were added."`
	Removed   eventRoles             `json:"removed" doc:"The identities that were removed."`
	WorkOrder models.WorkOrderRecord `json:"work_order" doc:"The work order as GET /work-orders/{id} returns it at delivery time."`
	Actor     eventActor             `json:"actor" doc:"Who made the change."`
}

// eventRoles lists identities by role.
type eventRoles struct {
	Assignees   []string `json:"assignees" nullable:"false" uniqueItems:"true" doc:"Identity ids of workers."`
	Consultants []string `json:"consultants" nullable:"false" uniqueItems:"true" doc:"Identity ids of consultants."`
}

// eventIssue is the data of issue.created.
type eventIssue struct {
	Issue models.FeedbackRecord `json:"issue" doc:"The feedback as GET /issues/{id} returns it at delivery time."`
	Actor eventActor            `json:"actor" doc:"Who gave it."`
}

// eventIssueResolved is the data of issue.resolved.
type eventIssueResolved struct {
	Issue models.FeedbackRecord `json:"issue" doc:"The feedback as GET /issues/{id} returns it at delivery time."`
	Actor resolvedActor         `json:"actor" doc:"Who resolved it."`
}

// eventPing is the data of ping.
type eventPing struct {
	Message string `json:"message" doc:"A sentence for people." example:"This is a test from Millwright."`
}

// documentWebhooks documents every event type with its payload, its headers and an example. Generators
// drop schemas that no path uses: a callback of GET /me, which describes the receiving integration, has them all.
func (a *API) documentWebhooks() {
	document := a.huma.OpenAPI()
	document.Webhooks = map[string]*huma.PathItem{}
	all := &huma.Schema{Description: "An event of any type.", Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}}}
	for _, e := range documentedEvents() {
		a.addEvent(e)
		ref := schemaPrefix + eventSchemaName(e.kind)
		all.OneOf = append(all.OneOf, &huma.Schema{Ref: ref})
		all.Discriminator.Mapping[string(e.kind)] = ref
	}
	document.Components.Schemas.Map()["Event"] = all
	document.Paths["/me"].Get.Callbacks = map[string]map[string]*huma.PathItem{"event": {"https://receiver.example.com/webhooks": {Post: &huma.Operation{
		OperationID: "on-event", Tags: []string{tagWebhooks}, Summary: "Any event", Description: "Sent to the integration's webhook addresses; see Webhooks.",
		Security:    []map[string][]string{},
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{jsonMedia: {Schema: &huma.Schema{Ref: schemaPrefix + "Event"}}}},
		Responses:   deliveryResponses(),
	}}}}
}

// deliveryResponses are what receivers respond with.
func deliveryResponses() map[string]*huma.Response {
	return map[string]*huma.Response{
		"2XX": {Description: "The receiver accepted it."},
		"4XX": {Description: "The delivery failed and will be retried on schedule, as after any other response."},
	}
}

// documentedEvent is an event type of the documentation.
type documentedEvent struct {
	kind    models.EventType
	summary string
	// example is an event[D].
	example any
}

func describeEvent[D any](kind models.EventType, summary string, minutes int, data D) documentedEvent {
	return documentedEvent{kind, summary, event[D]{
		ID: exampleEvent, Type: kind, CreatedAt: exampleAt(minutes), OrganizationID: exampleOrganization, Data: data, Test: kind == models.EventPing,
	}}
}

func documentedEvents() []documentedEvent {
	erp := eventActor{exampleERP}
	completed := eventWorkOrderStatus{models.StatusInProgress, models.StatusComplete, workOrderIn(models.StatusComplete, 31), erp}
	updated := workOrderIn(models.StatusInProgress, 10)
	updated.Title, updated.Priority = "Replace both filters", models.PriorityHigh
	assigned := workOrderIn(models.StatusOpen, 5)
	assigned.Assignees = append(assigned.Assignees, exampleBob)

	return []documentedEvent{
		describeEvent(models.EventWorkOrderCreated, "A work order was created", 0, eventWorkOrder{workOrderExample(), erp}),
		describeEvent(models.EventWorkOrderUpdated, "Title, description, priority or target date changed", 10,
			eventWorkOrderUpdate{[]string{"title", "priority"}, updated, erp}),
		describeEvent(models.EventWorkOrderStatusChanged, "The status changed", 31, completed),
		describeEvent(models.EventWorkOrderCompleted, "A work order was completed", 31, completed),
		describeEvent(models.EventWorkOrderSentToInspection, "A work order was completed and sent to its consultants", 31,
			eventWorkOrderStatus{models.StatusInProgress, models.StatusSentToInspection, workOrderIn(models.StatusSentToInspection, 31), erp}),
		describeEvent(models.EventWorkOrderCancelled, "A work order was cancelled", 20,
			eventWorkOrderStatus{models.StatusOpen, models.StatusCancelled, workOrderIn(models.StatusCancelled, 20), erp}),
		describeEvent(models.EventWorkOrderAssigneesChanged, "Workers or consultants were added or removed", 5, eventAssignees{
			Added: eventRoles{Assignees: []string{exampleBob}, Consultants: []string{}}, Removed: eventRoles{Assignees: []string{}, Consultants: []string{}},
			WorkOrder: assigned, Actor: erp,
		}),
		describeEvent(models.EventIssueCreated, "Feedback was given", 0, eventIssue{feedbackExample(), erp}),
		describeEvent(models.EventIssueResolved, "Feedback was resolved", 40, eventIssueResolved{resolvedExample(), resolvedActor{exampleAnn, exampleAnn}}),
		describeEvent(models.EventPing, "Someone pressed Send test", 0, eventPing{"This is a test from Millwright."}),
	}
}

// addEvent documents one event type. In its schema, type has only this value.
func (a *API) addEvent(e documentedEvent) {
	kind, document := e.kind, a.huma.OpenAPI()
	schema := huma.SchemaFromType(document.Components.Schemas, reflect.TypeOf(e.example))
	schema.Properties["type"].Enum = []any{kind}
	name := eventSchemaName(kind)
	document.Components.Schemas.Map()[name] = schema
	document.Webhooks[string(kind)] = &huma.PathItem{Post: &huma.Operation{
		OperationID: "on-" + strings.NewReplacer(".", "-", "_", "-").Replace(string(kind)),
		Tags:        []string{tagWebhooks},
		Summary:     e.summary,
		Description: "Sent to the integration's addresses that subscribe to `" + string(kind) + "`" + readableText(kind) + ".",
		Security:    []map[string][]string{},
		Parameters:  deliveryHeaders(kind),
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/json": {
				Schema:   &huma.Schema{Ref: schemaPrefix + name},
				Examples: examplesOf(map[string]any{"event": e.example}),
			},
		}},
		Responses: deliveryResponses(),
	}}
}

// readableText describes which addresses get an event of the type.
func readableText(kind models.EventType) string {
	switch {
	case strings.HasPrefix(string(kind), "work_order."):
		return ", if the integration may read the work order (scope `work_orders:read`)"
	case strings.HasPrefix(string(kind), "issue."):
		return ", if the integration may read the feedback (scope `issues:read`)"
	}
	return " when someone sends a test"
}

// eventSchemaName names an event's schema: WorkOrderCreatedEvent.
func eventSchemaName(kind models.EventType) string {
	name := ""
	for word := range strings.FieldsFuncSeq(string(kind), func(r rune) bool { return r == '.' || r == '_' }) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name + "Event"
}

// deliveryHeaders are the headers of a delivery (api.md 6.4).
func deliveryHeaders(kind models.EventType) []*huma.Param {
	header := func(name, description string, example any) *huma.Param {
		return &huma.Param{Name: name, In: "header", Required: true, Description: description, Example: example, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	eventType := header("Service-Event-Type", "Event type.", string(kind))
	eventType.Schema.Enum = []any{kind}
	return []*huma.Param{
		header("Service-Event-Id", "Event id: the same for every attempt.", exampleEvent),
		eventType,
		header("Service-Signature", "`t=<unix time>,v1=<signature>`: the hexadecimal HMAC-SHA256, keyed with the address's secret as displayed, of t, a dot "+
			"and the raw body. After a secret is rotated there are two `v1=` for a day; one of them must match. Compare in constant time, before "+
			"parsing the body, and reject deliveries whose t differs from your clock by more than 5 minutes.",
			"t=1772453730,v1=3a1d0c9c6f0e4b5d8a7f2e1c0b9a8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c"),
		header("webhook-id", "Event id (Standard Webhooks).", exampleEvent),
		header("webhook-timestamp", "Seconds of Unix time (Standard Webhooks).", "1772453730"),
		header("webhook-signature", "`v1,<signature>` (Standard Webhooks): the base64 HMAC-SHA256, keyed with the secret's decoded bytes, of id, timestamp and raw body with dots between them.",
			"v1,OcWk3WvBkXJ2rFQ8dYb1mZ7nT4uLpA9sHhGjKqEoRxI="),
	}
}
