package servicetest

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/models"
	"millwright/service"
	"millwright/service/effects"
	"millwright/service/imports"
	"millwright/service/people"
	"millwright/service/store"
	"millwright/webhook"
)

//go:embed fixture.yaml
var fixtureFile []byte

//go:embed service_company.yaml
var companyFile []byte

// Keys and issuer of tests. Never use the keys elsewhere.
const (
	TokenKeys   = "test:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	SealingKeys = "test:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
	NewerKey    = "newer:YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
	Issuer      = "http://millwright.test"
)

// Clock is a clock that only moves when it is advanced.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the time.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Wakes records what was woken.
type Wakes struct {
	mu      sync.Mutex
	work    []store.WakeTarget
	failing []store.FailingDelivery
}

// Wake records the targets.
func (p *Wakes) Wake(work ...store.WakeTarget) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.work = append(p.work, work...)
}

// WakeFailing records the deliveries' workflows.
func (p *Wakes) WakeFailing(deliveries ...store.FailingDelivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range deliveries {
		p.work = append(p.work, store.WakeTarget{Kind: store.TargetDelivery, ID: d.DeliveryID, OrganizationID: d.OrganizationID, Swept: d.StartOnly})
		p.failing = append(p.failing, d)
	}
}

// TakeFailing returns the deliveries whose workflows were to be started since the last call.
func (p *Wakes) TakeFailing() []store.FailingDelivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.failing
	p.failing = nil
	return taken
}

// Organizations returns the organizations of the targets woken since the last call of
// Take, by their ids.
func (p *Wakes) Organizations() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := map[string]string{}
	for _, target := range p.work {
		of[target.ID] = target.OrganizationID
	}
	return of
}

