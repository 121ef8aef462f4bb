package servicetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"millwright/models/migrations"
	"millwright/service"
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
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(serviceRole, servicePassword)
	return u.String()
}

// EmptyDatabase is Database without the schema.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return create(t, func(context.Context, *pgx.Conn, string) (template string, err error) { return "template1", nil })
}

// create returns the URL of a new database for the test, cloned from the template that
// find names on the server.
func create(t testing.TB, find func(ctx context.Context, admin *pgx.Conn, server string) (template string, err error)) string {
	t.Helper()
	ctx := t.Context()
	server := os.Getenv("DATABASE_URL")
	if server == "" {
		t.Fatal("DATABASE_URL is not set: run the tests with `make test`, or under `bin/devstack exec --`")
	}
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatalf("connect to the test database server: %v", err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(ctx)) }()
	template, err := find(ctx, admin, server)
	if err != nil {
		t.Fatalf("create the template database: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	if _, err := admin.Exec(ctx, fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s`, name, template)); err != nil {
		t.Fatalf("clone the template database: %v", err)
	}
	t.Cleanup(func() { drop(t, server, name) })
	return withDatabase(server, name)
}

func drop(t testing.TB, server, name string) {
	ctx := context.WithoutCancel(t.Context())
	admin, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Errorf("connect to drop the test's database: %v", err)
		return
	}
	defer func() { _ = admin.Close(ctx) }()
	if _, err := admin.Exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
		t.Errorf("drop the test's database: %v", err)
	}
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
		if _, err := service.Migrate(ctx, withDatabase(server, unfinished), serviceRole); err != nil {
			return err
		}
		return makePartitions(ctx, withDatabase(server, unfinished))
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

// makePartitions makes the partitions of the fixtures' first days. Today's are there,
// for programs.
func makePartitions(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, `SELECT partitions.make(($1::timestamptz AT TIME ZONE 'UTC')::date - 1, $2)`, Start, service.PartitionDaysAhead+2)
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
