package activities

import (
	"context"
	"time"

	"millwright/service"
)

// Sweeper looks for what is owed.
type Sweeper struct {
	Service *service.Service
	Waker   service.Waker
	// Grace is how long something may wait before it counts as in nobody's hand.
	Grace time.Duration
	// Instrumentation is told of each sweep; nil is not.
	Instrumentation *Instrumentation
}

// PokeOwed pokes every workflow that owes something and returns how many.
func (s *Sweeper) PokeOwed(ctx context.Context) (int, error) {
	owed, err := s.Service.Unclaimed(ctx, s.Grace)
	if err != nil {
		return 0, err
	}
	s.Waker.Wake(owed...)
	s.Instrumentation.sweptAt(s.Service.Now(), len(owed))
	return len(owed), nil
}
