package main

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"millwright/service/store"
)

const (
	// plantedTogether is the number of rows that one transaction plants.
	plantedTogether = 20_000
	// planters is the number of transactions that plant concurrently.
	planters = 2
)

// sqlFiles have the statements that make rows; each ends with a semicolon at the end of a line.
//
//go:embed sql
var sqlFiles embed.FS

// arguments are the values of the names with @ in a file.
type arguments = pgx.NamedArgs

// execFile executes the statements of a file in one transaction.
func (in *installation) execFile(ctx context.Context, file string, args arguments, settings string) error {
	text, err := sqlFiles.ReadFile("sql/" + file)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings+`SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		for sql := range strings.SplitSeq(strings.TrimSpace(string(text)), ";\n") {
			if _, err := tx.Exec(ctx, sql, args); err != nil {
				return fmt.Errorf("%s: %.200s…: %w", file, sql, err)
			}
		}
		return nil
	})
}

// plant inserts the rows of a file for the numbers 1 to total, in transactions for those from
// first to last that do not wait for the disk, without triggers and without checking foreign
// keys.
func (in *installation) plant(total int, file string, args arguments) {
	group, ctx := errgroup.WithContext(in.ctx)
	group.SetLimit(planters)
	for first := 1; first <= total; first += plantedTogether {
		chunk := arguments{"first": first, "last": min(first+plantedTogether-1, total), "total": total}
		maps.Copy(chunk, args)
		group.Go(func() error { return in.execFile(ctx, file, chunk, `SET LOCAL session_replication_role = replica; `) })
	}
	check(group.Wait())
}

// bulkLoad runs fill without the indexes and the autovacuum of the tables, and then
// builds the indexes.
func (in *installation) bulkLoad(tables []string, fill func()) {
	const leaves = `
		SELECT c.oid FROM pg_class c
		WHERE c.relkind = 'r' AND coalesce(pg_partition_root(c.oid), c.oid::regclass)::oid = ANY ($1::text[]::regclass[]::oid[])`
	var names []string
	check(in.pool.QueryRow(in.ctx, `SELECT array_agg(oid::regclass::text) FROM (`+leaves+`) l`, tables).Scan(&names))
	for _, name := range names {
		in.exec(`ALTER TABLE ` + name + ` SET (autovacuum_enabled = false)`)
	}
	in.exec(`UPDATE pg_index SET indisready = false, indisvalid = false WHERE indrelid IN (`+leaves+`)`, tables)
	fill()
	group, ctx := errgroup.WithContext(in.ctx)
	group.SetLimit(planters)
	for _, name := range names {
		group.Go(func() error {
			return pgx.BeginFunc(ctx, in.pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `SET LOCAL maintenance_work_mem = '512MB'; REINDEX TABLE `+name+`; ALTER TABLE `+name+` RESET (autovacuum_enabled)`)
				return err
			})
		})
	}
	check(group.Wait())
}

// plantWorkOrders creates nodes and work orders, each with its log entry, and selects a
// thousand of them to read and change.
func (in *installation) plantWorkOrders(size int) {
	// groupSize is the number of them that share a transaction id, as the records of an import would.
	const groupSize = 10
	check(in.execFile(in.ctx, "nodes.sql", arguments{"nodes": benchNodes}, ""))
	check(store.FoldTables(in.ctx, in.pool, "inventory_nodes", "identities"))
	var organization, creator string
	check(in.pool.QueryRow(in.ctx, `SELECT organization_id, id FROM identities WHERE name = 'Integration 1'`).Scan(&organization, &creator))
	firstXid := in.takeTransactions(size/groupSize + 1)
	in.bulkLoad([]string{"work_orders", "work_order_positions", "work_order_words", "log"}, func() {
		in.plant(size, "work_orders.sql", arguments{
			"nodes": benchNodes, "organization": organization, "creator": creator, "xid": firstXid, "together": groupSize,
		})
	})
	in.exec(`SELECT setval(('work_order_numbers.' || quote_ident('`+organization+`'))::regclass, $1)`, size)
	// In production each group has its own transaction, and watermarks divide them.
	in.exec(`INSERT INTO watermarks (at, xid) VALUES ($1::timestamptz - interval '1 minute', $2::text::xid8)`,
		middleOfChanges, fmt.Sprint(firstXid+int64(size/2/groupSize)))
	in.exec(`INSERT INTO work_order_assignees (work_order_id, identity_id, role, position, closed)
		SELECT id, created_by, 'worker', 1, status IN ('complete', 'cancelled') FROM work_orders WHERE number % 1000 = 0`)
	in.exec(store.RebuildPositions)
	for n := range benchWorkOrders {
		// Open ones, spread over all work orders.
		in.erp.WorkOrders = append(in.erp.WorkOrders, fmt.Sprintf("wo_%026x", (n+1)*(size/benchWorkOrders/10)*10))
	}
}

// takeTransactions uses up the ids of n transactions and returns the first.
func (in *installation) takeTransactions(n int) (first int64) {
	conn := must(in.pool.Acquire(in.ctx))
	defer conn.Release()
	check(conn.QueryRow(in.ctx, `SELECT pg_current_xact_id()::text::bigint`).Scan(&first))
	for _, sql := range []string{
		`SET synchronous_commit = off`,
		fmt.Sprintf(`DO $$ BEGIN FOR n IN 1..%d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`, n),
		`RESET synchronous_commit`,
	} {
		must(conn.Exec(in.ctx, sql))
	}
	return first
}
