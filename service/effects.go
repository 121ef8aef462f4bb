package service

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// effects is what every write leaves beside its record (spec section 1: the same
// effects as the app): history, a Log Record, notices and events.
type effects struct {
	actor          Actor
	organizationID string
	recordID       string
	// action names the change in history and log: work_order.created, …
	action string
	// changes are {"field": {"from": …, "to": …}}.
	changes models.JSON
	// notices are told to people, one group a kind.
	notices []notice
	// events happened, with their extra fields, in order.
	events []domainEvent
	// addresses is how many webhook addresses may want the events at the most.
	addresses int
}

// notice is a kind of notice and the identities it is for; teams stand for their
// members, a service company for its people with incoming work orders.
type notice struct {
	kind       string
	identities []string
}

// domainEvent is an event with the fields its type adds to data.
type domainEvent struct {
	kind models.EventType
	data models.JSON
}

// fromTo is a changed field in history; a new record's fields come from nil.
func fromTo(from, to any) models.JSON { return models.JSON{"from": from, "to": to} }

// record queues everything the change leaves. The record itself must be queued before.
func (t *tx) record(c effects) error {
	if err := t.insert(&models.History{
		OrganizationID: c.organizationID,
		RecordID:       c.recordID,
		ActorID:        c.actor.IdentityID,
		Action:         c.action,
		Changes:        c.changes,
		CreatedAt:      t.at,
	}); err != nil {
		return err
	}
	if err := t.log(c.actor, c.organizationID, c.action, c.recordID); err != nil {
		return err
	}
	for _, n := range c.notices {
		t.notify(c, n)
	}
	for _, e := range c.events {
		if err := t.publish(c, e); err != nil {
			return err
		}
	}
	if c.concernsWorkflow() {
		t.markDirty(c.recordID)
	}
	return nil
}

// concernsWorkflow reports whether the record's workflow has to look: people are
// told, or what it waits by is new. Texts and answers do not concern it.
func (c effects) concernsWorkflow() bool {
	_, status := c.changes["status"] // also of a new record
	_, target := c.changes["target_date"]
	return status || target || slices.ContainsFunc(c.notices, func(n notice) bool { return len(n.identities) > 0 })
}

// markDirty queues the mark that the record's workflow has to look, and has it
// poked. A mark that is there already is written again: whoever takes it away
// waits for this transaction then, and sees what it changed.
func (t *tx) markDirty(recordID string) {
	t.queueBulk(dirtyRecords, []any{recordID, t.at.Time})
	t.wakes = append(t.wakes, wakeTargetOf(recordID))
}

var dirtyRecords = &bulkStatement{stage: stageDirty, sql: `
	INSERT INTO looks_owed (record_id, since) SELECT id, at FROM unnest($1::text[], $2::timestamptz[]) u (id, at)
	ON CONFLICT (record_id) DO UPDATE SET since = excluded.since`}

// log queues a Log Record of what the actor did.
func (t *tx) log(actor Actor, organizationID, action, recordID string) error {
	row := models.LogRecord{
		OrganizationID: organizationID, ActorName: actor.LogName(), Action: action, RecordID: recordID, CreatedAt: t.at,
	}
	if actor.IdentityID != "" {
		row.ActorID = &actor.IdentityID
	}
	return t.insert(&row)
}

// peopleOf selects the ids of the people who are one of {identities} or are reached
// by one: a team by its members, a service company by its people with incoming
// wakes orders.
const peopleOf = `SELECT unnest({identities})
				UNION SELECT m.member_id FROM team_members m WHERE m.team_id = ANY ({identities})
				UNION SELECT r.actor_id FROM organization_rights r
					WHERE r.organization_id = ANY ({identities}) AND 'incoming_work_orders' = ANY (r.grants)`

var insertNotices = &bulkStatement{stage: stageNotices, sql: `
	INSERT INTO notices (organization_id, person_id, kind, record_id, created_at)
	SELECT p.organization_id, p.id, u.kind, u.record, u.at
	FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::text[])
		WITH ORDINALITY u (kind, record, at, identities, actor, nth)
	CROSS JOIN LATERAL (` + with(peopleOf, "identities", listOf("u.identities")) + `) reached (id)
	JOIN people p ON p.id = reached.id AND p.id <> u.actor
	ORDER BY u.nth`}

// notify queues one notice for each person concerned, never for the one who acted.
func (t *tx) notify(c effects, n notice) {
	if len(n.identities) > 0 {
		t.queueBulk(insertNotices, []any{n.kind, c.recordID, t.at.Time, joined(n.identities), c.actor.IdentityID})
	}
}

