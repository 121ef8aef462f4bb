package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"millwright/models"
)

const (
	// plantedTogether is how many numbers one transaction plants.
	plantedTogether = 20_000
	// planters is how many transactions plant concurrently.
	planters = 2
	// groupSize is how many planted work orders share the id of a transaction, as writes
	// of the same moment do.
	groupSize = 10
)

// bulkLoad runs fill without the indexes and the autovacuum of the tables, and then
// builds the indexes.
func (in *installation) bulkLoad(ctx context.Context, tables []string, fill func() error) error {
	const leaves = `
		SELECT c.oid FROM pg_class c
		WHERE c.relkind = 'r' AND coalesce(pg_partition_root(c.oid), c.oid::regclass)::oid = ANY ($1::text[]::regclass[]::oid[])`
	var names []string
	if err := in.pool.QueryRow(ctx, `SELECT array_agg(oid::regclass::text) FROM (`+leaves+`) l`, tables).Scan(&names); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := in.pool.Exec(ctx, `ALTER TABLE `+name+` SET (autovacuum_enabled = false)`); err != nil {
			return err
		}
	}
	_, err := in.pool.Exec(ctx, `UPDATE pg_index SET indisready = false, indisvalid = false WHERE indrelid IN (`+leaves+`)`, tables)
	if err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(planters)
	for _, name := range names {
		group.Go(func() error {
			return pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
				for _, sql := range []string{
					`SET LOCAL maintenance_work_mem = '512MB'`, `REINDEX TABLE ` + name,
					`ALTER TABLE ` + name + ` RESET (autovacuum_enabled)`,
				} {
					if _, err := tx.Exec(ctx, sql); err != nil {
						return fmt.Errorf("%s: %w", sql, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// planted are statements that insert rows for the numbers from $1 to $2.
type planted struct {
	sql  string
	args []any
}

// plant inserts the rows of the numbers 1 to n, in transactions that do not wait for
// the disk, without triggers and without checking foreign keys. rows returns the
// statements for numbers from first to last.
func (in *installation) plant(ctx context.Context, n int, rows func(first, last int) []planted) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(planters)
	for first := 1; first <= n; first += plantedTogether {
		last := min(first+plantedTogether-1, n)
		group.Go(func() error {
			return pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `SET LOCAL session_replication_role = replica; SET LOCAL synchronous_commit = off`); err != nil {
					return err
				}
				for _, p := range rows(first, last) {
					if _, err := tx.Exec(ctx, p.sql, append([]any{first, last}, p.args...)...); err != nil {
						return fmt.Errorf("%.60s…: %w", p.sql, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// takeTransactions uses up the ids of n transactions and returns the first.
func (in *installation) takeTransactions(ctx context.Context, n int) (first int64, err error) {
	conn, err := in.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, `SELECT pg_current_xact_id()::text::bigint`).Scan(&first); err != nil {
		return 0, err
	}
	for _, sql := range []string{
		`SET synchronous_commit = off`,
		fmt.Sprintf(`DO $$ BEGIN FOR n IN 1..%d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`, n),
		`RESET synchronous_commit`,
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return 0, err
		}
	}
	return first, nil
}

// workOrderTables are the tables that plantWorkOrders fills.
var workOrderTables = []string{"work_orders", "work_order_positions", "work_order_words", "log"}

// plantedTitle is the title of the work order n: a word that all have, one that only some
// twenty in a million have, and one that only the older ones have.
const plantedTitle = `'Work order ' || n || CASE WHEN n %% 50000 = 7 THEN ' of the boiler' WHEN n < 900000 THEN ' imported' ELSE '' END`

// plantWorkOrders creates work orders with their entries in the log, over a year.
// Hexadecimal digits are valid in ids.
func (in *installation) plantWorkOrders(ctx context.Context, size int) error {
	firstXid, err := in.takeTransactions(ctx, size/groupSize+1)
	if err != nil {
		return err
	}
	var organization, creator string
	err = in.pool.QueryRow(ctx, `SELECT organization_id, id FROM identities WHERE name = $1`, growthIntegrations[0].name).Scan(&organization, &creator)
	if err != nil {
		return err
	}
	created := fmt.Sprintf(`'2025-01-01T00:00:00Z'::timestamptz + n * interval '30 seconds' * (1000000.0 / %d)`, size)
	workOrders := fmt.Sprintf(`
		WITH planted AS (
		INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, created_by, created_at, changed_at, completed_at, changed_xid)
		SELECT 'wo_' || lpad(to_hex(n), 26, '0'), $3::text, n,
			-- Every hundredth on the one node, every fiftieth on the fifty: full pages at each size.
			'loc_' || lpad(to_hex(CASE WHEN n %% 100 = 0 THEN 1001 WHEN n %% 50 = 1 THEN 1001 + n / 50 %% 50
				ELSE 1100 + (n::bigint * 7919) %% %d END), 26, '0'), `+plantedTitle+`, 'none',
			CASE WHEN n %% 10 = 0 THEN 'open' ELSE 'complete' END, $4::text, %[2]s, %[2]s,
			CASE WHEN n %% 10 = 0 THEN NULL ELSE '2025-01-02T00:00:00Z'::timestamptz END,
			($5::bigint + n / %[3]d)::text::xid8
		FROM generate_series($1::int, $2::int) n
		RETURNING id, organization_id, number, title, inventory_id, created_by, changed_xid),
		words AS (INSERT INTO work_order_words (id, words)
			SELECT id, array_to_tsvector(search_words(organization_id, number || ' ' || title)) FROM planted)
		INSERT INTO work_order_positions (id, organization_id, inventory_id, created_by, changed_xid)
		SELECT id, organization_id, inventory_id, created_by, changed_xid FROM planted`, benchNodes-1100, created, groupSize)
	log := fmt.Sprintf(`
		INSERT INTO log (organization_id, record_id, actor_id, actor_name, action, changes, created_at)
		SELECT $3::text, 'wo_' || lpad(to_hex(n), 26, '0'), $4::text, 'Integration 1 (API)', 'work_order.created',
			'{"title": {"from": null, "to": "Work order"}}', %s
		FROM generate_series($1::int, $2::int) n`, created)
	err = in.plant(ctx, size, func(int, int) []planted {
		return []planted{
			{workOrders, []any{organization, creator, firstXid}},
			{log, []any{organization, creator}},
		}
	})
	if err != nil {
		return err
	}
	for _, sql := range []string{
		`SELECT setval(('work_order_numbers.' || quote_ident('` + organization + `'))::regclass, $1)`,
		// In production each group has its own transaction, and beats divide them.
		`INSERT INTO beats (at, xid) VALUES ('` + middleOfChanges + `'::timestamptz - interval '1 minute', ($1::bigint / 2 / ` + fmt.Sprint(groupSize) + ` + ` + fmt.Sprint(firstXid) + `)::text::xid8)`,
	} {
		if _, err := in.pool.Exec(ctx, sql, size); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	return nil
}

// deliveryTables are the tables that plantDeliveries fills.
var deliveryTables = []string{"events", "deliveries"}

// plantDeliveries creates deliveries that succeeded at the first attempt, with their
// events: changes of the first records work orders, each with a delivery to every
// address, evenly from one time to another. It returns how many.
func (in *installation) plantDeliveries(ctx context.Context, deliveries, records int, from, to time.Time) (int, error) {
	var organization, creator string
	var addresses int
	err := in.pool.QueryRow(ctx, `SELECT min(organization_id), min(integration_id), count(*) FROM webhooks`).Scan(&organization, &creator, &addresses)
	if err != nil {
		return 0, err
	}
	const (
		suffix = `$3::text || lpad(to_hex(n), 15, '0')`
		record = `'wo_' || lpad(to_hex(1 + (n::bigint * 7919) % $5::int), 26, '0')`
		series = ` FROM generate_series($1::int, $2::int) n`
		each   = series + ` CROSS JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS nth FROM webhooks) w ORDER BY n, w.nth`
	)
	const (
		events = `
			INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
			SELECT 'evt_' || ` + suffix + ` || '0', $6::text, 'work_order.updated', ` + record + `, $7::text, '{"fields": ["title"]}', $4::timestamptz` + series
		finished = `
			INSERT INTO deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at, started_at, latency_ms, remote_ip)
			SELECT 'dlv_' || ` + suffix + ` || w.nth, 'evt_' || ` + suffix + ` || '0', w.id, ` + record + `, 'delivered', 1, 204, $4::timestamptz, $4::timestamptz, 40, '203.0.113.7'` + each
	)
	n := deliveries / addresses
	return n * addresses, in.plant(ctx, n, func(first, _ int) []planted {
		at := from.Add(time.Duration(float64(to.Sub(from)) * float64(first) / float64(n)))
		// The first ten digits of an id are its time.
		digits := models.FirstID(models.PrefixEvent, at)[len("evt_"):][:10]
		return []planted{
			{events, []any{digits, at, records, organization, creator}},
			{finished, []any{digits, at, records}},
		}
	})
}
