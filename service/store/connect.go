package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"millwright/models/migrations"
)

// DefaultMaxConnections limits the connections of a pool.
const DefaultMaxConnections = 16

// Pool configures a process's connections to the database.
type Pool struct {
	// Application is the name that pg_stat_activity shows.
	Application string
	// MaxConnections bounds the pool; 0 means DefaultMaxConnections.
	MaxConnections int
}

// Connect returns a pool on the database. It does not connect yet: a service starts
// without its database and responds with 503 until it is there. It fails if the URL is
// malformed.
func (p Pool) Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, malformedURL(err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = p.Application
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	// Compiling a plan takes longer than running it: a page of a list takes a few milliseconds.
	config.ConnConfig.RuntimeParams["jit"] = "off"
	// Pages are read by index and stop early. The default assumes a spinning disk, for which Postgres
	// would rather read and sort everything.
	config.ConnConfig.RuntimeParams["random_page_cost"] = "1.1"
	config.ConnConfig.RuntimeParams["statement_timeout"] = "30s"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "30s"
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	config.ConnConfig.Tracer = queryTracer{}
	config.MaxConns = int32(min(cmp.Or(max(p.MaxConnections, 0), DefaultMaxConnections), math.MaxInt32)) //nolint:gosec // bounded here
	config.MaxConnIdleTime = 5 * time.Minute
	return pgxpool.NewWithConfig(ctx, config)
}

// Pools are the connections of one process, divided by what they are for. Calls are
// admitted and single records read even if writes and lists hold all of the other
// connections (docs/decisions/0077-a-call-is-its-own.md).
type Pools struct {
	// Lookups finds out who asks, admits calls and reads single records.
	Lookups, Others *pgxpool.Pool
}

const (
	lookupConnections = 4
	// minDivided is the least number of connections worth dividing.
	minDivided = lookupConnections + 3
)

// Open returns pools that hold MaxConnections together. A small number is not divided.
// See Pool.Connect.
func (p Pool) Open(ctx context.Context, url string) (Pools, error) {
	p.MaxConnections = cmp.Or(max(p.MaxConnections, 0), DefaultMaxConnections)
	if p.MaxConnections < minDivided {
		all, err := p.Connect(ctx, url)
		return Pools{all, all}, err
	}
	var opened []*pgxpool.Pool
	for _, n := range []int{lookupConnections, p.MaxConnections - lookupConnections} {
		pool, err := Pool{Application: p.Application, MaxConnections: n}.Connect(ctx, url)
		if err != nil {
			for _, pool := range opened {
				pool.Close()
			}
			return Pools{}, err
		}
		opened = append(opened, pool)
	}
	return Pools{Lookups: opened[0], Others: opened[1]}, nil
}

// All returns each pool once.
func (p Pools) All() []*pgxpool.Pool {
	if p.Lookups == p.Others {
		return []*pgxpool.Pool{p.Others}
	}
	return []*pgxpool.Pool{p.Lookups, p.Others}
}

// Close closes the pools.
func (p Pools) Close() {
	for _, pool := range p.All() {
		pool.Close()
	}
}

// malformedURL describes the error in the database's URL without showing the URL: it may contain
// a password.
func malformedURL(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("DATABASE_URL names a file that cannot be read: %w", file)
	}
	return errors.New("DATABASE_URL is not a Postgres connection string")
}

// Migrate brings the schema of the database at the URL to this binary's version, and
// makes the partitions of the next days. If
// the data came from another cluster, it also gives the records new change positions. With a role, it lets
// that role run the service: read and write rows, but define nothing. A session lock
// serializes concurrent runs. It returns how many migrations it applied, and people whose e-mail addresses have
// become equal.
func Migrate(ctx context.Context, url, role string) (applied int, equal []SameEmail, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return 0, nil, malformedURL(err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return 0, nil, err
	}
	isOld, err := isDevelopmentSchema(ctx, db)
	if isOld {
		return 0, nil, errDevelopmentSchema
	}
	var results []*goose.MigrationResult
	if err == nil {
		results, err = provider.Up(ctx)
	}
	if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return 0, nil, fmt.Errorf("the database of DATABASE_URL cannot be reached: %w", failed)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("apply the migrations: %w", err)
	}
	if _, err := db.ExecContext(ctx, makePartitions, nil, PartitionDaysAhead); err != nil {
		return len(results), nil, fmt.Errorf("make the partitions for events: %w", err)
	}
	if err := reposition(ctx, db); err != nil {
		return len(results), nil, fmt.Errorf("give the records change positions of this database cluster: %w", err)
	}
	if equal, err = foldStrings(ctx, db); err != nil {
		return len(results), nil, fmt.Errorf("fold the strings by which records are searched: %w", err)
	}
	if role == "" {
		return len(results), equal, nil
	}
	if err := grantTo(ctx, db, role); err != nil {
		return len(results), nil, fmt.Errorf("let the role run the service: %w", err)
	}
	return len(results), equal, nil
}

