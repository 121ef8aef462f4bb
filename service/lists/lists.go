package lists

import "millwright/service/store"

// Lists stores the watermarks that sync tokens name.
type Lists struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Lists { return &Lists{Store: s} }
