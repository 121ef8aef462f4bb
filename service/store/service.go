package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"millwright/models"
	"millwright/service/slots"
	"millwright/webhook"
)

// Options configure a Store. Tokens and Vault are required. Zero values of Now,
// Random and Log mean the real clock, crypto/rand and slog's default.
type Options struct {
	// Tokens signs and verifies access tokens.
	Tokens *TokenKeys
	// Vault seals signing secrets at rest.
	Vault *Vault
	// Waker wakes workflows after each commit; nil wakes none.
	Waker Waker
	// Mails is true if there is a mail server: notices are mailed by a worker, and so are sign-in
	// links to the people they are for. Without one no workflow is woken for mail.
	Mails bool
	// Issuer is the service's public base URL without /v1.
	Issuer string
	// Cell is part of new client ids, so that a router knows where their calls go
	// (docs/scaling.md, Cells); "" without cells.
	Cell string
	// RetrySchedule is the wait after each failed attempt except the last.
	RetrySchedule models.RetrySchedule
	// ShutOffAfter is the time without success after which a final failure turns an address
	// off.
	ShutOffAfter time.Duration
	// ReviewPeriods limit how long a review waits; zero periods mean the defaults.
	ReviewPeriods models.ReviewPeriods
	// MaxRetrying limits the open Delivery workflows of one address; 0 means 10,000.
	MaxRetrying int
	// AddressRules apply to webhook addresses when they are saved. Without a Resolver only
	// the spelling of host names is checked; an import never resolves.
	AddressRules webhook.Rules
	// AddressCallsPerMinute limits the calls without a valid token from one address.
	AddressCallsPerMinute int
	// FormsPerMinute and CommentsPerMinute limit the forms of a person in the console; 0 means
	// models.FormsPerMinute and models.CommentsPerMinute.
	FormsPerMinute, CommentsPerMinute int
	Now                               func() time.Time
	Random                            io.Reader
	// DatabaseNow is the database's clock for tests; nil means that of the database.
	DatabaseNow func() time.Time
	// PasswordMemory is the memory in KiB that hashing a password takes; 0 means 19 MiB, as
	// OWASP recommends. Tests take less, because the race detector makes hashing slow.
	PasswordMemory uint32
	Log            *slog.Logger
	// Unreachable is called with each error of a statement that did not reach the database,
	// which its caller gets as unavailable; nil logs it. It must return at once.
	Unreachable func(error)
	// AfterCommit is called after each commit, before workflows are woken; fault
	// tests end the process there.
	AfterCommit func()
	// Overloaded is called when a call is rejected because too many of its organization wait; nil
	// is ignored. It must return at once.
	Overloaded func()
	// Lookups are connections for those alone (Pools); nil means the pool of everything else.
	Lookups *pgxpool.Pool
}

// maxRequesting bounds the requests for links in progress, maxRequestsWaiting the waiting ones of a network.
const (
	maxRequesting      = 16
	maxRequestsWaiting = 60
)

// maxExportsWaiting bounds the files of a person that wait to be made.
const maxExportsWaiting = 2

// maxReceiving bounds the bodies of an integration that are being received: 64 MiB at most.
const maxReceiving = 64

// Store has the connections, and what calls in progress share. It is safe for concurrent
// use. Between calls it only remembers what the readers of lists could see, which each page
// checks.
type Store struct {
	Options
	Pool *pgxpool.Pool
	ORM  *gorm.DB
	// connections are the pool's, as GORM takes them. None is idle: it would occupy one of the pool's.
	connections *sql.DB
	// Calls bounds how many calls of an organization are in progress.
	Calls *slots.Slots
	// Receiving bounds how many bodies of an integration are being received.
	Receiving *slots.Slots
	// Parsing has one large body of each organization parsed at a time.
	Parsing *slots.Slots
	// Requesting bounds the requests for links that are looked up at a time, two of a network.
	Requesting *slots.Slots
	// Exporting has one file of each person made at a time.
	Exporting *slots.Slots
	// reads bounds the reads that hold a connection for long, singles the admissions and the reads of
	// single records, and lookUps those that find out who asks.
	reads, singles, lookUps *slots.Slots
	// writes bounds the writes that hold a connection.
	writes *slots.Slots
	// Named has the writes of one row, and the calls with one key, run one after another.
	Named *slots.Slots
	// ReadTimeout bounds each statement of a read and StatementTimeout of a write: 5 seconds. LockTimeout
	// bounds its waits for locks: 2 seconds. Only tests change them.
	ReadTimeout, StatementTimeout, LockTimeout time.Duration
	// Visibilities are what the readers of lists could last see.
	Visibilities visibilities
}