// inAnotherCluster selects whether the data came from another cluster: a logical
// restore keeps changed_xid, which names transactions of that cluster.
const inAnotherCluster = `
	SELECT m.system_identifier <> c.system_identifier FROM cluster_mark m, pg_control_system() c`

// reposition gives every record a change position of now and removes the watermarks, which voids every
// sync token, if the data came from another cluster, since the positions are that
// cluster's.
func reposition(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var moved bool
	if err := tx.QueryRowContext(ctx, inAnotherCluster+` FOR UPDATE OF m`).Scan(&moved); err != nil || !moved {
		return err
	}
	for _, statement := range repositionStatements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// repositionStatements give every record a change position of now and void every sync token.
var repositionStatements = []string{
	`UPDATE identities SET changed_xid = pg_current_xact_id()`,
	`UPDATE inventory_nodes SET changed_xid = pg_current_xact_id()`,
	`UPDATE forms SET changed_xid = pg_current_xact_id()`,
	`UPDATE work_orders SET changed_xid = pg_current_xact_id()`,
	RebuildPositions,
	`UPDATE feedback SET changed_xid = pg_current_xact_id()`,
	`DELETE FROM watermarks`,
	`DELETE FROM moved_nodes`, // everything is repositioned, and moved_xid is the other cluster's
	`UPDATE cluster_mark SET system_identifier = (SELECT system_identifier FROM pg_control_system())`,
}

// CheckSchema returns an error that names the command to run if the database's schema
// is older than this binary, or its records were repositioned in another cluster. It makes the
// partitions of the next days if housekeeping has not for so long that tomorrow's is
// missing, and returns an error if it cannot.
func (s *Store) CheckSchema(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.Pool)
	defer func() { _ = db.Close() }()
	provider, err := newProvider(db)
	if err != nil {
		return err
	}
	isOld, err := isDevelopmentSchema(ctx, db)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", s.Translate(err))
	}
	if isOld {
		return errDevelopmentSchema
	}
	pending, err := provider.HasPending(ctx)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == insufficientPrivilege { // before the first migration
		pending, err = true, nil
	}
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", s.Translate(err))
	}
	if pending {
		return errors.New("the database's schema is older than this program: run `millwright migrate`")
	}
	var moved bool
	if err := s.Pool.QueryRow(ctx, inAnotherCluster).Scan(&moved); err != nil {
		return fmt.Errorf("read which cluster the data belongs to: %w", s.Translate(err))
	}
	if moved {
		return errors.New("the database was restored from another cluster, so its changes cannot be followed yet: run `millwright migrate`")
	}
	return s.requirePartitions(ctx)
}

// insufficientPrivilege is the SQLSTATE of what the role may not do: migrations grant it everything that it needs.
const insufficientPrivilege = "42501"

// errDevelopmentSchema rejects a database whose migrations had the numbers of today's.
var errDevelopmentSchema = errors.New("the database's schema is from before version 1.0.0, which cannot be migrated: delete the database and Temporal's, " +
	"in development with `rm -rf .dev`, and run `millwright migrate`")

// isDevelopmentSchema reports whether the database has the migrations from before 1.0.0:
// their migration 6 made no table of watermarks.
func isDevelopmentSchema(ctx context.Context, db *sql.DB) (isOld bool, err error) {
	var versions, watermarks bool
	err = db.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL, to_regclass('watermarks') IS NOT NULL`).Scan(&versions, &watermarks)
	if err != nil || !versions || watermarks {
		return false, err
	}
	err = db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM goose_db_version WHERE version_id >= 6)`).Scan(&isOld)
	return isOld, err
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("prepare the migration lock: %w", err)
	}
	return goose.NewProvider(goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker))
}
