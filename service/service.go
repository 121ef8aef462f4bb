package service

import (
	"context"

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

// The rooms under names that hide none of their methods: Service has methods People,
// Integrations and Webhooks.
type (
	accessRoom       = access.Access
	effectsRoom      = effects.Effects
	importsRoom      = imports.Imports
	integrationsRoom = integrations.Integrations
	inventoryRoom    = inventory.Inventory
	listsRoom        = lists.Lists
	pagesRoom        = pages.Pages
	peopleRoom       = people.People
	recordsRoom      = records.Records
	upkeepRoom       = upkeep.Upkeep
	webhooksRoom     = webhooks.Webhooks
)

// Service runs the reads and writes. It is safe for concurrent use. All rooms embed the same
// Store, at the same depth, so the Store's own methods are no part of Service.
type Service struct {
	store.Options
	*accessRoom
	*effectsRoom
	*importsRoom
	*integrationsRoom
	*inventoryRoom
	*listsRoom
	*pagesRoom
	*peopleRoom
	*recordsRoom
	*upkeepRoom
	*webhooksRoom
	store *store.Store
}

// New returns a Service on the pool. It fails if a required option is missing.
func New(pool *pgxpool.Pool, options store.Options) (*Service, error) {
	s, err := store.New(pool, options)
	if err != nil {
		return nil, err
	}
	return On(s), nil
}

// On returns the Service on a Store. New is for everything but tests that also need the Store.
func On(s *store.Store) *Service {
	p := people.New(s)
	s.Readers = []store.Prefetcher{records.WorkOrderReader, records.FeedbackReader, inventory.NodeReader}
	return &Service{
		Options: s.Options, store: s,
		accessRoom: access.New(s), effectsRoom: effects.New(s), importsRoom: imports.New(s, p), integrationsRoom: integrations.New(s),
		inventoryRoom: inventory.New(s), listsRoom: lists.New(s), pagesRoom: pages.New(s), peopleRoom: p,
		recordsRoom: records.New(s), upkeepRoom: upkeep.New(s), webhooksRoom: webhooks.New(s),
	}
}

// Ping checks that the database responds. Errors: unavailable.
func (s *Service) Ping(ctx context.Context) error { return s.store.Ping(ctx) }

// CheckSchema checks that the database has the schema of this version (store.Store.CheckSchema).
func (s *Service) CheckSchema(ctx context.Context) error { return s.store.CheckSchema(ctx) }

// MakePartitions makes the partitions of the coming days (store.Store.MakePartitions).
func (s *Service) MakePartitions(ctx context.Context) error { return s.store.MakePartitions(ctx) }
