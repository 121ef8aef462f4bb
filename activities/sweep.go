package activities

import (
	"context"
	"time"

	"millwright/service"
)

// Sweeper looks for what is owed.
type Sweeper struct {
	Service *service.Service
	Poker   service.Poker
	// Grace is how long something may wait before it counts as in nobody's hand.
	Grace time.Duration
	// Watched is told of each sweep; nil is not.
	Watched *Watched
}

// PokeOwed pokes every workflow that owes something and returns how many.
func (s *Sweeper) PokeOwed(ctx context.Context) (int, error) {
	owed, err := s.Service.Owed(ctx, s.Grace)
	if err != nil {
		return 0, err
	}
	s.Poker.Poke(owed...)
	s.Watched.sweptAt(s.Service.Now(), len(owed))
	return len(owed), nil
}
