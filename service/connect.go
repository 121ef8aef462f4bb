package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"millwright/models/migrations"
)

// Connect returns a pool on the database. It does not wait for the database to
// answer: a service starts without one and answers 503 until it is there. It
// fails when the URL is malformed.
func Connect(ctx context.Context, url string, application string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("DATABASE_URL is not a Postgres connection string")
	}
	config.ConnConfig.RuntimeParams["application_name"] = application
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["statement_timeout"] = "30s"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "30s"
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	if config.MaxConns < 16 {
		config.MaxConns = 16
	}
	config.MaxConnIdleTime = 5 * time.Minute
	return pgxpool.NewWithConfig(ctx, config)
}

// Migrate brings the schema of the database at the URL to this binary's
// version. Several may run at once: a session lock lets one work. It returns
// how many migrations it applied.
func Migrate(ctx context.Context, url string) (int, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return 0, errors.New("DATABASE_URL is not a Postgres connection string")
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return 0, err
	}
	results, err := provider.Up(ctx)
	if err != nil {
		return 0, fmt.Errorf("apply the migrations: %w", err)
	}
	return len(results), nil
}

// CheckSchema reports whether the database has the schema this binary needs:
// nil, or an error that names the command to run.
func (s *Service) CheckSchema(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.pool)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	pending, err := provider.HasPending(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", s.translate(err))
	}
	if pending {
		return errors.New("the database's schema is older than this program: run `millwright migrate`")
	}
	return nil
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("prepare the migration lock: %w", err)
	}
	return goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker))
}
