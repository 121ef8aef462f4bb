package upkeep

import "millwright/service/store"

// Upkeep keeps house.
type Upkeep struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Upkeep { return &Upkeep{Store: s} }
