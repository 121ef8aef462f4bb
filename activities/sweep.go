package activities

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

const (
	// MaxSweepRun is how long one SweepForAWhile works before it returns.
	MaxSweepRun = 10 * time.Minute
	// SweepHeartbeatTimeout is how soon another worker continues after a sweep's worker died.
	// It is longer than the database's time limits for a sweep's statements.
	SweepHeartbeatTimeout = 20 * time.Second
)

// Sweeper wakes workflows whose work is unclaimed.
type Sweeper struct {
	Service *service.Service
	Waker   service.Waker
	// Grace is how long work may wait before it counts as unclaimed, and how often
	// SweepForAWhile sweeps.
	Grace time.Duration
	// Open lists the open workflows.
	Open WorkflowLister
	// Instrumentation records each sweep; it may be nil.
	Instrumentation *Instrumentation
}

// WorkflowLister lists the ids of the workflows of a kind that are open, for people: those
// that started or ended in the last seconds may be wrong.
type WorkflowLister interface {
	OpenWorkflows(ctx context.Context, kind service.TargetKind) (map[string]bool, error)
}

// WakeMissing wakes the workflows of addresses and deliveries that are not open although
// they are to be, because someone terminated them or Temporal lost them. It returns their
// number.
func (s *Sweeper) WakeMissing(ctx context.Context) (int, error) {
	missing := 0
	for _, kind := range []service.TargetKind{service.TargetWebhook, service.TargetDelivery} {
		wanted, err := s.Service.WantedWorkflows(ctx, kind)
		if err != nil {
			return missing, err
		}
		open, err := s.Open.OpenWorkflows(ctx, kind)
		if err != nil {
			return missing, err
		}
		for _, target := range wanted {
			if !open[target.ID] {
				s.Waker.Wake(target)
				missing++
			}
		}
		activity.RecordHeartbeat(ctx, missing)
	}
	return missing, nil
}

// WakeUnclaimed wakes every workflow with unclaimed work and returns their number.
func (s *Sweeper) WakeUnclaimed(ctx context.Context) (int, error) {
	unclaimed, err := s.Service.Unclaimed(ctx, s.Grace)
	if err != nil {
		return 0, err
	}
	shown, err := s.Service.ShowDeliveries(ctx)
	if err != nil {
		return 0, err
	}
	s.Waker.Wake(unclaimed...)
	s.Waker.Wake(shown...)
	s.Instrumentation.sweepFinished(s.Service.Now(), len(unclaimed))
	return len(unclaimed), nil
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
