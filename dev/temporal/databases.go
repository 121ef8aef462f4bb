package temporal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/dev/postgres"
)

const (
	mainSchema       = "postgresql/v12/temporal"
	visibilitySchema = "postgresql/v12/visibility"
	// maxConnections is per service and store: eight pools share the Postgres server
	// with the product.
	maxConnections = 20
	// retention is the time for which a new namespace keeps closed workflows.
	retention = 30 * 24 * time.Hour
)

// databases are Temporal's two stores on one Postgres server.
type databases struct{ main, visibility *config.SQL }

// prepareDatabases creates what is missing: databases, schema and namespace.
func prepareDatabases(ctx context.Context, postgresURL, prefix string) (*databases, error) {
	server, err := url.Parse(postgresURL)
	if err != nil {
		return nil, errors.New("DATABASE_URL is not the URL of a Postgres server") // the error would show its password
	}
	db := &databases{store(server, prefix), store(server, prefix+"_visibility")}
	if err := postgres.CreateDatabases(ctx, postgresURL, db.main.DatabaseName, db.visibility.DatabaseName); err != nil {
		return nil, fmt.Errorf("Postgres does not serve Temporal: %w", err)
	}
	var both errgroup.Group
	both.Go(func() error { return migrate(db.main, mainSchema) })
	both.Go(func() error { return migrate(db.visibility, visibilitySchema) })
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return db, registerNamespace(db.main)
}

// store configures one store.
func store(server *url.URL, database string) *config.SQL {
	password, _ := server.User.Password()
	attributes := map[string]string{"sslmode": "prefer"} // as without Temporal
	for name := range server.Query() {
		attributes[name] = server.Query().Get(name)
	}
	return &config.SQL{
		PluginName:        postgresql.PluginNamePGX,
		DatabaseName:      database,
		ConnectAddr:       server.Host,
		User:              server.User.Username(),
		Password:          password,
		ConnectAttributes: attributes,
		MaxConns:          maxConnections,
		MaxIdleConns:      maxConnections,
		MaxConnLifetime:   time.Hour,
	}
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
func registerNamespace(main *config.SQL) error {
	namespace, err := sqlite.NewNamespaceConfig(clusterName, Namespace, false, nil)
	if err != nil {
		return fmt.Errorf("cannot describe the namespace %s: %w", Namespace, err)
	}
	namespace.Detail.Config.Retention = durationpb.New(retention)
	if err := sqlite.CreateNamespaces(main, namespace); err != nil {
		return fmt.Errorf("cannot register the namespace %s: %w", Namespace, err)
	}
	return nil
}
