package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// consoleRecent are work orders of the last recentDays days, a million a year; all others
	// are older than the charts reach.
	consoleRecent, recentDays = 110_000, 40
	// consoleFeedback is feedback of the last year, a twentieth of it open.
	consoleFeedback = 100_000
	// consoleChildren are directly below consoleLevel.
	consoleChildren = 1000
)

// Nodes and work orders whose pages are measured. consoleNode is a room on which every person
// of the bench has permissions; the work orders are there.
const (
	consoleBuilding = "loc_00000000000000000000000001" // of 100, with 200 rooms
	consoleLevel    = "loc_30000000000000000000000000"
	consoleChild    = "loc_30000000000000000000000003"
)

var consoleNode = plantedNode(firstOfFewNodes)

// plantRecent creates the level of many nodes, and the work orders and the feedback of today's
// work. The triggers make what else is stored for them.
func (in *installation) plantRecent(ctx context.Context) error {
	return pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
		for _, sql := range append(append([]string{`SET LOCAL synchronous_commit = off`}, plantLevel()...), append(plantRecentWorkOrders(), plantFeedback()...)...) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%.60s…: %w", sql, err)
			}
		}
		return nil
	})
}

// plantLevel are statements that create a site with halls, each with a system and equipment.
func plantLevel() []string {
	node := func(prefix, kind, parent, name, code, from string) string {
		return fmt.Sprintf(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
			SELECT %s, t.organization_id, '%s', %s, %s, %s, now(), now() FROM inventory_nodes t%s WHERE t.name = 'Top' AND t.parent_id IS NULL`,
			prefix, kind, parent, name, code, from)
	}
	const n, numbered = `lpad(to_hex(n), 25, '0')`, ` || lpad(n::text, 4, '0')`
	from := fmt.Sprintf(`, generate_series(1, %d) n`, consoleChildren)
	return []string{
		node(`'`+consoleLevel+`'`, "location", "t.id", `'Site with halls'`, `'SITE-1'`, ""),
		node(`'loc_3' || `+n, "location", `'`+consoleLevel+`'`, `'Hall ' || n`, `'HALL-'`+numbered, from),
		node(`'sys_3' || `+n, "system", `'loc_3' || `+n, `'Ventilation of hall ' || n`, `'VENT-'`+numbered, from),
		node(`'eqp_3' || `+n, "equipment", `'sys_3' || `+n, `'Fan ' || n`, `'FAN-'`+numbered, from),
	}
}

// plantRecentWorkOrders are statements that create work orders of the last weeks: titles of
// several words, due in two weeks, some of them overdue, closed after some days, with the
// people of the organization.
func plantRecentWorkOrders() []string {
	at := fmt.Sprintf(`now() - (%d - n) * interval '%d days' / %[1]d`, consoleRecent, recentDays)
	numbers := fmt.Sprintf(`generate_series(1, %d) n`, consoleRecent)
	const (
		// one picks an element by the number.
		one    = `(ARRAY[%s])[1 + (n / %d) %% %d]`
		person = `'idn_2' || lpad(to_hex(1 + mod(n * 31, 10000)), 25, '0')`
	)
	verb := fmt.Sprintf(one, `'Replace', 'Check', 'Clean', 'Repair'`, 1, 4)
	object := fmt.Sprintf(one, `'filter', 'pump', 'smoke detector', 'light', 'door closer', 'valve', 'belt of the fan', 'battery', 'lift', 'emergency exit sign'`, 4, 10)
	where := fmt.Sprintf(one, `'north wing', 'cellar', 'roof', 'kitchen', 'lobby', 'server room', 'car park'`, 40, 7)
	return []string{
		`CREATE TEMPORARY TABLE recent ON COMMIT DROP AS
			SELECT n, partitions.first_id('wo', at) || lpad(to_hex(n), 16, '0') AS id, at,
				-- Nine in ten are closed within four days.
				CASE WHEN at + (1 + n % 96) * interval '1 hour' < now() AND n % 10 <> 3 THEN CASE WHEN n % 30 = 1 THEN 'cancelled' ELSE 'complete' END
					WHEN n % 7 < 3 THEN 'open' WHEN n % 7 < 5 THEN 'in_progress' WHEN n % 70 < 20 THEN 'on_hold' WHEN n % 70 < 60 THEN 'sent_to_inspection' ELSE 'back_from_inspection' END AS status,
				` + verb + ` || ' ' || ` + object + ` || ' ' || n % 90 || ' in the ' || ` + where + ` || CASE WHEN n % 20000 = 77 THEN ' because of legionella' ELSE '' END AS title
			FROM (SELECT n, date_trunc('milliseconds', ` + at + `) AS at FROM ` + numbers + `) t`,
		fmt.Sprintf(`INSERT INTO work_orders (id, organization_id, number, inventory_id, title, description, priority, target_date, form_id, external_id, status, created_by, created_at, changed_at, completed_at, cancelled_at, held_from)
			SELECT r.id, o.organization_id, 1, 'loc_' || lpad(to_hex(CASE WHEN n %% 100 = 0 THEN %[1]d WHEN n %% 50 = 1 THEN %[1]d + n / 50 %% 50 ELSE 1100 + (n::bigint * 7919) %% %[2]d END), 26, '0'),
				title, 'Reported by the tenant.', (ARRAY['none', 'none', 'none', 'low', 'medium', 'high'])[1 + n / 2 %% 6], CASE WHEN n %% 3 > 0 THEN at + (3 + n %% 14) * interval '1 day' END,
				CASE WHEN n %% 20 = 0 THEN '`+consoleForm+`' END, CASE WHEN n %% 2 = 0 THEN 'ERP-' || n END, status,
				CASE WHEN n %% 4 = 0 THEN `+person+` ELSE o.id END, at, at,
				CASE status WHEN 'complete' THEN at + (1 + n %% 96) * interval '1 hour' END, CASE status WHEN 'cancelled' THEN at + (1 + n %% 96) * interval '1 hour' END, CASE status WHEN 'on_hold' THEN 'open' END
			FROM recent r, (SELECT id, organization_id FROM identities WHERE name = '%[3]s') o ORDER BY n`, firstOfFewNodes, benchNodes-1100, growthIntegrations[0].name),
		// A worker each, for some a team next to it, and a consultant. The administrator has one
		// in a hundred, and one in ten reviews.
		`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
			SELECT id, CASE WHEN n % 100 = 0 THEN (SELECT id FROM people WHERE admin) ELSE ` + person + ` END, 'worker', 1 FROM recent WHERE n % 3 < 2
			UNION ALL SELECT id, 'idn_3' || lpad(to_hex(2 + n % 499), 25, '0'), 'worker', 2 FROM recent WHERE n % 5 = 0
			UNION ALL SELECT id, CASE WHEN n % 10 = 6 THEN (SELECT id FROM people WHERE admin) ELSE 'idn_2' || lpad(to_hex(1 + (n * 37) % 10000), 25, '0') END, 'consultant', 3
				FROM recent WHERE n % 10 = 6 OR n % 10 = 8
			ON CONFLICT DO NOTHING`,
		`INSERT INTO answers (work_order_id, question_id, value, answered_at, answered_by)
			SELECT r.id, q.id, '"Yes, it is in order."', r.at, 'idn_2' || lpad('1', 25, '0') FROM recent r, questions q WHERE r.n % 400 = 0 AND q.form_id = '` + consoleForm + `'`,
		`INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
			SELECT o.organization_id, r.id, o.id, o.name || ' (API)', 'work_order.created', json_build_object('title', json_build_object('from', NULL, 'to', r.title)), r.at
			FROM recent r, (SELECT id, organization_id, name FROM identities WHERE name = '` + growthIntegrations[0].name + `') o ORDER BY n`,
	}
}

// plantFeedback are statements that create feedback of the last year.
func plantFeedback() []string {
	return []string{fmt.Sprintf(`INSERT INTO feedback (id, organization_id, inventory_id, subject, description, external_id, status, created_by, created_at, changed_at, resolved_at)
		SELECT partitions.first_id('iss', at) || lpad(to_hex(n), 16, '0'), o.organization_id, 'loc_' || lpad(to_hex(CASE WHEN n %% 100 = 0 THEN %[1]d ELSE 1100 + (n::bigint * 7919) %% %[2]d END), 26, '0'),
			(ARRAY['It is too cold', 'The light flickers', 'Water on the floor', 'The door does not close'])[1 + n %% 4] || ', ' || n, 'Since this morning.',
			CASE WHEN n %% 2 = 0 THEN 'TICKET-' || n END, CASE WHEN n %% 20 = 0 THEN 'open' ELSE 'resolved' END,
			CASE WHEN n %% 4 = 0 THEN 'idn_2' || lpad(to_hex(1 + (n * 31) %% 10000), 25, '0') ELSE o.id END, at, at, CASE WHEN n %% 20 > 0 THEN at + interval '1 hour' END
		FROM (SELECT n, date_trunc('milliseconds', now() - (%[3]d - n) * interval '365 days' / %[3]d) AS at FROM generate_series(1, %[3]d) n) t,
			(SELECT id, organization_id FROM identities WHERE name = '%[4]s') o ORDER BY n`, firstOfFewNodes, benchNodes-1100, consoleFeedback, growthIntegrations[0].name)}
}

// plantedNode is the id of the n-th node.
func plantedNode(n int) string { return fmt.Sprintf("loc_%026x", n) }
