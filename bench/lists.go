package main

import (
	"context"
	"encoding/json"
	"fmt"
)

// benchOrganization has integrations that see everything, fifty nodes, or one.
const benchOrganization = `
organization: {key: bench, name: Bench, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000000, integrations: 10}}
permission_definitions: [{key: full, name: Full, applies_below: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update]}]
inventory: [{key: top, kind: location, name: Top}]
integrations:
  - {key: all, name: All, scopes: ["work_orders:read", "work_orders:write"], client_id: all, client_secret: secret-of-all-in-the-bench}
  - {key: fifty, name: Fifty, scopes: ["work_orders:read"], client_id: fifty, client_secret: secret-of-fifty-in-the-bench}
  - {key: one, name: One, scopes: ["work_orders:read"], client_id: one, client_secret: secret-of-one-in-the-bench}
assignments: [{node: top, identity: all, definition: full}]
`

// nodesOfBench is how many nodes the work orders are spread over: 100 buildings
// with 200 rooms each.
const nodesOfBench = 20_000

// benchLists measures a page of 50 for who sees all, fifty nodes and one, at each size.
func benchLists(ctx context.Context, r *report, sizes []int) error {
	for i, size := range sizes {
		if err := benchListsOf(ctx, r, size, sizes[0], i == 0); err != nil {
			return fmt.Errorf("lists of %d work orders: %w", size, err)
		}
	}
	return nil
}

func benchListsOf(ctx context.Context, r *report, size, smallest int, first bool) error {
	s, err := newStand(ctx, fmt.Sprintf("lists_%d", size))
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.seed(ctx, size); err != nil {
		return err
	}
	for _, who := range []string{"all", "fifty", "one"} {
		token, err := s.token(ctx, who)
		if err != nil {
			return err
		}
		// The sync token of an empty poll, and one in the middle of all changes.
		body, err := s.get(ctx, token, "/work-orders?changed_since=2025-07-01T00:00:00Z&limit=1")
		if err != nil {
			return err
		}
		var page struct {
			SyncToken string `json:"sync_token"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		calls := []struct{ name, path string }{
			{"newest 50", "/work-orders?limit=50"},
			{"50 open ones", "/work-orders?limit=50&status=open"},
			{"50 changes", "/work-orders?limit=50&changed_since=" + page.SyncToken},
		}
		for _, call := range calls {
			p50, p99, err := latencies(300, func() error {
				_, err := s.get(ctx, token, call.path)
				return err
			})
			if err != nil {
				return err
			}
			name := func(size int, percentile string) string {
				return fmt.Sprintf("list: %s, sees %s, of %d, %s", call.name, who, size, percentile)
			}
			if first {
				r.add(name(size, "p50"), p50, "ms")
			} else {
				r.compare(name(size, "p50"), p50, "ms", name(smallest, "p50"))
			}
			r.add(name(size, "p99"), p99, "ms")
		}
	}
	return nil
}

// seed fills the organization with nodes and work orders. Hexadecimal digits are
// digits of our ids too.
func (s *stand) seed(ctx context.Context, size int) error {
	statements := []string{
		`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', t.id, 'Building ' || n, now(), now()
			FROM generate_series(1, 100) n, (SELECT id, organization_id FROM inventory_nodes WHERE name = 'Top') t`,
		fmt.Sprintf(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', 'loc_' || lpad(to_hex(1 + n %% 100), 26, '0'), 'Room ' || n, now(), now()
			FROM generate_series(101, %d) n, (SELECT organization_id FROM inventory_nodes WHERE name = 'Top') t`, nodesOfBench),
		`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT n.id, i.id, d.id, n.organization_id
			FROM inventory_nodes n, identities i, permission_definitions d
			WHERE n.name = ANY (SELECT 'Room ' || g FROM generate_series(1001, 1050) g) AND i.name = 'Fifty'
				OR n.name = 'Room 1001' AND i.name = 'One'`,
		fmt.Sprintf(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at)
			SELECT 'wo_' || lpad(to_hex(n), 26, '0'), t.organization_id,
				-- Every hundredth on the one node, every fiftieth on the fifty: full pages at each size.
				'loc_' || lpad(to_hex(CASE WHEN n %% 100 = 0 THEN 1001 WHEN n %% 50 = 1 THEN 1001 + n / 50 %% 50
					ELSE 1100 + (n::bigint * 7919) %% %d END), 26, '0'), 'Work order ' || n, 'none',
				CASE WHEN n %% 10 = 0 THEN 'open' ELSE 'complete' END, t.id,
				'2025-01-01T00:00:00Z'::timestamptz + n * interval '30 seconds' * (1000000.0 / %d),
				'2025-01-01T00:00:00Z'::timestamptz + n * interval '30 seconds' * (1000000.0 / %d),
				CASE WHEN n %% 10 = 0 THEN NULL ELSE '2025-01-02T00:00:00Z'::timestamptz END
			FROM generate_series(1, %d) n, (SELECT id, organization_id FROM identities WHERE name = 'All') t`, nodesOfBench-1100, size, size, size),
		// In life every work order has a transaction of its own; here they are told apart by number.
		`ALTER TABLE work_orders DISABLE TRIGGER work_orders_stamp`,
		`UPDATE work_orders SET changed_xid = (number::text)::xid8`,
		`ALTER TABLE work_orders ENABLE TRIGGER work_orders_stamp`,
		`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
			SELECT w.id, i.id, 'worker', 1 FROM work_orders w, identities i WHERE i.name = 'All' AND w.number % 1000 = 0`,
		`VACUUM ANALYZE`,
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	for _, sql := range append([]string{`SET statement_timeout = 0`}, statements...) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	_, err = conn.Exec(ctx, `RESET statement_timeout`)
	return err
}
