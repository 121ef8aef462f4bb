package migrations_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/servicetest"
)

// harness is a database with the schema.
type harness struct {
	*pgxpool.Pool
	t *testing.T
}

// The organization of the tests, with a person and a node.
const (
	organization = "idn_00000000000000000000000001"
	person       = "idn_00000000000000000000000002"
	node         = "loc_00000000000000000000000001"
)

// newHarness returns a database with the organization.
func newHarness(t *testing.T) *harness {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), servicetest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := &harness{pool, t}
	h.exec(`BEGIN`, `
		INSERT INTO organizations (id, key, created_at) VALUES ('`+organization+`', 'acme', now())`, `
		INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) VALUES
			('`+organization+`', '`+organization+`', 'organization', 'Acme', now(), now()),
			('`+person+`', '`+organization+`', 'person', 'Ann', now(), now())`, `
		INSERT INTO inventory_nodes (id, organization_id, kind, name, created_at, changed_at)
			VALUES ('`+node+`', '`+organization+`', 'location', 'Headquarters', now(), now())`,
		`SELECT work_order_numbers.create_for('`+organization+`')`, `COMMIT`)
	return h
}

// exec runs the statements on one connection.
func (h *harness) exec(statements ...string) {
	h.t.Helper()
	err := h.AcquireFunc(h.t.Context(), func(c *pgxpool.Conn) error {
		for _, statement := range statements {
			if _, err := c.Exec(context.WithoutCancel(h.t.Context()), statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// value returns the one value of a query.
func value[T any](h *harness, query string, args ...any) T {
	h.t.Helper()
	var v T
	if err := h.QueryRow(h.t.Context(), query, args...).Scan(&v); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
	return v
}
