package activities

import (
	"context"
	"time"

	"millwright/service"
)

// Sweeper wakes workflows whose work is unclaimed.
type Sweeper struct {
	Service *service.Service
	Waker   service.Waker
	// Grace is how long work may wait before it counts as unclaimed.
	Grace time.Duration
	// Instrumentation records each sweep; it may be nil.
	Instrumentation *Instrumentation
}

// WakeUnclaimed wakes every workflow with unclaimed work and returns their number.
func (s *Sweeper) WakeUnclaimed(ctx context.Context) (int, error) {
	unclaimed, err := s.Service.Unclaimed(ctx, s.Grace)
	if err != nil {
		return 0, err
	}
	s.Waker.Wake(unclaimed...)
	s.Instrumentation.sweepFinished(s.Service.Now(), len(unclaimed))
	return len(unclaimed), nil
}
