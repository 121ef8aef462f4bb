package store

import (
	"context"
	"fmt"
	"time"

	"millwright/models"
)

// Events, deliveries and attempts are partitioned by the UTC day of their ids. Functions
// of the schema partitions make and remove the partitions, with the rights of its owner
// (docs/decisions/0029-partitions.md).

// PartitionDaysAhead is for how many days after today there are partitions.
const PartitionDaysAhead = 7

// makePartitions makes the partitions of the days from $1 on, by default now, those that
// are missing. Yesterday is included because the clocks of two processes differ.
const makePartitions = `SELECT partitions.make((coalesce($1::timestamptz, now()) AT TIME ZONE 'UTC')::date - 1, $2::integer + 2)`

// MakePartitions makes the partitions of today and PartitionDaysAhead more days, those
// that are missing. It blocks neither writers nor readers. Errors: unavailable.
func (s *Store) MakePartitions(ctx context.Context) error {
	_, err := s.Pool.Exec(ctx, makePartitions, s.Now(), PartitionDaysAhead)
	return s.Translate(err)
}

// requirePartitions makes partitions if tomorrow's are missing, which means that
// housekeeping has not run for a week. Without today's, no event can be stored.
func (s *Store) requirePartitions(ctx context.Context) error {
	var missing bool
	err := s.Pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM partitions.tables() t, LATERAL (SELECT ($1::timestamptz AT TIME ZONE 'UTC')::date + 1 AS day) tomorrow
			WHERE NOT EXISTS (SELECT FROM partitions.days d
				WHERE d.of = t.name AND d.attached AND d.day = tomorrow.day))`,
		s.Now()).Scan(&missing)
	if err == nil && missing {
		s.Log.Warn("partitions for events are missing; making them: housekeeping has not run for days")
		err = s.MakePartitions(ctx)
	}
	if err != nil {
		return fmt.Errorf("make the partitions for events: %w", s.Translate(err))
	}
	return nil
}

// maxPartitionSteps bounds one removal of partitions: detaching and dropping the partitions
// of ten days.
const maxPartitionSteps = 2 * 3 * 10

// RemovePartitions removes the partitions of days whose last event expired before now, and
// empties that of the responses to calls with a key which have expired. It returns how
// many were dropped or emptied. Each step is a transaction: a partition that was
// detached is no longer read, and is dropped by the next step, or after a crash by the
// next removal. A table that is in use for longer, by a dump for instance, is left to
// the next removal.
func (s *Store) RemovePartitions(ctx context.Context, now time.Time) (dropped int, err error) {
	var emptied bool
	if err := s.Pool.QueryRow(ctx, `SELECT partitions.empty_slot($1)`, now).Scan(&emptied); err != nil {
		return 0, s.Translate(err)
	}
	if emptied {
		dropped++
	}
	for range maxPartitionSteps {
		var isDropped *bool
		err := s.Pool.QueryRow(ctx, `SELECT dropped FROM partitions.remove_next($1)`, now.Add(-models.EventRetention)).Scan(&isDropped)
		if err != nil || isDropped == nil {
			return dropped, s.Translate(err)
		}
		if *isDropped {
			dropped++
		}
	}
	return dropped, nil
}