// New returns a Store on the pool. It fails if a required option is missing.
func New(pool *pgxpool.Pool, options Options) (*Store, error) {
	if options.Tokens == nil || options.Vault == nil {
		return nil, errors.New("a service needs token keys and a vault")
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Lookups = cmp.Or(options.Lookups, pool)
	options.Random = cmp.Or(options.Random, rand.Reader)
	options.Log = cmp.Or(options.Log, slog.Default())
	if options.Unreachable == nil {
		options.Unreachable = func(err error) { options.Log.Warn("the database cannot be reached", "error", err.Error()) }
	}
	if options.Overloaded == nil {
		options.Overloaded = func() {}
	}
	options.MaxRetrying = cmp.Or(options.MaxRetrying, 10_000)
	if options.RetrySchedule == nil {
		options.RetrySchedule = models.DefaultRetrySchedule
	}
	options.ShutOffAfter = cmp.Or(options.ShutOffAfter, models.DefaultShutOffAfter)
	options.ReviewPeriods.Reminder = cmp.Or(options.ReviewPeriods.Reminder, models.DefaultReviewReminderAfter)
	options.ReviewPeriods.Escalation = cmp.Or(options.ReviewPeriods.Escalation, models.DefaultReviewEscalationAfter)
	options.AddressCallsPerMinute = cmp.Or(options.AddressCallsPerMinute, 600)
	options.FormsPerMinute = cmp.Or(options.FormsPerMinute, models.FormsPerMinute)
	options.CommentsPerMinute = cmp.Or(options.CommentsPerMinute, models.CommentsPerMinute)
	connections := stdlib.OpenDBFromPool(pool)
	orm, err := openORM(connections)
	if err != nil {
		return nil, err
	}
	s := &Store{
		Options: options, Pool: pool, ORM: orm, connections: connections,
		Calls: slots.ForCalls(), Receiving: slots.New(math.MaxInt, maxReceiving, slots.MaxWaiting), Parsing: slots.Single(), Exporting: slots.New(math.MaxInt, 1, maxExportsWaiting),
		Requesting: slots.New(maxRequesting, 2, maxRequestsWaiting),
		reads:      slots.ForPool(pool), singles: slots.New(maxSingles, maxSinglesPerTenant, slots.MaxWaiting), lookUps: slots.New(maxLookUps, 1, slots.MaxWaiting), writes: slots.ForPool(pool), Named: slots.Single(),
		ReadTimeout: 5 * time.Second, StatementTimeout: 5 * time.Second, LockTimeout: 2 * time.Second,
	}
	return s, nil
}

// openORM returns GORM on the connections.
func openORM(connections *sql.DB) (*gorm.DB, error) {
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: connections}), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		// GORM's logger prints the values of statements.
		Logger: logger.Discard,
	})
	if err != nil {
		return nil, err
	}
	return orm, orm.Callback().Create().Before("gorm:create").Register("millwright:fold", foldCreated)
}

// CurrentTime returns the time in UTC, in milliseconds.
func (s *Store) CurrentTime() models.Time { return models.TimeOf(s.Now()) }

// NewID returns a new id with the prefix.
func (s *Store) NewID(prefix models.IDPrefix) (string, error) {
	return models.NewID(prefix, s.Now(), s.Random)
}

// NewSecret returns 256 random bits as text.
func (s *Store) NewSecret() (string, error) {
	b := make([]byte, 32)
	if _, err := io.ReadFull(s.Random, b); err != nil {
		return "", fmt.Errorf("read random bytes for a secret: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// Ping checks that the database responds. Errors: unavailable.
func (s *Store) Ping(ctx context.Context) error {
	return s.Translate(s.Pool.Ping(ctx))
}
