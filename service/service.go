package service

import (
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/imports"
	"millwright/service/integrations"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/pages"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/service/upkeep"
	"millwright/service/webhooks"
)

// Service runs the reads and writes, each in its room. It is safe for concurrent use.
type Service struct {
	Access       *access.Access
	Effects      *effects.Effects
	Imports      *imports.Imports
	Integrations *integrations.Integrations
	Inventory    *inventory.Inventory
	Lists        *lists.Lists
	Pages        *pages.Pages
	People       *people.People
	Records      *records.Records
	Upkeep       *upkeep.Upkeep
	Webhooks     *webhooks.Webhooks
	// Store is shared by the rooms. Others use its options, such as the clock, and its checks of
	// the database, but run no statements (forbidigo in .golangci.yaml).
	Store *store.Store
}

// New returns a Service on the pool. It fails if a required option is missing.
func New(pool *pgxpool.Pool, options store.Options) (*Service, error) {
	s, err := store.New(pool, options)
	if err != nil {
		return nil, err
	}
	p := people.New(s)
	return &Service{
		Access: access.New(s), Effects: effects.New(s), Imports: imports.New(s, p), Integrations: integrations.New(s),
		Inventory: inventory.New(s), Lists: lists.New(s), Pages: pages.New(s), People: p,
		Records: records.New(s), Upkeep: upkeep.New(s), Webhooks: webhooks.New(s), Store: s,
	}, nil
}
