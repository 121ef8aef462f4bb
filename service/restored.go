package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// VoidSyncTokens stamps every record as changed now and voids every sync token.
// It is for a database that was set back to an earlier time of the same cluster:
// the transactions after that time are gone, their numbers are given again, and
// a token from then would pass by what they change. What came from another
// cluster, Migrate sees by itself. Errors: unavailable.
func (s *Service) VoidSyncTokens(ctx context.Context) error {
	return s.write(ctx, func(_ context.Context, t *tx) error {
		t.Queue(allowLongStatement)
		for _, statement := range restampStatements {
			t.Queue(statement)
		}
		return nil
	})
}

// MarkAllDirty has the workflow of every open record look, whether there is one or
// not: the next sweeps poke them, which starts those that are missing. It is for a
// Temporal that lost its data, or has that of another time. The marks are as old
// as a sweep every ten seconds lets them become. It returns how many records those
// are. Errors: unavailable.
func (s *Service) MarkAllDirty(ctx context.Context) (records int, err error) {
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		t.Queue(allowLongStatement)
		t.QueueRows(func(rows pgx.Rows) (err error) {
			records, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		}, `
			WITH marked AS (
				INSERT INTO looks_owed (record_id, since)
					SELECT id, $1::timestamptz FROM work_orders WHERE status NOT IN ('complete', 'cancelled')
					UNION ALL SELECT id, $1 FROM feedback WHERE status <> 'resolved'
				ON CONFLICT (record_id) DO UPDATE SET since = excluded.since
				RETURNING record_id)
			SELECT count(*) FROM marked`, t.at.Add(-time.Minute))
		return t.Flush(ctx)
	})
	return records, err
}
