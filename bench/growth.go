package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// fewRecords is the smallest number of records that is measured.
const (
	fewRecords = 10_000
	records    = "work orders"
)

// benchNodes is the number of nodes that have work orders: 100 buildings with 200
// rooms each.
const benchNodes = 20_000

// middleOfChanges is a time after the beat that divides the changes of the work orders.
const middleOfChanges = "2025-07-01T00:00:00Z"

// growthIntegrations see everything, fifty nodes, or one.
var growthIntegrations = []struct{ sees, name string }{{"all", "Integration 1"}, {"fifty", "Integration 2"}, {"one", "Integration 3"}}

// benchGrowth measures calls and lists with few and with many work orders, and what
// many deliveries cost that are kept.
func benchGrowth(ctx context.Context, r *report, o options, load time.Duration) error {
	for _, size := range []int{fewRecords, o.records} {
		if err := benchRecords(ctx, r, o, size, load); err != nil {
			return fmt.Errorf("%d work orders: %w", size, err)
		}
	}
	return nil
}

func benchRecords(ctx context.Context, r *report, o options, size int, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, fmt.Sprintf("growth_%d", size))
	if err != nil {
		return err
	}
	defer in.close()
	grown := changeSubscription(1)
	grown.integrations = len(growthIntegrations)
	if err := in.subscribe(ctx, grown); err != nil {
		return err
	}
	err = in.timed(r, fmt.Sprintf("%d work orders: created by SQL in", size), func() error { return in.seed(ctx, size) })
	if err != nil {
		return err
	}
	kept := o.deliveries > 0 && size == o.records
	if kept {
		if err := in.plantKept(ctx, r); err != nil {
			return err
		}
	}
	if err := in.benchVacuum(ctx, r, fmt.Sprintf("of %d new work orders", size)); err != nil {
		return err
	}
	if kept {
		if err := in.benchSizes(ctx, r); err != nil {
			return err
		}
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	changes, err := in.benchGrownCalls(ctx, r, size, load)
	if err != nil {
		return err
	}
	if err := in.benchLists(ctx, r, size, load); err != nil || !kept {
		return err
	}
	if err := phase(ctx, "dump", 30*time.Minute, func(ctx context.Context) error { return in.benchDump(ctx, r) }); err != nil {
		return err
	}
	err = phase(ctx, "removal", time.Hour, func(ctx context.Context) error { return in.benchRemoval(ctx, r, changes*quietShare, load) })
	if err != nil {
		return err
	}
	return in.benchVacuum(ctx, r, "after the removal")
}

// benchGrownCalls measures calls and returns the changes per second.
func (in *installation) benchGrownCalls(ctx context.Context, r *report, size int, load time.Duration) (changes float64, err error) {
	for _, op := range []operation{readOne, listPage, patchOne, createOne} {
		if _, err := in.erp.flood(ctx, callers, op, time.Now().Add(load/10)); err != nil {
			return 0, err
		}
		started := time.Now()
		n, err := in.erp.flood(ctx, callers, op, started.Add(load/3))
		if err != nil {
			return 0, err
		}
		rate := perSecond(n, started, time.Now())
		r.grown(op.name, size, fewRecords, records, rate, "/s")
		if op.name == patchOne.name {
			changes = rate
		}
		// Otherwise starting the workflows would slow the next measurements down.
		if op.name == createOne.name {
			if err := phase(ctx, "starts of workflows", 5*time.Minute, in.awaitIdle); err != nil {
				return 0, err
			}
		}
		alone, err := in.erp.alone(ctx, op, max(20, int(20*load.Seconds())))
		if err != nil {
			return 0, err
		}
		r.grown(op.name+", alone, p50", size, fewRecords, records, milliseconds(alone.percentile(50)), "ms")
		r.grown(op.name+", alone, p99", size, fewRecords, records, milliseconds(alone.percentile(99)), "ms")
	}
	return changes, nil
}

// grown adds a figure at a size, compared with the figure at the smallest size.
func (r *report) grown(what string, size, smallest int, of string, value float64, unit string) {
	name := func(size int) string { return fmt.Sprintf("%s, at %d %s", what, size, of) }
	if size == smallest {
		r.add(name(size), value, unit)
	} else {
		r.compare(name(size), value, unit, name(smallest))
	}
}

