package activities

import (
	"context"
	"sync/atomic"
	"time"

	"millwright/service"
	"millwright/service/store"
)

const (
	// MaxSweepRun limits the time for which one SweepForAWhile works.
	MaxSweepRun = 10 * time.Minute
	// SweepHeartbeatTimeout is the time after which another worker process continues a sweep whose worker process died.
	// It is longer than the database's time limits for a sweep's statements.
	SweepHeartbeatTimeout = 20 * time.Second
)

// Sweeper wakes workflows whose work is unclaimed.
type Sweeper struct {
	Service *service.Service
	Waker   store.Waker
	// Grace is the time after which waiting work counts as unclaimed, and the interval
	// of SweepForAWhile's sweeps.
	Grace time.Duration
	// Open lists the open workflows.
	Open WorkflowLister
	// Pause pauses WakeMissing; nil pauses for that time, until the context ends or the
	// worker stops.
	Pause func(ctx context.Context, duration time.Duration) error
	// Instrumentation records each sweep; it may be nil.
	Instrumentation *Instrumentation
}

// WakeUnclaimed wakes every workflow with unclaimed work, starts a Delivery for each overdue one and returns their number.
func (s *Sweeper) WakeUnclaimed(ctx context.Context) (int, error) {
	unclaimed, err := s.Service.Upkeep.Unclaimed(ctx, s.Grace)
	if err != nil {
		return 0, err
	}
	overdue, givenUp, err := s.Service.Webhooks.Overdue(ctx)
	if err != nil {
		return 0, err
	}
	s.Waker.Wake(unclaimed...)
	s.Waker.Wake(givenUp...)
	s.Waker.WakeFailing(overdue...)
	found := len(unclaimed) + len(overdue)
	s.Instrumentation.sweepFinished(s.Service.Store.Now(), found)
	return found, nil
}

// SweepForAWhile calls WakeUnclaimed every Grace for the duration, at most MaxSweepRun, or
// until the worker stops. It returns how many workflows it woke.
func (s *Sweeper) SweepForAWhile(ctx context.Context, duration time.Duration) (int, error) {
	var woken atomic.Int64
	defer heartbeat(ctx, woken.Load)()
	err := repeat(ctx, min(duration, MaxSweepRun), s.Grace, func(ctx context.Context) (bool, error) {
		n, err := s.WakeUnclaimed(ctx)
		woken.Add(int64(n))
		return false, err
	})
	return int(woken.Load()), err
}
