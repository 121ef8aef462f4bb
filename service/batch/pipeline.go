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
const IndexPlans = `SELECT ` + indexPlans

const indexPlans = `set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// fillPipeline adds the queued statements to the pipeline, each queue's in order. If
// several queues have the same Statement next, it is sent once
// with the rows of all.
func fillPipeline(pipeline *pgx.Batch, log *slog.Logger, queues []*queue, shared bool) {
	left := make([][]*queuedStatement, len(queues))
	for i, q := range queues {
		left[i] = q.statements
	}
	for {
		var next *Statement
		for i, q := range queues {
			for len(left[i]) > 0 && left[i][0].bulk == nil {
				addSingle(pipeline, log, q, left[i][0])
				left[i] = left[i][1:]
			}
			if len(left[i]) > 0 && (next == nil || left[i][0].bulk.Stage < next.Stage) {
				next = left[i][0].bulk
			}
		}
		if next == nil {
			return
		}
		var same []*queuedStatement
		var owners []*queue
		for i, q := range queues {
			if len(left[i]) > 0 && left[i][0].bulk == next {
				same, owners = append(same, left[i][0]), append(owners, q)
				left[i] = left[i][1:]
			}
		}
		sql := next.SQL
		if shared && next.SharedSQL != "" {
			sql = next.SharedSQL
		}
		addBulk(pipeline, log, sql, same, owners)
	}
}

// addSingle adds standalone SQL.
func addSingle(pipeline *pgx.Batch, log *slog.Logger, q *queue, statement *queuedStatement) {
	queued := pipeline.Queue(statement.sql, statement.args...)
	if statement.read == nil {
		return
	}
	queued.Query(func(rows pgx.Rows) error {
		if err := guard(log, func() error { return statement.read(rows) }); err != nil && q.err == nil {
			q.err = err
		}
		return rows.Err()
	})
}

// addBulk adds one Statement with the rows of all that queued it, and hands each
// row of its result to the statement that it belongs to.
func addBulk(pipeline *pgx.Batch, log *slog.Logger, sql string, statements []*queuedStatement, owners []*queue) {
	var statementOf []int // by row
	columns := make([]pgtype.FlatArray[any], len(statements[0].rows[0]))
	reading := false
	for i, statement := range statements {
		for _, row := range statement.rows {
			statementOf = append(statementOf, i)
			for c, value := range row {
				columns[c] = append(columns[c], value)
			}
		}
		reading = reading || statement.each != nil
	}
	args := make([]any, len(columns))
	for c, column := range columns {
		args[c] = column
	}
	queued := pipeline.Queue(sql, args...)
	if !reading {
		return
	}
	queued.Query(func(rows pgx.Rows) error {
		row := &resultRow{Rows: rows}
		for rows.Next() {
			ordinal, err := row.ordinal()
			if err != nil {
				return err
			}
			n := statementOf[ordinal-1]
			if err := guard(log, func() error { return statements[n].each(row) }); err != nil && owners[n].err == nil {
				owners[n].err = err
			}
		}
		return rows.Err()
	})
}

// finishStatements runs what follows the statements of a successful round trip,
// and empties the queues.
func finishStatements(log *slog.Logger, queues []*queue) {
	for _, q := range queues {
		for _, statement := range q.statements {
			q.wrote = q.wrote || statement.writes
			if statement.done != nil && q.err == nil {
				q.err = guard(log, statement.done)
			}
		}
		q.statements = nil
	}
}
