package servicetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models/migrations"
	"millwright/service/store"
)

// Database returns the URL of a new database for the test: a clone of a template with
// the schema. It is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	return create(t, func(ctx context.Context, admin *pgx.Conn, server string) (template string, err error) {
		template = templateName(t)
		return template, ensureTemplate(ctx, admin, server, template)
	})
}

// The role that owns nothing, with which the end-to-end tests run the service.
const (
	serviceRole     = "millwright_tests"
	servicePassword = "not-the-owner-7Qn4xW2bTz"
)

// AsServiceRole returns the URL of a test's Database for a role that may read and write rows,
// but define nothing.
func AsServiceRole(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	Must(t, err)
	u.User = url.UserPassword(serviceRole, servicePassword)
	return u.String()
}

// EmptyDatabase is Database without the schema.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return create(t, func(context.Context, *pgx.Conn, string) (template string, err error) { return "template1", nil })
}

// Locales are what a server may have been set up with, as options of CREATE DATABASE.
var Locales = map[string]string{
	"C":       `LOCALE 'C'`,
	"C.UTF-8": `LOCALE 'C.UTF-8'`,
	"ICU":     `LOCALE 'C.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'`,
}

// NewInLocale is New on a database with one of the Locales.
func NewInLocale(t testing.TB, locale string) *Fixture {
	t.Helper()
	database := create(t, func(context.Context, *pgx.Conn, string) (string, error) {
		return `template0 ENCODING 'UTF8' ` + locale, nil
	})
	if _, _, err := store.Migrate(t.Context(), database, ""); err != nil {
		t.Fatal(err)
	}
	f := connect(t.Context(), t, database)
	f.Service = f.NewInstance()
	Must(t, f.Store.MakePartitions(t.Context()))
	made, err := f.importOrganizations(t.Context())
	Must(t, err)
	f.Acme, f.Polar = made.Acme, made.Polar
	return f
}

// administration are a process's connections to the server of DATABASE_URL, which end with it.
var administration struct {
	once sync.Once
	pool *pgxpool.Pool
	err  error
}

// create returns the URL of a new database for the test, cloned from the template that
// find names on the server.
func create(t testing.TB, find func(ctx context.Context, admin *pgx.Conn, server string) (template string, err error)) string {
	t.Helper()
	ctx := t.Context()
	administration.once.Do(func() {
		if os.Getenv("DATABASE_URL") == "" {
			administration.err = errors.New("DATABASE_URL is not set: run the tests with `make test`, or under `bin/devstack exec --`")
			return
		}
		administration.pool, administration.err = pgxpool.New(context.WithoutCancel(ctx), os.Getenv("DATABASE_URL"))
	})
	pool, err := administration.pool, administration.err
	Must(t, err)
	admin, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatalf("connect to the test database server: %v", err)
	}
	defer admin.Release()
	server := pool.Config().ConnString()
	template, err := find(ctx, admin.Conn(), server)
	if err != nil {
		t.Fatalf("create the template database: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	strategy := "" // by default, Postgres 15 and later write every page to the log as well
	if admin.Conn().PgConn().ParameterStatus("server_version") >= "15" {
		strategy = "STRATEGY file_copy"
	}
	if _, err := admin.Exec(ctx, fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s %s`, name, template, strategy)); err != nil {
		t.Fatalf("clone the template database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.WithoutCancel(ctx), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return withDatabase(server, name)
}

// templateName returns a name that changes with the migrations.
func templateName(t testing.TB) string {
	t.Helper()
	sum := sha256.New()
	sum.Write([]byte(serviceRole)) // which may use it
	err := fs.WalkDir(migrations.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := migrations.Files.ReadFile(path)
		sum.Write(text)
		return err
	})
	if err != nil {
		t.Fatalf("read the migrations: %v", err)
	}
	return fmt.Sprintf("template_%x", sum.Sum(nil)[:8])
}

// ensureTemplate creates the template with the schema unless another test process already has.
func ensureTemplate(ctx context.Context, admin *pgx.Conn, server, template string) error {
	return ensure(ctx, admin, template, "template1", func(unfinished string) error {
		if _, err := admin.Exec(ctx, `DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '`+serviceRole+`') THEN
				CREATE ROLE `+serviceRole+` LOGIN PASSWORD '`+servicePassword+`';
			END IF;
		END $$`); err != nil {
			return err
		}
		_, _, err := store.Migrate(ctx, withDatabase(server, unfinished), serviceRole)
		return err
	})
}

// ensure creates the template from another database unless another test process already has.
// fill completes it under the name that it is given.
func ensure(ctx context.Context, admin *pgx.Conn, template, from string, fill func(unfinished string) error) error {
	if _, err := admin.Exec(ctx, `SELECT pg_advisory_lock(7215001)`); err != nil {
		return err
	}
	defer func() { _, _ = admin.Exec(ctx, `SELECT pg_advisory_unlock(7215001)`) }()
	var exists bool
	err := admin.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, template).Scan(&exists)
	if err != nil || exists {
		return err
	}
	unfinished := template + "_unfinished"
	for _, sql := range []string{`DROP DATABASE IF EXISTS ` + unfinished, `CREATE DATABASE ` + unfinished + ` TEMPLATE ` + from} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := fill(unfinished); err != nil {
		return err
	}
	_, err = admin.Exec(ctx, `ALTER DATABASE `+unfinished+` RENAME TO `+template)
	return err
}

func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		panic(err) // pgx parsed it before
	}
	u.Path = "/" + name
	return u.String()
}
