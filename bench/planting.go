package main

import (
	"embed"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"millwright/service/store"
)

// sqlFiles have the statements that make rows; each ends with a semicolon at the end of a line.
//
//go:embed sql
var sqlFiles embed.FS

// arguments are the values of the names with @ in a file.
type arguments = pgx.NamedArgs

// execFile executes the statements of a file in one transaction.
func (in *installation) execFile(file string, args arguments, settings string) {
	text := string(must(sqlFiles.ReadFile("sql/" + file)))
	check(pgx.BeginFunc(in.ctx, in.pool, func(tx pgx.Tx) error {
		must(tx.Exec(in.ctx, settings))
		for sql := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
			if _, err := tx.Exec(in.ctx, sql, args); err != nil {
				return fmt.Errorf("%s: %.200s…: %w", file, sql, err)
			}
		}
		return nil
	}))
}

// plant inserts the rows of a file for the numbers 1 to total, in two concurrent transactions for those
// from first to last, without triggers and without checking foreign keys.
func (in *installation) plant(total int, file string, args arguments) {
	const together = 20_000
	var group errgroup.Group
	group.SetLimit(2)
	for first := 1; first <= total; first += together {
		chunk := arguments{"first": first, "last": min(first+together-1, total), "total": total}
		maps.Copy(chunk, args)
		group.Go(func() error {
			in.execFile(file, chunk, `SET LOCAL session_replication_role = replica`)
			return nil
		})
	}
	check(group.Wait())
}

// bulkLoad runs fill without the indexes of the tables, and then builds them.
func (in *installation) bulkLoad(tables []string, fill func()) {
	in.exec(`UPDATE pg_index SET indisready = false, indisvalid = false WHERE indrelid IN (
		SELECT oid FROM pg_class
		WHERE relkind = 'r' AND coalesce(pg_partition_root(oid), oid::regclass)::oid = ANY ($1::text[]::regclass[]::oid[]))`, tables)
	fill()
	for _, table := range tables {
		in.exec(`REINDEX TABLE ` + table)
	}
}

// plantWorkOrders creates nodes and work orders, each with its log entry, and selects a
// thousand of them to read and change.
func (in *installation) plantWorkOrders(size int) {
	// groupSize is the number of them that share a transaction id, as the records of an import would.
	const groupSize = 10
	in.execFile("nodes.sql", arguments{"nodes": benchNodes}, "")
	check(store.FoldTables(in.ctx, in.pool, "inventory_nodes", "identities"))
	// In production each group has its own transaction, and watermarks divide them.
	var firstXid int64
	check(in.pool.QueryRow(in.ctx, `SELECT pg_current_xact_id()::text::bigint`).Scan(&firstXid))
	in.exec(fmt.Sprintf(`DO $$ BEGIN FOR n IN 0..%d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$`, size/groupSize))
	in.bulkLoad([]string{"work_orders", "work_order_positions", "work_order_words", "log"}, func() {
		in.plant(size, "work_orders.sql", arguments{
			"nodes": benchNodes, "organization": in.organization, "creator": in.integration, "xid": firstXid, "together": groupSize,
		})
	})
	in.exec(`SELECT setval(('work_order_numbers.' || quote_ident('`+in.organization+`'))::regclass, $1)`, size)
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