// Take returns the targets woken since the last call, without duplicates, sorted by id,
// and without what Organizations returns.
func (p *Wakes) Take() []store.WakeTarget {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.work
	p.work = nil
	for i, target := range taken {
		taken[i] = store.WakeTarget{Kind: target.Kind, ID: target.ID}
	}
	slices.SortFunc(taken, func(a, b store.WakeTarget) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Compact(taken)
}

// Fixture is a service with the fixture's organizations.
type Fixture struct {
	*service.Service
	Pool  *pgxpool.Pool
	Clock *Clock
	Wakes *Wakes
	// Acme and Polar are the results of importing the organizations.
	Acme, Polar imports.Result
	t           testing.TB
}

// Start is what a fixture's clock shows first: in the middle of a rate window.
var Start = time.Date(2026, time.March, 2, 12, 15, 30, 0, time.UTC)

// New returns a service on a new database, with the fixture imported.
func New(t testing.TB, adjust ...func(*store.Options)) *Fixture {
	t.Helper()
	return fixtureTemplate.clone(t, adjust...)
}

// template is a database with imported organizations, which a process looks for once.
type template struct {
	once    sync.Once
	err     error
	name    string
	results []byte // of imports, in JSON
	// make creates it unless another process already has.
	make func(ctx context.Context, t testing.TB, admin *pgx.Conn, server string) (name string, err error)
}

var fixtureTemplate = template{make: func(ctx context.Context, t testing.TB, admin *pgx.Conn, server string) (string, error) {
	schema := templateName(t)
	if err := ensureTemplate(ctx, admin, server, schema); err != nil {
		return "", err
	}
	name := schema + "_fixture"
	return name, ensure(ctx, admin, name, schema, func(unfinished string) error {
		return fillTemplate(ctx, t, admin, unfinished, withDatabase(server, unfinished), importFixture)
	})
}}

// find makes the template if it does not exist.
func (m *template) find(ctx context.Context, t testing.TB, admin *pgx.Conn, server string) (name string, err error) {
	m.once.Do(func() {
		if m.name, m.err = m.make(ctx, t, admin, server); m.err == nil {
			m.err = admin.QueryRow(ctx, `SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1`, m.name).Scan(&m.results)
		}
	})
	return m.name, m.err
}

// imported returns the results of the imports, which the caller may change.
func (m *template) imported(t testing.TB) (results importResults) {
	t.Helper()
	if err := json.Unmarshal(m.results, &results); err != nil {
		t.Fatalf("the results of importing the fixture: %v", err)
	}
	return results
}

// clone returns a service on a clone of the template.
func (m *template) clone(t testing.TB, adjust ...func(*store.Options)) *Fixture {
	t.Helper()
	f := connect(t.Context(), t, create(t, func(ctx context.Context, admin *pgx.Conn, server string) (string, error) {
		return m.find(ctx, t, admin, server)
	}))
	results := m.imported(t)
	f.Acme, f.Polar = results.Acme, results.Polar
	f.Service = f.NewInstance(adjust...)
	if f.Store.Now().After(Start.Add(24 * time.Hour)) {
		Must(t, f.Store.MakePartitions(t.Context()))
	}
	return f
}

// connect returns a fixture without a service.
func connect(ctx context.Context, t testing.TB, url string) *Fixture {
	t.Helper()
	pool, err := store.Pool{Application: "test"}.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(pool.Close)
	return &Fixture{Pool: pool, Clock: NewClock(Start), Wakes: &Wakes{}, t: t}
}

// importResults are the results of importing the fixture's organizations.
type importResults struct{ Acme, Polar imports.Result }

// fillTemplate imports organizations into a template, whose comment keeps the results.
func fillTemplate(ctx context.Context, t testing.TB, admin *pgx.Conn, name, url string, fill func(context.Context, *Fixture) (importResults, error)) error {
	t.Helper()
	f := connect(ctx, t, url)
	defer f.Pool.Close() // a database with connections cannot be cloned
	f.Service = f.NewInstance()
	made, err := fill(ctx, f)
	if err != nil {
		return err
	}
	// The workflows of the addresses have started, and tests count what their own writes log.
	if _, err = f.Pool.Exec(ctx, `WITH started AS (DELETE FROM dirty_records) DELETE FROM log`); err != nil {
		return err
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	_, err = admin.Exec(ctx, `COMMENT ON DATABASE `+name+` IS '`+strings.ReplaceAll(string(text), "'", "''")+`'`)
	return err
}

func importFixture(ctx context.Context, f *Fixture) (importResults, error) {
	// Each file of a template makes every clone dearer: only the partitions of the fixture's first days.
	if _, err := f.Pool.Exec(ctx, `DO $$ DECLARE part text; BEGIN
		FOR part IN SELECT partition FROM partitions.days LOOP
			EXECUTE format('DROP TABLE partitions.%I', part);
		END LOOP;
	END $$`); err != nil {
		return importResults{}, err
	}
	if err := f.Store.MakePartitions(ctx); err != nil {
		return importResults{}, err
	}
	return f.importOrganizations(ctx)
}

func (f *Fixture) importOrganizations(ctx context.Context) (made importResults, err error) {
	if made.Polar, err = f.Imports.Run(ctx, companyFile); err != nil {
		return made, fmt.Errorf("import the service company: %w", err)
	}
	if made.Acme, err = f.Imports.Run(ctx, fixtureFile); err != nil {
		return made, fmt.Errorf("import the fixture: %w", err)
	}
	return made, nil
}

// NewInstance returns another service on the same database, as in another process.
func (f *Fixture) NewInstance(adjust ...func(*store.Options)) *service.Service {
	f.t.Helper()
	tokens, err := store.NewTokenKeys(TokenKeys)
	Must(f.t, err)
	vault, err := store.NewVault(SealingKeys)
	Must(f.t, err)
	options := store.Options{
		Tokens: tokens, Vault: vault, Waker: f.Wakes, Issuer: Issuer, Now: f.Clock.Now, DatabaseNow: f.Clock.Now,
		Log: slog.New(slog.DiscardHandler), PasswordMemory: 64,
		FormsPerMinute: math.MaxInt, CommentsPerMinute: math.MaxInt, // the clock stands still
		AddressRules: webhook.Rules{
			AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}
	for _, a := range adjust {
		a(&options)
	}
	s, err := service.New(f.Pool, options)
	Must(f.t, err)
	return s
}

// ID returns the id of a key of the fixture, or of the service company's file.
func (f *Fixture) ID(key string) string {
	f.t.Helper()
	if id, ok := f.Acme.IDs[key]; ok {
		return id
	}
	id, ok := f.Polar.IDs[key]
	if !ok {
		f.t.Fatalf("the fixture has no %q", key)
	}
	return id
}

// Actor returns an integration of the fixture as an actor.
func (f *Fixture) Actor(key string) store.Actor {
	f.t.Helper()
	actor := store.Actor{IdentityID: f.ID(key), OrganizationID: f.Acme.OrganizationID, Kind: models.KindIntegration, Name: key}
	if _, ours := f.Acme.Integrations[key]; !ours {
		actor.OrganizationID = f.Polar.OrganizationID
	}
	return actor
}

// Email returns the e-mail address of a person of the fixture.
func (f *Fixture) Email(key string) string {
	return Value[string](f, `SELECT email FROM people WHERE id = $1`, f.ID(key))
}

// Exec runs SQL for which there is no service function. If it writes work orders, their positions follow.
func (f *Fixture) Exec(sql string, args ...any) {
	f.t.Helper()
	f.Plant(sql, args...)
	f.fold(sql)
}

// Plant is Exec for many rows that nothing finds by their strings, and is faster.
func (f *Fixture) Plant(sql string, args ...any) {
	f.t.Helper()
	ctx := context.WithoutCancel(f.t.Context())
	var err error
	if writesWorkOrders.MatchString(sql) {
		err = pgx.BeginFunc(ctx, f.Pool, func(tx pgx.Tx) error { return Write(ctx, tx, sql, args...) })
	} else {
		_, err = f.Pool.Exec(ctx, sql, args...)
	}
	if err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
}

var writesTexts = regexp.MustCompile(`(?:INSERT INTO|UPDATE) (identities|people|inventory_nodes|forms|feedback|work_orders)\b[^;]*?\b(?:name|email|external_id|subject|title)\b`)

// fold makes the columns that follow from strings, as the service does when it writes, of the tables that SQL writes.
func (f *Fixture) fold(sql string) {
	f.t.Helper()
	var tables []string
	for _, match := range writesTexts.FindAllStringSubmatch(sql, -1) {
		tables = append(tables, match[1])
	}
	if len(tables) == 0 {
		return
	}
	if err := store.FoldTables(context.WithoutCancel(f.t.Context()), f.Pool, tables...); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	for _, table := range tables { // the service writes no row twice
		if Value[bool](f, `SELECT count(*) > 1000 FROM (SELECT FROM `+table+` LIMIT 1001) t`) {
			f.vacuum(table)
		}
	}
}

// Value returns the single value of a query's result.
func Value[T any](f *Fixture, sql string, args ...any) T {
	f.t.Helper()
	var value T
	if err := f.Pool.QueryRow(f.t.Context(), sql, args...).Scan(&value); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// SealedWith makes a service seal secrets with the first of the keys and open them with all.
func SealedWith(t testing.TB, keys string) func(*store.Options) {
	t.Helper()
	vault, err := store.NewVault(keys)
	Must(t, err)
	return func(o *store.Options) { o.Vault = vault }
}

// Mails makes a service mail notices and links.
func Mails(o *store.Options) { o.Mails = true }

// ClaimMails waits until the notices of the organization are due, begins an attempt at every e-mail, and
// returns those that have notices.
func (f *Fixture) ClaimMails(organizationID string) []effects.Mail {
	f.t.Helper()
	f.Clock.Advance(store.MailDelay + time.Second)
	var mails []effects.Mail
	for {
		mail, err := f.Effects.ClaimMail(f.t.Context(), organizationID)
		switch {
		case models.CodeOf(err) == models.CodeNotFound:
			return mails
		case err != nil:
			f.t.Fatal(err)
		case len(mail.Notices) > 0:
			mails = append(mails, mail)
		}
	}
}

// MailedLinks returns the links that wait to be mailed, oldest first, as a worker that
// sends them.
func (f *Fixture) MailedLinks() []people.LinkEmail {
	f.t.Helper()
	var links []people.LinkEmail
	for _, organization := range []string{f.Acme.OrganizationID, f.Polar.OrganizationID} {
		for {
			link, err := f.People.ClaimLink(f.t.Context(), organization)
			if models.CodeOf(err) == models.CodeNotFound {
				break
			}
			if err == nil {
				links = append(links, link)
				err = f.People.RecordLink(f.t.Context(), link, people.MailOutcome{Status: people.MailSent})
			}
			Must(f.t, err)
		}
	}
	return links
}
