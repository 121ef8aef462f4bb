package service

import (
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

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
	publishWorkOrder = &batch.Statement{Stage: stageDeliveries, SQL: with(publishQuery, "ids", listOf("u.ids"), "table", "work_orders", "scope", string(models.ScopeWorkOrdersRead),
		"organizations", `SELECT w.organization_id
				UNION SELECT n.organization_id FROM work_order_assignees x
					JOIN identities n ON n.id = x.identity_id WHERE x.work_order_id = w.id`,
		"usable", with(usableIntegration, "i", "i", "o", "o", "p", "p"),
		"readable", with(readableWorkOrder, "w", "w", "actor", "i.id"))}
	publishFeedback = &batch.Statement{Stage: stageDeliveries, SQL: with(publishQuery, "ids", listOf("u.ids"), "table", "feedback", "scope", string(models.ScopeIssuesRead),
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
	if t.Shared() && c.addresses > sharedAddresses {
		return batch.ErrRunAlone
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
	t.QueueBulkRows(publish, func(row pgx.CollectableRow) error {
		unattended, err := pgx.RowTo[string](row)
		t.wakes = append(t.wakes, WakeTarget{TargetWebhook, unattended})
		return err
	}, eventID, string(e.kind), c.recordID, t.at.Time, joined(deliveryIDs))
	return nil
}
