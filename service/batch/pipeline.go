package batch

import (
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// IndexPlans makes Postgres plan each statement of the transaction once per connection,
// with indexes. It would otherwise plan a statement over arrays again for each execution,
// because it expects the custom plan for a short array to be cheaper; planning takes ten
// times as long as executing. A plan is kept for as long as the connection: one made while
// a table was empty would read all of it until it is analyzed. A statement that looks rows
// up by keys needs LATERAL … LIMIT 1 as well: an index without rows seems as cheap to read
// from end to end.
const IndexPlans = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// fillPipeline adds the lookups' statements to the pipeline. A Statement that several have is sent once, with
// the rows of all.
func fillPipeline(pipeline *pgx.Batch, log *slog.Logger, lookups []*Lookup) {
	of := map[*Statement][]*Lookup{}
	var order []*Statement
	for _, l := range lookups {
		if of[l.queued.statement] == nil {
			order = append(order, l.queued.statement)
		}
		of[l.queued.statement] = append(of[l.queued.statement], l)
	}
	for _, statement := range order {
		addRows(pipeline, log, statement.SQL, of[statement])
	}
}

// addRows adds a Statement with the rows of the lookups, and hands each row of its result to the lookup that
// it belongs to.
func addRows(pipeline *pgx.Batch, log *slog.Logger, sql string, lookups []*Lookup) {
	columns := make([]pgtype.FlatArray[any], len(lookups[0].queued.row))
	for _, l := range lookups {
		for c, value := range l.queued.row {
			columns[c] = append(columns[c], value)
		}
	}
	args := make([]any, len(columns))
	for c, column := range columns {
		args[c] = column
	}
	pipeline.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		row := &resultRow{Rows: rows}
		for rows.Next() {
			ordinal, err := row.ordinal()
			if err != nil {
				return err
			}
			l := lookups[ordinal-1]
			if err := guard(log, func() error { return l.queued.each(row) }); err != nil && l.err == nil {
				l.err = err
			}
		}
		return rows.Err()
	})
}

// finish runs what follows the statements of a successful round trip.
func finish(log *slog.Logger, lookups []*Lookup) {
	for _, l := range lookups {
		if l.err == nil {
			l.err = guard(log, l.queued.done)
		}
	}
}