// benchLists measures pages of 50 for integrations that see everything, fifty nodes
// and one.
func (in *installation) benchLists(ctx context.Context, r *report, size int, load time.Duration) error {
	for i, integration := range growthIntegrations {
		t := &tenant{address: in.erp.address}
		var err error
		if t.token, err = in.tokenOf(ctx, changeSubscription(1).client(i+1)); err != nil {
			return err
		}
		c, err := dial(ctx, t.address, t.token)
		if err != nil {
			return err
		}
		body, err := c.get("/work-orders?limit=1&changed_since=" + middleOfChanges)
		c.conn.Close()
		if err != nil {
			return err
		}
		var page struct {
			SyncToken string `json:"sync_token"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return err
		}
		for _, list := range []struct{ name, path string }{
			{"newest 50", "/work-orders?limit=50"},
			{"50 open ones", "/work-orders?limit=50&status=open"},
			{"50 changes", "/work-orders?limit=50&changed_since=" + page.SyncToken},
		} {
			op := operation{"list: " + list.name + ", sees " + integration.sees, func(_ *tenant, c *caller) error {
				_, err := c.get(list.path)
				return err
			}}
			w, err := t.alone(ctx, op, max(20, int(20*load.Seconds())))
			if err != nil {
				return err
			}
			r.grown(op.name+", p50", size, fewRecords, records, milliseconds(w.percentile(50)), "ms")
			r.grown(op.name+", p99", size, fewRecords, records, milliseconds(w.percentile(99)), "ms")
		}
	}
	return nil
}

// seed creates nodes and work orders, each with its log entry, and
// selects a thousand of them to read and change. Hexadecimal digits are valid in ids.
func (in *installation) seed(ctx context.Context, size int) error {
	nodes := []string{
		`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', t.id, 'Building ' || n, now(), now()
			FROM generate_series(1, 100) n, (SELECT id, organization_id FROM inventory_nodes WHERE name = 'Top') t`,
		fmt.Sprintf(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			SELECT 'loc_' || lpad(to_hex(n), 26, '0'), t.organization_id, 'location', 'loc_' || lpad(to_hex(1 + n %% 100), 26, '0'), 'Room ' || n, now(), now()
			FROM generate_series(101, %d) n, (SELECT organization_id FROM inventory_nodes WHERE name = 'Top') t`, benchNodes),
		// The first integration keeps the whole tree, the others see a part of it.
		fmt.Sprintf(`DELETE FROM assignments a USING identities i WHERE a.identity_id = i.id AND i.name IN ('%s', '%s')`, growthIntegrations[1].name, growthIntegrations[2].name),
		fmt.Sprintf(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
			SELECT n.id, i.id, d.id, n.organization_id
			FROM inventory_nodes n, identities i, permission_definitions d
			WHERE d.name = 'Full' AND (n.name = ANY (SELECT 'Room ' || g FROM generate_series(1001, 1050) g) AND i.name = '%s'
				OR n.name = 'Room 1001' AND i.name = '%s')`, growthIntegrations[1].name, growthIntegrations[2].name),
	}
	if err := in.execAll(ctx, nodes); err != nil {
		return err
	}
	if err := in.bulkLoad(ctx, workOrderTables, func() error { return in.plantWorkOrders(ctx, size) }); err != nil {
		return err
	}
	_, err := in.pool.Exec(ctx, `
		INSERT INTO work_order_assignees (work_order_id, identity_id, role, position)
		SELECT id, created_by, 'worker', 1 FROM work_orders WHERE number % 1000 = 0`)
	if err != nil {
		return err
	}
	for n := range benchWorkOrders {
		// Open ones, spread over all work orders.
		in.erp.workOrders = append(in.erp.workOrders, fmt.Sprintf("wo_%026x", (n+1)*(size/benchWorkOrders/10)*10))
	}
	return nil
}

func (in *installation) execAll(ctx context.Context, statements []string) error {
	for _, sql := range statements {
		if _, err := in.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	return nil
}
