package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"millwright/models"
	"millwright/service"
)

// The console's organization, next to the work orders and nodes of growth.
const (
	// consoleDeliveries are those of the first address, over the time that they are kept.
	consoleDeliveries = 1_000_000
	// consoleIntegrations have three addresses each, which share a fiftieth of the events.
	consoleIntegrations = 200
	// consoleRetrying are open deliveries of another address, which fails.
	consoleRetrying = 20_000
	consolePeople   = 10_000
	consoleNotices  = 100_000
	consoleUnread   = 500
	// consoleNodes are those on which the first integration has permissions.
	consoleNodes = 300
	// firstOfFewNodes is the number of the first room of the person with permissions on fifty.
	firstOfFewNodes = 1001
)

// Tokens of the sessions: of the administrator, of people with permissions on fifty nodes and
// on one, and of one in all teams.
var consoleToken, fewNodesToken, oneNodeToken, memberToken = benchSession("the-bench"), benchSession("few-nodes"), benchSession("one-node"), benchSession("all-teams")

// benchSession returns the token of a session with a MAC of the installation's keys.
func benchSession(name string) string {
	vault, err := service.NewVault(sealingKeys)
	if err != nil {
		panic(err) // a constant
	}
	return vault.SessionToken(name)
}

// Those people but the administrator.
const (
	fewNodesPerson = "idn_20000000000000000000000002"
	oneNodePerson  = "idn_20000000000000000000000003"
)

// consoleRecords are the records whose pages are measured.
type consoleRecords struct {
	integration, webhook string
	// delivered and failed are deliveries of the webhook, changed is a work order with some.
	delivered, failed, changed string
	person                     string
	// workOrder is in progress with answers, feedback is open; everyone may read them.
	workOrder, feedback string
}

// plantConsole creates what the pages of a big customer show, and the session of an
// administrator.
func (in *installation) plantConsole(ctx context.Context) (found consoleRecords, err error) {
	if err := in.plantConsoleRecords(ctx); err != nil {
		return found, err
	}
	if err := in.plantRecent(ctx); err != nil {
		return found, err
	}
	now := time.Now().UTC()
	from := now.Add(6*time.Hour - models.EventRetention)
	if err := in.makePartitions(ctx, from.Add(-24*time.Hour), now); err != nil {
		return found, err
	}
	err = in.bulkLoad(ctx, []string{"events", "deliveries", "open_deliveries", "attempts", "log"}, func() error { return in.plantSearched(ctx, from, now) })
	if err != nil {
		return found, err
	}
	for token, person := range map[string]string{
		consoleToken: "admin", fewNodesToken: "id = '" + fewNodesPerson + "'", oneNodeToken: "id = '" + oneNodePerson + "'", memberToken: "id = '" + consoleMember + "'",
	} {
		hash := sha256.Sum256([]byte(token))
		_, err = in.pool.Exec(ctx, `
			INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent, authenticated_at, recent_until)
			SELECT $1, 'ses_' || $2, id, 'password', now(), now(), '127.0.0.1', 'bench', now(), now() + interval '1 day' FROM people WHERE `+person, hash[:], hex.EncodeToString(hash[:13]))
		if err != nil {
			return found, err
		}
	}
	found.webhook = in.webhookID
	err = in.pool.QueryRow(ctx, `
		SELECT w.integration_id, d.id, f.id, d.record_id, (SELECT id FROM people WHERE NOT admin ORDER BY id LIMIT 1),
			(SELECT id FROM work_orders WHERE inventory_id = '`+consoleNode+`' AND status = 'in_progress' AND form_id IS NOT NULL ORDER BY id DESC LIMIT 1),
			(SELECT id FROM feedback WHERE inventory_id = '`+consoleNode+`' AND status = 'open' ORDER BY id DESC LIMIT 1)
		FROM webhooks w,
			LATERAL (SELECT id, record_id FROM deliveries WHERE webhook_id = w.id AND status = 'delivered' ORDER BY seq DESC LIMIT 1) d,
			LATERAL (SELECT id FROM deliveries WHERE webhook_id = w.id AND status = 'failed' ORDER BY seq DESC LIMIT 1) f
		WHERE w.id = $1`, in.webhookID).Scan(&found.integration, &found.delivered, &found.failed, &found.changed, &found.person, &found.workOrder, &found.feedback)
	return found, err
}

