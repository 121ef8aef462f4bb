package upkeep

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/store"
)

// MarkAllDirty marks every open record dirty, so that the next sweeps wake its
// workflow and start it if it is missing. It is for a Temporal cluster that lost its
// data or was restored to an earlier time. The marks are dated back so that the sweep
// takes them at once. It returns the number of records. Errors: unavailable.
func (s *Upkeep) MarkAllDirty(ctx context.Context) (records int, err error) {
	err = s.Run(ctx, "", store.Lock{}, func(reading *pgx.Batch) {
		reading.Queue(store.AllowLongStatement)
		reading.Queue(`
			WITH marked AS (
				INSERT INTO dirty_records (record_id, since)
					SELECT id, $1::timestamptz FROM work_orders WHERE status NOT IN ('complete', 'cancelled')
					UNION ALL SELECT id, $1 FROM feedback WHERE status <> 'resolved'
				ON CONFLICT (record_id) DO UPDATE SET since = excluded.since
				RETURNING record_id)
			SELECT count(*) FROM marked`, s.CurrentTime().Add(-time.Minute)).QueryRow(func(row pgx.Row) error { return row.Scan(&records) })
	}, func(*store.Tx) error { return nil })
	return records, err
}
