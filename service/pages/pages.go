package pages

import "millwright/service/store"

// Pages reads views across rooms.
type Pages struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Pages { return &Pages{Store: s} }