// plantConsoleRecords creates integrations with their addresses, people, notices, the nodes
// of the first integration, and the counts that charts show.
func (in *installation) plantConsoleRecords(ctx context.Context) error {
	const first = `(SELECT i.*, n.name FROM integrations i JOIN identities n ON n.id = i.id WHERE n.name = 'Integration 1') i`
	named := func(n int) string { return fmt.Sprintf(` generate_series(1, %d) n, `, n) }
	err := in.execAll(ctx, []string{
		`UPDATE people SET admin = true`,
		`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
			SELECT 'idn_1' || lpad(to_hex(n), 25, '0'), i.organization_id, 'integration', 'Planned maintenance of building ' || n, now(), now()
			FROM` + named(consoleIntegrations) + first,
		`INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
			SELECT 'idn_1' || lpad(to_hex(n), 25, '0'), i.organization_id, 'cli_' || n, i.secret_hash, i.scopes FROM` + named(consoleIntegrations) + first,
		`INSERT INTO webhooks (id, organization_id, integration_id, place, url, events, secret_sealed, created_at, enabled_since, enabled, off_at, off_reason)
			SELECT 'whk_1' || lpad(to_hex(n * 3 + nth), 25, '0'), h.organization_id, 'idn_1' || lpad(to_hex(n), 25, '0'), nth + 1,
				'https://receiver-' || n || '.example.com/events/' || nth, h.events, h.secret_sealed, now(), now(),
				n % 20 <> 0, CASE WHEN n % 20 = 0 THEN now() END, CASE WHEN n % 20 = 0 THEN 'The receiver responded 410 Gone.' END
			FROM` + named(consoleIntegrations) + `generate_series(0, 2) nth, webhooks h WHERE h.id = '` + in.webhookID + `'`,
		`INSERT INTO webhook_health (webhook_id, last_success_at, failing_since, last_at, last_status)
			SELECT id, now(), CASE WHEN id LIKE '%7' THEN now() END, now(), 200 FROM webhooks ON CONFLICT (webhook_id) DO NOTHING`,
		`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
			SELECT 'idn_2' || lpad(to_hex(n), 25, '0'), i.organization_id, 'person', substr(md5(n::text), 1, 8) || ' ' || substr(md5(n::text), 9, 12), now(), now()
			FROM` + named(consolePeople) + first,
		`INSERT INTO people (id, organization_id, email)
			SELECT 'idn_2' || lpad(to_hex(n), 25, '0'), i.organization_id, substr(md5(n::text), 1, 20) || '@example.com' FROM` + named(consolePeople) + first,
		fmt.Sprintf(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail, read_at)
			SELECT p.organization_id, p.id, 'work_order.assigned', 'wo_' || lpad(to_hex(n), 26, '0'), now(), 'inbox', CASE WHEN n <= %d THEN now() END
			FROM`, consoleNotices-consoleUnread) + named(consoleNotices) + `people p WHERE p.admin ORDER BY n`,
		fmt.Sprintf(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT v.id, i.id, d.id, v.organization_id FROM (SELECT * FROM inventory_nodes WHERE name LIKE 'Room %%' ORDER BY id LIMIT %d) v, permission_definitions d, `, consoleNodes) +
			first + ` WHERE d.name = 'Full' ON CONFLICT DO NOTHING`,
		fmt.Sprintf(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT v.id, p.id, d.id, v.organization_id FROM inventory_nodes v, permission_definitions d,
				(VALUES ('`+fewNodesPerson+`', 50), ('`+oneNodePerson+`', 1), ('`+consoleMember+`', 50)) p (id, nodes)
			WHERE d.name = 'Full' AND v.name = ANY (SELECT 'Room ' || g FROM generate_series(%[1]d, %[1]d - 1 + p.nodes) g)`, firstOfFewNodes),
		// Everything is due in the order of its creation, a tenth of what is open is overdue.
		`UPDATE work_orders SET target_date = CASE WHEN number % 100 = 0 THEN now() - interval '1 day' ELSE now() + interval '1 day' END,
			priority = CASE WHEN number % 5000 = 0 THEN 'high' ELSE 'none' END WHERE status = 'open'`,
		`INSERT INTO call_hours (integration_id, hour, calls, rejected)
			SELECT id, date_trunc('hour', now()) - n * interval '1 hour', 1000 + n, n % 7 FROM integrations, generate_series(0, 719) n`,
		`DO $$ BEGIN EXECUTE (SELECT 'INSERT INTO delivery_hours SELECT id, date_trunc(''hour'', now()) - n * interval ''1 hour''' || repeat(', 40', count(*)::integer - 2)
			|| ' FROM webhooks, generate_series(0, 719) n' FROM pg_attribute WHERE attrelid = 'delivery_hours'::regclass AND attnum > 0 AND NOT attisdropped); END $$`,
	})
	if err != nil {
		return err
	}
	return in.execAll(ctx, plantTeams())
}

// plantSearched creates events with their entries in the log and their deliveries, in the
// order of their times. Two deliveries in a thousand failed, one of them with a response.
func (in *installation) plantSearched(ctx context.Context, from, to time.Time) error {
	var organization, creator string
	var seq int64
	err := in.pool.QueryRow(ctx, `SELECT i.organization_id, i.id, nextval('delivery_positions') FROM webhooks w JOIN integrations i ON i.id = w.integration_id WHERE w.id = $1`,
		in.webhookID).Scan(&organization, &creator, &seq)
	if err != nil {
		return err
	}
	const numbers = `(SELECT * FROM console_events WHERE n BETWEEN $1::int AND $2::int) e`
	// What failed is n % 1000 = 7 with a response and 8 without.
	delivery := func(webhook, id string) string {
		return `SELECT 'dlv' || suffix || ` + id + `, 'evt' || suffix || '0', ` + webhook + `, record, CASE WHEN n % 1000 IN (7, 8) THEN 'failed' ELSE 'delivered' END,
				CASE WHEN n % 1000 IN (7, 8) THEN 8 ELSE 1 END, CASE n % 1000 WHEN 7 THEN 503 WHEN 8 THEN NULL ELSE 204 END,
				CASE WHEN n % 1000 = 8 THEN 'No response came within 10 seconds.' END, at, CASE WHEN n % 1000 NOT IN (7, 8) THEN at END,
				CASE WHEN n % 1000 NOT IN (7, 8) THEN 40 END, CASE WHEN n % 1000 NOT IN (7, 8) THEN '203.0.113.7' END`
	}
	const columns = `INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, last_error, created_at, started_at, latency_ms, remote_ip, seq) `
	every := fmt.Sprintf("%d milliseconds", to.Sub(from).Milliseconds()/(consoleDeliveries+1))
	err = in.execAll(ctx, []string{
		fmt.Sprintf(`CREATE UNLOGGED TABLE console_events AS
			SELECT n, partitions.first_id('', at) || lpad(to_hex(n), 15, '0') AS suffix, at, 'wo_' || lpad(to_hex(1 + (n::bigint * 7919) %% %d), 26, '0') AS record
			FROM (SELECT n, date_trunc('milliseconds', '%s'::timestamptz + n * interval '%s') AS at FROM generate_series(1, %d) n) t`,
			in.options.records, from.Format(time.RFC3339Nano), every, consoleDeliveries),
		`CREATE INDEX ON console_events (n)`, `ANALYZE console_events`,
	})
	if err != nil {
		return err
	}
	err = in.plant(ctx, consoleDeliveries, func(int, int) []planted {
		return []planted{
			{`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
				SELECT 'evt' || suffix || '0', $3::text, 'work_order.updated', record, $4::text, '{"fields": ["title"]}', at FROM` + numbers, []any{organization, creator}},
			{`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
				SELECT $3::text, record, $4::text, 'Integration 1 (API)', CASE WHEN n % 100000 = 0 THEN 'person.changed' ELSE 'work_order.updated' END,
					'{"title": {"from": "Work order", "to": "Replace filter"}}', at FROM` + numbers + ` ORDER BY n`, []any{organization, creator}},
			{columns + delivery("$3::text", "'0'") + `, $4::bigint + 3 * n FROM` + numbers, []any{in.webhookID, seq}},
			{columns + delivery(`(SELECT 'whk_1' || lpad(to_hex(3 + n / 50 % $3::int), 25, '0'))`, "'1'") + `, $4::bigint + 3 * n + 1 FROM` + numbers + ` WHERE n % 50 = 0`,
				[]any{consoleIntegrations * 3, seq}},
			{`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error)
				SELECT 'dlv' || suffix || '0', number, at, 40, CASE n % 1000 WHEN 7 THEN 503 END, CASE n % 1000 WHEN 8 THEN 'No response came within 10 seconds.' END
				FROM` + numbers + `, generate_series(1, 8) number WHERE n % 1000 IN (7, 8)`, nil},
			{`INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, next_attempt_at, created_at, seq)
				SELECT 'dlv' || suffix || '2', 'evt' || suffix || '0', 'whk_1' || lpad(to_hex(7), 25, '0'), record, 'retrying', 3, 503, now() + interval '1 hour', at, $4::bigint + 3 * n + 2
				FROM` + numbers + ` WHERE n > $3::int`, []any{consoleDeliveries - consoleRetrying, seq}},
		}
	})
	if err != nil {
		return err
	}
	return in.execAll(ctx, []string{`DROP TABLE console_events`, fmt.Sprintf(`SELECT setval('delivery_positions', %d)`, seq+3*(consoleDeliveries+1))})
}
