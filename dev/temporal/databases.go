package temporal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/iancoleman/strcase"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	mainSchema       = "postgresql/v12/temporal"
	visibilitySchema = "postgresql/v12/visibility"
	// maxConnections is per service and store: eight pools share the Postgres server
	// with the product.
	maxConnections = 20
)

// databases are Temporal's two stores on one Postgres server.
type databases struct {
	server           *pgx.ConnConfig
	main, visibility *config.SQL
}

func newDatabases(url, prefix string) (*databases, error) {
	server, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("malformed Postgres URL: %w", err)
	}
	return &databases{
		server:     server,
		main:       store(server, prefix),
		visibility: store(server, prefix+"_visibility"),
	}, nil
}

// store configures one store. It opens the connections itself, because the plugin
// would build a URL from host, user and password and lose the rest of the given URL
// (socket path, TLS, quoting).
func store(server *pgx.ConnConfig, database string) *config.SQL {
	return &config.SQL{
		PluginName:   postgresql.PluginNamePGX,
		DatabaseName: database,
		ConnectAddr:  server.Host,
		Connect: func(cfg *config.SQL) (*sqlx.DB, error) {
			conn := server.Copy()
			conn.Database = cfg.DatabaseName
			pool := sql.OpenDB(stdlib.GetConnector(*conn, stdlib.OptionAfterConnect(durationsAreIntegers)))
			pool.SetMaxOpenConns(maxConnections)
			pool.SetMaxIdleConns(maxConnections)
			pool.SetConnMaxLifetime(time.Hour)
			db := sqlx.NewDb(pool, "pgx")
			db.MapperFunc(strcase.ToSnake)
			if err := db.Ping(); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return db, nil
		},
	}
}

// durationsAreIntegers does what the plugin does with its own connections: Temporal
// stores durations as nanoseconds, but pgx would send intervals.
func durationsAreIntegers(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterDefaultPgType(time.Duration(0), "int8")
	conn.TypeMap().RegisterDefaultPgType((*time.Duration)(nil), "int8")
	return nil
}

// prepare creates what is missing: databases, schema and namespace.
func (d *databases) prepare(ctx context.Context, retention time.Duration) error {
	if err := d.create(ctx); err != nil {
		return err
	}
	var both errgroup.Group
	both.Go(func() error { return migrate(d.main, mainSchema) })
	both.Go(func() error { return migrate(d.visibility, visibilitySchema) })
	if err := both.Wait(); err != nil {
		return err
	}
	return d.registerNamespace(retention)
}

func (d *databases) create(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, d.server)
	if err != nil {
		return fmt.Errorf("Postgres does not answer Temporal: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range []string{d.main.DatabaseName, d.visibility.DatabaseName} {
		var exists bool
		err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&exists)
		if err != nil {
			return fmt.Errorf("cannot list the databases: %w", err)
		}
		if exists {
			continue
		}
		_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code == "42501" { // insufficient_privilege
			return fmt.Errorf("the role %s may not create Temporal's database %s on %s:%d: "+
				"create the databases %s and %s, owned by this role, and start again",
				d.server.User, name, d.server.Host, d.server.Port, d.main.DatabaseName, d.visibility.DatabaseName)
		}
		if err != nil {
			return fmt.Errorf("cannot create Temporal's database %s: %w", name, err)
		}
	}
	return nil
}

// migrate updates one database to the schema that this server needs. Each step can be
// repeated, so the next start completes one that was killed.
func migrate(cfg *config.SQL, name string) error {
	// The schema tool changes the configuration it gets.
	own := *cfg
	logger := log.NewNoopLogger()
	conn, err := sqltool.NewConnection(&own, logger)
	if err != nil {
		return fmt.Errorf("Temporal's database %s does not answer: %w", cfg.DatabaseName, err)
	}
	defer conn.Close()
	// Set-up skips a database that already has a version.
	setup := &schema.SetupConfig{InitialVersion: "0.0"}
	if err := schema.NewSetupSchemaTask(conn, setup, logger).Run(); err != nil {
		return fmt.Errorf("cannot set up Temporal's database %s: %w", cfg.DatabaseName, err)
	}
	update := &schema.UpdateConfig{SchemaName: name}
	if err := schema.NewUpdateSchemaTask(conn, update, logger).Run(); err != nil {
		return fmt.Errorf("cannot update the schema of Temporal's database %s: %w", cfg.DatabaseName, err)
	}
	return nil
}

// registerNamespace writes the namespace directly to the database, so that the server
// knows it from the start. Through the API, services would see it only after their
// caches are refreshed. Temporal's own development server uses the same function,
// which works with any SQL store.
func (d *databases) registerNamespace(retention time.Duration) error {
	namespace, err := sqlite.NewNamespaceConfig(clusterName, Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("cannot describe the namespace %s: %w", Namespace, err)
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	if err := sqlite.CreateNamespaces(d.main, namespace); err != nil {
		return fmt.Errorf("cannot register the namespace %s: %w", Namespace, err)
	}
	return nil
}
