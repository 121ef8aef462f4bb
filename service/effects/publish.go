package effects

import (
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// DeliveryID is SQL that makes an id like models.NewID in Postgres, from the id of
// the event and the 16 bytes of a random UUID: 13 digits of time
// and UUID version from the event, one digit with the UUID variant, 12 random ones.
// The bytes used avoid the fixed bits of the UUID. Base64 has 64 digits of equal
// probability: in lower case each letter has twice that of a digit, so replacing
// "ilou" by 0 to 3 and "0123+/" by 4 to 9 leaves 32 of equal probability.
// It costs about 3 µs a row, half of it for the UUID.
func DeliveryID(event, random string) string {
	return `'dlv_' || substr(` + event + `, 5, 13) || substr('89abrstv', (get_byte(` + random + `, 15) & 7) + 1, 1) ||
			translate(lower(encode(substr(` + random + `, 1, 6) || substr(` + random + `, 10, 3), 'base64') COLLATE "C"), 'ilou0123+/', '0123456789')`
}

var (
	// PublishWorkOrder publishes events of work orders.
	PublishWorkOrder = publication("work_orders", models.ScopeWorkOrdersRead, access.ReadableWorkOrder,
		`SELECT w.organization_id
				UNION SELECT n.organization_id FROM work_order_assignees x
					JOIN identities n ON n.id = x.identity_id WHERE x.work_order_id = w.id`)
	publishFeedback = publication("feedback", models.ScopeIssuesRead, access.ReadableFeedback, "w.organization_id")
)

// publication inserts a delivery for each address that gets the event, and the event
// if any address does. An address gets it if it subscribes to the type, and its
// integration has the scope and may read the record (api.md
// 6.3). Integrations of service companies with people assigned count too.
// The query returns addresses that no dispatcher has leased, unless they do not send: their deliveries are held. Whether an integration may read the record is checked once,
// regardless of its number of addresses.
//
// FOR KEY SHARE waits for a transaction that deletes an address, which then gets nothing. Deliveries have no foreign
// key to addresses: deleting one would wait for all of its deliveries.
func publication(table string, scope models.Scope, readable func(w, actor string) string, organizations string) string {
	return `
	WITH readers AS MATERIALIZED (
		SELECT i.id AS integration_id, ` + access.UsableIntegration + ` AS usable
		FROM ` + table + ` w
		CROSS JOIN LATERAL (SELECT DISTINCT h.integration_id FROM webhooks h
			WHERE h.organization_id IN (` + organizations + `) AND @type::text = ANY (h.events)) subscriber
		JOIN integrations i ON i.id = subscriber.integration_id
		JOIN organizations o ON o.id = i.organization_id
		JOIN plans p ON p.organization_id = i.organization_id
		WHERE w.id = @record AND '` + string(scope) + `' = ANY (i.scopes) AND ` + readable("w", "i.id") + `
	), recipients AS (
		SELECT h.id AS webhook_id, h.organization_id, h.enabled AND r.usable AS sends, uuid_send(gen_random_uuid()) AS random
		FROM readers r
		JOIN webhooks h ON h.integration_id = r.integration_id AND @type = ANY (h.events)
		ORDER BY h.id
		FOR KEY SHARE OF h
	), event AS (
		INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at, trace_parent)
		SELECT @event::text, @organization, @type, @record, @actor, @data::jsonb, @at::timestamptz, @trace_parent WHERE EXISTS (SELECT FROM recipients)
	), deliveries AS (
		INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, created_at, queued_at)
		SELECT ` + DeliveryID("@event", "r.random") + `, @event, r.webhook_id, @record, @at, @at FROM recipients r ORDER BY r.webhook_id
	)
	SELECT r.organization_id, r.webhook_id FROM recipients r
	WHERE r.sends AND NOT EXISTS (
		SELECT FROM webhook_leases m WHERE m.webhook_id = r.webhook_id AND m.leased_until > @at)`
}

// publish queues the event and its deliveries. Without an address that gets it there is no event.
func publish(t *store.Tx, c Change, e Event) error {
	// The id's millisecond is the change's in the log, by which a record's deliveries are found. Ids are the order of
	// events and their deliveries, within one write, too.
	id, err := models.NewID(models.PrefixEvent, t.At.Add(time.Duration(t.Published)*time.Microsecond), t.Random)
	t.Published++
	if err != nil {
		return err
	}
	if e.Data == nil {
		e.Data = models.JSON{}
	}
	query := PublishWorkOrder
	if models.IsID(c.RecordID, models.PrefixFeedback) {
		query = publishFeedback
	}
	t.QueueRows(func(rows pgx.Rows) error {
		var organizationID, webhookID string
		_, err := pgx.ForEachRow(rows, []any{&organizationID, &webhookID}, func() error {
			t.Wakes = append(t.Wakes, store.NewWakeTarget(organizationID, webhookID))
			return nil
		})
		return err
	}, query, pgx.NamedArgs{
		"event": id, "type": e.Type, "record": c.RecordID, "at": t.At, "organization": c.OrganizationID, "actor": c.Actor.IdentityID,
		"data": e.Data, "trace_parent": t.TraceParent,
	})
	return nil
}
