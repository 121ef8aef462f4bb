package imports

import "millwright/service/store"

// Imports imports organizations.
type Imports struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Imports { return &Imports{Store: s} }
