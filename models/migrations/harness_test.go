package migrations_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"millwright/models/migrations"
	"millwright/service/servicetest"
)

// harness is a database at some version of the schema.
type harness struct {
	*pgxpool.Pool
	t        *testing.T
	provider *goose.Provider
}

// The organization of the tests, with a person and a node.
const (
	organization = "idn_00000000000000000000000001"
	person       = "idn_00000000000000000000000002"
	node         = "loc_00000000000000000000000001"
)

// newHarness returns a database with the schema of the version and the organization.
func newHarness(t *testing.T, version int64) *harness {
	t.Helper()
	url := servicetest.EmptyDatabase(t)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	t.Cleanup(func() { _ = db.Close() })
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := &harness{pool, t, newProvider(t, db)}
	h.upTo(version)
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

func newProvider(t *testing.T, db *sql.DB) *goose.Provider {
	t.Helper()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

// upTo brings the schema to the version.
func (h *harness) upTo(version int64) {
	h.t.Helper()
	if _, err := h.provider.UpTo(h.t.Context(), version); err != nil {
		h.t.Fatalf("migrate to %d: %v", version, err)
	}
}

// upToWhile migrates while a program writes: it calls write with the numbers from first to
// before end, until the migrations are done.
func (h *harness) upToWhile(version int64, first, end int, write func(n int)) {
	h.t.Helper()
	migrated := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := first; n < end; n++ {
			write(n)
			select {
			case <-migrated:
				return
			default:
			}
		}
	})
	h.upTo(version)
	close(migrated)
	writing.Wait()
}

// again applies the migration once more, as after a crash that came before its
// version was recorded.
func (h *harness) again(version int64) {
	h.t.Helper()
	h.exec(`DELETE FROM goose_db_version WHERE version_id >= ` + value[string](h, `SELECT $1::bigint::text`, version))
	h.upTo(version)
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
