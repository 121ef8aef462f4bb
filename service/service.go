package service

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"millwright/models"
	"millwright/service/batch"
	"millwright/webhook"
)

// WakeTarget is something a workflow has to look at: a poke names it and says nothing more.
type WakeTarget struct {
	Kind TargetKind
	ID   string
}

// TargetKind says whose workflow is meant.
type TargetKind string

// The kinds of work.
const (
	TargetWebhook   TargetKind = "webhook"    // an address with pending deliveries or notices about it
	TargetDelivery  TargetKind = "delivery"   // a delivery whose first attempt failed
	TargetWorkOrder TargetKind = "work_order" // a work order with notices or dates to watch
	TargetFeedback  TargetKind = "feedback"   // feedback with notices
)

// wakeTargetOf returns the work on a record, by the kind of its id.
func wakeTargetOf(recordID string) WakeTarget {
	switch {
	case models.IsID(recordID, models.PrefixWorkOrder):
		return WakeTarget{TargetWorkOrder, recordID}
	case models.IsID(recordID, models.PrefixFeedback):
		return WakeTarget{TargetFeedback, recordID}
	default:
		return WakeTarget{TargetWebhook, recordID}
	}
}

// Waker wakes workflows after a commit. It neither blocks nor fails: what it
// loses, the sweep finds.
type Waker interface {
	Wake(work ...WakeTarget)
}

// AddressRules says which webhook addresses may be saved and dialled.
type AddressRules struct {
	AllowNetworks []netip.Prefix
	AllowHTTP     bool
	// OwnHosts are this service's own host names, which no webhook may name.
	OwnHosts []string
	// Resolver says where a host name leads when an address is saved; without
	// one its spelling alone is judged, as it always is by an import.
	Resolver webhook.Resolver
}

// Options are what a Service is made of beside its database. Zero values of
// Now, Random and Log mean the real clock, crypto/rand and slog's default.
type Options struct {
	// Tokens signs and verifies access tokens.
	Tokens *TokenKeys
	// Vault seals signing secrets at rest.
	Vault *Vault
	// Waker is told after each commit; nil tells nobody.
	Waker Waker
	// Issuer is the service's public base URL without /v1.
	Issuer string
	// RetrySchedule is the wait after each failed attempt but the last.
	RetrySchedule models.RetrySchedule
	// ShutOffAfter is how long an address may be without success before a
	// final failure turns it off.
	ShutOffAfter time.Duration
	// AddressRules bind webhook addresses when they are saved.
	AddressRules AddressRules
	// AddressCallsPerMinute limits the calls without a token of one client address.
	AddressCallsPerMinute int
	Now                   func() time.Time
	Random                io.Reader
	Log                   *slog.Logger
	// AfterCommit is called after each commit before anyone is poked; fault
	// tests end the process there.
	AfterCommit func()
}

// Service answers for all of it. It is safe for concurrent use and holds no state
// but the calls it has at the moment.
type Service struct {
	Options
	pool *pgxpool.Pool
	orm  *gorm.DB
	// tables and updates are statements made of the models, by model and by columns.
	tables, updates sync.Map
	writer          *batch.Writer
	reader          *batch.Reader
}

// New returns a Service on the pool. It fails when an option that has no
// default is missing.
func New(pool *pgxpool.Pool, options Options) (*Service, error) {
	if options.Tokens == nil || options.Vault == nil {
		return nil, errors.New("a service needs token keys and a vault")
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	if options.RetrySchedule == nil {
		options.RetrySchedule = models.DefaultRetrySchedule
	}
	if options.ShutOffAfter == 0 {
		options.ShutOffAfter = models.DefaultShutOffAfter
	}
	if options.AddressCallsPerMinute == 0 {
		options.AddressCallsPerMinute = 600
	}
	// OpenDBFromPool keeps database/sql's idle limit at 0: an idle connection
	// there would keep one of the pool's from everyone else.
	orm, err := gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		// GORM's logger prints the values of statements.
		Logger: logger.Discard,
	})
	if err != nil {
		return nil, err
	}
	return &Service{
		Options: options, pool: pool, orm: orm, writer: batch.NewWriter(pool, options.Log), reader: batch.NewReader(pool),
	}, nil
}

// now is the clock to the millisecond, in UTC.
func (s *Service) now() models.Time { return models.TimeOf(s.Now()) }

func (s *Service) newID(prefix models.IDPrefix) (string, error) {
	return models.NewID(prefix, s.Now(), s.Random)
}

// Ping reports whether the database answers: nil, or an unavailable error.
func (s *Service) Ping(ctx context.Context) error {
	return s.translate(s.pool.Ping(ctx))
}
