package service

import "github.com/jackc/pgx/v5/pgxpool"

// New returns a Service on the pool. It fails if a required option is missing.
func New(pool *pgxpool.Pool, options Options) (*Service, error) {
	s, err := newService(pool, options)
	if err == nil {
		s.Readers = []Prefetcher{workOrders, feedback, nodes}
	}
	return s, err
}
