package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// The pattern for a release with a migration: the program of the release before runs on the
// schema that the migration expands.
func TestAnOlderProgramRunsOnANewerSchema(t *testing.T) {
	const migration = `
		ALTER TABLE work_orders ADD COLUMN added text CHECK (added <> '');
		ALTER TABLE open_deliveries ADD COLUMN added integer NOT NULL DEFAULT 1`
	for name, expansion := range map[string]string{"its own schema": ``, "one migration more": migration} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			if expansion != "" {
				f.Exec(expansion)
				f.Exec(`INSERT INTO goose_db_version (version_id, is_applied) SELECT max(version_id) + 1, true FROM goose_db_version`)
			}
			if err := f.Store.CheckSchema(t.Context()); err != nil {
				t.Error(err)
			}
			servicetest.Create(t, f)
			servicetest.Record(t, f, "erp_hook", servicetest.Attempt(f, servicetest.Claim(t, f, "erp_hook").Deliveries[0], 200))
		})
	}
}

func TestAnOlderSchemaIsRejected(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`)
	if err := f.Store.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "`millwright migrate`") {
		t.Errorf("with one migration less: %v", err)
	}
}

// A database of the time before 1.0.0 has other migrations under the same numbers.
func TestADevelopmentSchemaIsRefused(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`ALTER TABLE watermarks RENAME TO earlier`)
	f.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (88, true)`)
	_, _, err := store.Migrate(t.Context(), f.Pool.Config().ConnString(), "")
	for what, err := range map[string]error{"migrate": err, "the check of api and worker": f.Store.CheckSchema(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "`rm -rf .dev`") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPoolSettings(t *testing.T) {
	url := servicetest.Database(t)
	for _, test := range []struct {
		url  string
		set  int
		want int32
	}{
		{url, 0, store.DefaultMaxConnections},
		{url, 3, 3},
		{url, 40, 40},
		{withParameter(url, "pool_max_conns=7"), 5, 5}, // MaxConnections overrides the URL
	} {
		pool, err := store.Pool{Application: "a test", MaxConnections: test.set}.Connect(t.Context(), test.url)
		servicetest.Must(t, err)
		t.Cleanup(pool.Close)
		servicetest.Expect(t, fmt.Sprint("connections of the pool with ", test.set), pool.Config().MaxConns, test.want)
		var application string
		if err := pool.QueryRow(t.Context(), `SELECT current_setting('application_name')`).Scan(&application); err != nil || application != "a test" {
			t.Errorf("Postgres knows it as %q, %v", application, err)
		}
	}
	if _, err := (store.Pool{}).Connect(t.Context(), "postgres://mill:hunter2@[::1/db"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a malformed URL: %v", err)
	}
}

func withParameter(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}

// Before the first migration api and worker may not even read the schema's version.
func TestTheServiceRoleIsToldToMigrate(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), servicetest.AsServiceRole(t, servicetest.EmptyDatabase(t)))
	servicetest.Must(t, err)
	t.Cleanup(pool.Close)
	f := servicetest.New(t)
	own := f.Store.Pool
	f.Store.Pool = pool
	defer func() { f.Store.Pool = own }()
	if err := f.Store.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "run `millwright migrate`") {
		t.Errorf("%v", err)
	}
}
