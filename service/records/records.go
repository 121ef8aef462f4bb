package records

import "millwright/service/store"

// Records reads and changes work orders and feedback.
type Records struct{ *store.Store }

// New returns the functions on a store.
func New(s *store.Store) *Records { return &Records{Store: s} }