// An address gets an event when it subscribed to the type, its integration may
// use the service, has the scope, and may read the record (spec section 6,
// event types). Integrations of service companies whose people are assigned
// are asked too. While the address is off the delivery is held. An address that
// was made since they were counted, the newest, has no id waiting for its delivery.
// The lock, which the foreign key takes anyway, waits for an address that is being
// turned on or deleted: it is on then, or gone.
const publishQuery = `
	WITH asked AS (
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::text[])
			WITH ORDINALITY u (event_id, kind, record_id, at, ids, nth)
	), wanted AS (
		SELECT u.nth, h.id, h.enabled
		FROM asked u
		JOIN {table} w ON w.id = u.record_id
		CROSS JOIN webhooks h
		JOIN integrations i ON i.id = h.integration_id
		JOIN organizations o ON o.id = h.organization_id
		JOIN plans p ON p.organization_id = h.organization_id
		WHERE u.kind = ANY (h.events)
			AND h.organization_id IN ({organizations})
			AND {usable}
			AND '{scope}' = ANY (i.scopes)
			AND {readable}
		ORDER BY h.id
		FOR KEY SHARE OF h
	), placed AS (
		SELECT nth, id, enabled, row_number() OVER (PARTITION BY nth ORDER BY id) AS place FROM wanted
	), queued AS (
		INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, created_at)
		SELECT given.id, u.event_id, p.id, u.record_id, CASE WHEN p.enabled THEN 'pending' ELSE 'held' END, u.at
		FROM asked u
		CROSS JOIN LATERAL unnest({ids}) WITH ORDINALITY given (id, place)
		JOIN placed p ON p.nth = u.nth AND p.place = given.place
		ORDER BY u.nth, p.id
		RETURNING event_id, webhook_id, status
	)
	SELECT u.nth, q.webhook_id FROM queued q
	JOIN asked u ON u.event_id = q.event_id
	LEFT JOIN mailboxes m ON m.webhook_id = q.webhook_id AND m.attended_until > u.at
	WHERE q.status = 'pending' AND m.webhook_id IS NULL`

var (
	publishWorkOrder = &bulkStatement{stage: stageDeliveries, sql: with(publishQuery, "ids", listOf("u.ids"), "table", "work_orders", "scope", string(models.ScopeWorkOrdersRead),
		"organizations", `SELECT w.organization_id
				UNION SELECT n.organization_id FROM work_order_assignees x
					JOIN identities n ON n.id = x.identity_id WHERE x.work_order_id = w.id`,
		"usable", with(usableIntegration, "i", "i", "o", "o", "p", "p"),
		"readable", with(readableWorkOrder, "w", "w", "actor", "i.id"))}
	publishFeedback = &bulkStatement{stage: stageDeliveries, sql: with(publishQuery, "ids", listOf("u.ids"), "table", "feedback", "scope", string(models.ScopeIssuesRead),
		"organizations", "w.organization_id",
		"usable", with(usableIntegration, "i", "i", "o", "o", "p", "p"),
		"readable", with(readableFeedback, "w", "w", "actor", "i.id"))}
)

// sharedAddresses is to how many addresses a write may publish in a transaction
// that it shares: sixty writes to thousands would take longer than those who
// write elsewhere shall wait.
const sharedAddresses = 100

// publish queues the event and a delivery for each address that gets it. Where
// they are many, the write is done alone.
func (t *tx) publish(c effects, e domainEvent) error {
	if c.addresses == 0 {
		return nil
	}
	if t.group.shared && c.addresses > sharedAddresses {
		return errRunAlone
	}
	eventID, err := t.newID(models.PrefixEvent)
	if err != nil {
		return err
	}
	deliveryIDs := make([]string, c.addresses)
	for i := range deliveryIDs {
		if deliveryIDs[i], err = t.newID(models.PrefixDelivery); err != nil {
			return err
		}
	}
	data := e.data
	if data == nil {
		data = models.JSON{}
	}
	if err := t.insert(&models.Event{
		ID:             eventID,
		OrganizationID: c.organizationID,
		Type:           e.kind,
		RecordID:       c.recordID,
		ActorID:        c.actor.IdentityID,
		Data:           data,
		CreatedAt:      t.at,
		TraceParent:    t.traceParent,
	}); err != nil {
		return err
	}
	publish := publishWorkOrder
	if models.IsID(c.recordID, models.PrefixFeedback) {
		publish = publishFeedback
	}
	t.asked = append(t.asked, &queuedStatement{
		bulk: publish, rows: [][]any{{eventID, string(e.kind), c.recordID, t.at.Time, joined(deliveryIDs)}}, changes: true,
		each: func(row pgx.CollectableRow) error {
			unattended, err := pgx.RowTo[string](row)
			t.wakes = append(t.wakes, WakeTarget{TargetWebhook, unattended})
			return err
		},
	})
	return nil
}
