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
	// maxConnections is per service and store: eight pools draw on the same
	// Postgres server as the product.
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
		return nil, fmt.Errorf("the Postgres URL is malformed: %w", err)
	}
	return &databases{
		server:     server,
		main:       store(server, prefix),
		visibility: store(server, prefix+"_visibility"),
	}, nil
}

// store configures one store. Its connections are opened here instead of by
// the plugin, which would put a URL together from host, user and password and
// lose what else the given URL says (a socket's path, TLS, quoting).
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

// durationsAreIntegers does what the plugin does with its own connections:
// Temporal keeps durations as nanoseconds, pgx would write intervals.
func durationsAreIntegers(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterDefaultPgType(time.Duration(0), "int8")
	conn.TypeMap().RegisterDefaultPgType((*time.Duration)(nil), "int8")
	return nil
}

// prepare makes what is missing: databases, schema, namespace.
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
			return fmt.Errorf("the list of databases could not be read: %w", err)
		}
		if exists {
			continue
		}
		_, err = conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize())
		var refusal *pgconn.PgError
		if errors.As(err, &refusal) && refusal.Code == "42501" { // insufficient_privilege
			return fmt.Errorf("the role %s may not create Temporal's database %s on %s:%d: "+
				"create the databases %s and %s, owned by this role, and start again",
				d.server.User, name, d.server.Host, d.server.Port, d.main.DatabaseName, d.visibility.DatabaseName)
		}
		if err != nil {
			return fmt.Errorf("Temporal's database %s could not be created: %w", name, err)
		}
	}
	return nil
}

// migrate brings one database to the schema this server needs. Every step may
// be repeated, so a start that was killed halfway is completed by the next.
func migrate(cfg *config.SQL, name string) error {
	// The connection's own copy: the schema tool changes what it is given.
	own := *cfg
	logger := log.NewNoopLogger()
	conn, err := sqltool.NewConnection(&own, logger)
	if err != nil {
		return fmt.Errorf("Temporal's database %s does not answer: %w", cfg.DatabaseName, err)
	}
	defer conn.Close()
	// Set-up leaves a database alone that has a version already.
	setup := &schema.SetupConfig{InitialVersion: "0.0"}
	if err := schema.NewSetupSchemaTask(conn, setup, logger).Run(); err != nil {
		return fmt.Errorf("Temporal's database %s could not be set up: %w", cfg.DatabaseName, err)
	}
	update := &schema.UpdateConfig{SchemaName: name}
	if err := schema.NewUpdateSchemaTask(conn, update, logger).Run(); err != nil {
		return fmt.Errorf("the schema of Temporal's database %s could not be updated: %w", cfg.DatabaseName, err)
	}
	return nil
}

// registerNamespace writes the namespace straight into the database, so that
// it is known from the server's first moment; over the API it would become
// visible to all services only at the next refresh of their caches. The
// function is the one Temporal's own development server uses, and works on
// any SQL store.
func (d *databases) registerNamespace(retention time.Duration) error {
	namespace, err := sqlite.NewNamespaceConfig(clusterName, Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("the namespace %s could not be described: %w", Namespace, err)
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	if err := sqlite.CreateNamespaces(d.main, namespace); err != nil {
		return fmt.Errorf("the namespace %s could not be registered: %w", Namespace, err)
	}
	return nil
}
