package imports

import (
	"millwright/service/people"
	"millwright/service/store"
)

// Imports imports organizations.
type Imports struct {
	*store.Store
	// people hashes the passwords of a file, within the bound that sign-ins share.
	people *people.People
}

// New returns the functions on a store.
func New(s *store.Store, p *people.People) *Imports { return &Imports{s, p} }
