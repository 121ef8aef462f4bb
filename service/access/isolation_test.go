package access_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/access"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// Calls over the limit are rejected until the window ends.
func TestCallsOverTheLimitAreRejected(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`UPDATE plans SET calls_per_minute = 2`)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	for i := range 6 {
		_, rate, err := f.Access.Admit(t.Context(), erp, nil)
		if want := i >= 2; (models.CodeOf(err) == models.CodeRateLimited) != want || want != (err != nil) {
			t.Errorf("call %d: %v, want over the limit %t", i, err, want)
		}
		if i >= 2 && (rate.Limit != 2 || rate.Remaining() != 0 || !rate.Reset.Equal(servicetest.Start.Truncate(time.Minute).Add(time.Minute))) {
			t.Errorf("call %d has the rate %+v", i, rate)
		}
	}
	f.Clock.Advance(time.Minute)
	if _, _, err := f.Access.Admit(t.Context(), erp, nil); err != nil {
		t.Errorf("a call in the next window: %v", err)
	}
}

// Servers share what they count once a second, whatever their clocks say, and a limit that changes acts at the next
// call on every server.
func TestServersShareCounts(t *testing.T) {
	f := servicetest.New(t)
	late := func() time.Time { return f.Clock.Now().Add(-40 * time.Second) } // another minute than the database's
	servers := []*service.Service{f.Service, f.NewInstance(func(o *store.Options) { o.Now = late })}
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	call := func(server int, want models.Code, limit, remaining int) {
		t.Helper()
		caller, rate, err := servers[server].Access.Admit(t.Context(), erp, nil)
		caller.End()
		if models.CodeOf(err) != want || rate.Limit != limit || rate.Remaining() != remaining {
			t.Errorf("a call of server %d: %v, limit %d, %d remain; want %q, %d, %d", server, err, rate.Limit, rate.Remaining(), want, limit, remaining)
		}
		if reset := rate.Reset.Sub(servers[server].Store.Now()); reset != 60*time.Second-f.Clock.Now().Sub(f.Clock.Now().Truncate(time.Minute)) {
			t.Errorf("a call of server %d: its window ends in %s", server, reset)
		}
	}
	exchange := func(servers ...*service.Service) {
		t.Helper()
		for _, s := range servers {
			servicetest.Must(t, s.Access.ExchangeCounts(t.Context()))
		}
	}
	allow := func(calls int) { f.Exec(`UPDATE plans SET calls_per_minute = $1`, calls) }
	// It learns the database's time with its first exchange.
	first, _, err := servers[1].Access.Admit(t.Context(), erp, nil)
	servicetest.Must(t, err)
	first.End()
	exchange(servers[1])
	allow(3)
	call(0, "", 3, 2)
	call(1, "", 3, 2)
	exchange(servers[0], servers[1], servers[0], servers[0]) // again, as after a lost response
	call(0, "", 3, 0)
	call(0, models.CodeRateLimited, 3, 0)
	exchange(servers...)
	call(1, models.CodeRateLimited, 3, 0)
	allow(5) // rejected calls are not counted
	call(1, "", 5, 1)
	exchange(servers[1], servers[0])
	call(0, "", 5, 0)
	call(0, models.CodeRateLimited, 5, 0)
	allow(2)
	call(0, models.CodeRateLimited, 2, 0)
	call(1, models.CodeRateLimited, 2, 0)
	allow(1000)
	exchange(servers...)
	call(1, "", 1000, 1000-6)
	exchange(servers...)
	f.Clock.Advance(time.Minute)
	exchange(servers...)
	call(0, "", 1000, 999)
	call(1, "", 1000, 999)
}

// Calls without a token, of any number of networks, take no integration its exact count.
func TestStrangersDisplaceNoCounts(t *testing.T) {
	f := servicetest.New(t)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	for n := range 11_000 {
		servicetest.Must(t, servicetest.ErrorOf(f.Access.CountAddress(fmt.Sprint("network ", n))))
	}
	caller, _, err := f.Access.Admit(t.Context(), erp, nil)
	servicetest.Must(t, err)
	caller.End()
	servicetest.Must(t, f.Access.ExchangeCounts(t.Context()))
	servicetest.Expect(t, "stored counts of the integration", servicetest.Value[int](f, `SELECT count(*) FROM call_counts WHERE subject = $1`, f.ID("erp")), 1)
}

// Failed token requests are counted for their network and client id, apart from other clients, other networks and calls
// without a token.
func TestFailedTokenRequestsHaveTheirOwnCounts(t *testing.T) {
	f := servicetest.New(t)
	failed := func(client, network string) models.Code {
		return models.CodeOf(servicetest.ErrorOf(f.Access.CountTokenFailure(client, network)))
	}
	for range 30 {
		servicetest.Expect(t, "a failure", failed("cli_erp", "192.0.2.1"), "")
	}
	servicetest.Expect(t, "one over the limit", failed("cli_erp", "192.0.2.1"), models.CodeRateLimited)
	servicetest.Expect(t, "another client's", failed("cli_reader", "192.0.2.1"), "")
	servicetest.Expect(t, "another network's", failed("cli_erp", "192.0.2.2"), "")
	rate, err := f.Access.CountAddress("192.0.2.1")
	servicetest.Must(t, err)
	servicetest.Expect(t, "calls without a token", rate.Calls, 1)
}

// A token that is no longer valid is told, also of an integration that is remembered as over its
// limit, on every server.
func TestAnEndedTokenIsToldOverTheLimit(t *testing.T) {
	for name, sql := range map[string]string{
		"revoked": "", "expired": "",
		"turned off":                 `UPDATE integrations SET enabled = false`,
		"its plan without the API":   `UPDATE plans SET api = false`,
		"its organization suspended": `UPDATE organizations SET suspended = true`,
		"its secret renewed":         `UPDATE integrations SET secret_hash = sha256('new')`,
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			f.Exec(`UPDATE plans SET calls_per_minute = 1`)
			servers := []*service.Service{f.Service, f.NewInstance()}
			erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
			for i, want := range []models.Code{"", models.CodeRateLimited, models.CodeRateLimited} {
				for _, s := range servers {
					caller, _, err := s.Access.Admit(t.Context(), erp, nil)
					caller.End()
					if code := models.CodeOf(err); code != want && i > 0 {
						t.Fatalf("call %d: %v, want %q", i+1, err, want)
					}
				}
			}
			switch name {
			case "revoked":
				servicetest.Must(t, f.Access.RevokeToken(t.Context(), "cli_erp", "secret-of-the-erp-integration", erp))
			case "expired":
				f.Clock.Advance(time.Hour)
			default:
				f.Exec(sql)
			}
			for _, s := range servers {
				if _, _, err := s.Access.Admit(t.Context(), erp, nil); models.CodeOf(err) != models.CodeInvalidToken {
					t.Errorf("after its end: %v, want %s", err, models.CodeInvalidToken)
				}
			}
		})
	}
}

// Calls are admitted, sessions found and tokens issued while other work holds every connection of its pool.
func TestConnectionsAreReserved(t *testing.T) {
	f := servicetest.New(t)
	token, session := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration"), servicetest.Session(f, "pia")
	pools, err := store.Pool{Application: "a test"}.Open(t.Context(), f.Pool.Config().ConnString())
	servicetest.Must(t, err)
	t.Cleanup(pools.Close)
	total := int32(0)
	for _, pool := range pools.All() {
		total += pool.Config().MaxConns
	}
	if total != store.DefaultMaxConnections || len(pools.All()) != 2 {
		t.Errorf("%d pools hold %d connections, want 2 with %d", len(pools.All()), total, store.DefaultMaxConnections)
	}
	s := f.NewInstance(func(o *store.Options) { o.Lookups = pools.Lookups })
	for range f.Pool.Config().MaxConns { // the pool of everything else
		conn, err := f.Pool.Acquire(t.Context())
		servicetest.Must(t, err)
		t.Cleanup(conn.Release)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, _, err := s.Access.Admit(ctx, token, nil); err != nil {
		t.Errorf("a call: %v", err)
	}
	f.Clock.Advance(time.Hour) // so that the session's last request is stored, too
	if _, err := s.People.Session(ctx, session); err != nil {
		t.Errorf("a session: %v", err)
	}
	if _, err := s.Access.IssueToken(ctx, "cli_erp", "secret-of-the-erp-integration", nil); err != nil {
		t.Errorf("a token request: %v", err)
	}
	if err := s.Access.ExchangeCounts(ctx); err != nil {
		t.Errorf("the exchange of counts: %v", err)
	}
}

// Reads leave connections to writes, regardless of the number of organizations that read.
func TestReadsLeaveConnectionsToWrites(t *testing.T) {
	f := servicetest.NewHarness(t)
	erp, reader := f.Actor("erp"), f.As("ann")
	release := locked(t, f.Fixture, `LOCK TABLE openid_accounts IN ACCESS EXCLUSIVE MODE`)
	const running, organizations = 8, 10
	var reads crowd
	reads.run(t, 4*organizations, func(ctx context.Context, n int) error {
		actor := reader
		actor.OrganizationID = fmt.Sprint("organization ", n%organizations)
		return servicetest.ErrorOf(f.People.LinkedAccounts(ctx, actor))
	})
	servicetest.Await(t, "eight reads wait for the lock", func() bool { return servicetest.LockWaits(f.Fixture) == running })
	if _, err := f.Records.CreateFeedback(t.Context(), erp, store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"}); err != nil {
		t.Errorf("a write: %v", err)
	}
	servicetest.Expect(t, "reads that hold a connection", servicetest.LockWaits(f.Fixture), running)
	reads.end()
	release()
	reads.all.Wait()
}

func TestFewConnectionsAreNotDivided(t *testing.T) {
	pools, err := store.Pool{MaxConnections: 6}.Open(t.Context(), servicetest.Database(t))
	servicetest.Must(t, err)
	t.Cleanup(pools.Close)
	if all := pools.All(); len(all) != 1 || all[0].Config().MaxConns != 6 || pools.Lookups != pools.Others {
		t.Errorf("6 connections are %d pools, want one", len(all))
	}
}

// Few calls of an organization are in progress, whichever of its integrations makes them: the
// others wait for what these take.
func TestFewCallsOfAnOrganization(t *testing.T) {
	f := servicetest.New(t)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	other := tokenOf(t, f, "cli_dispatch", "secret-of-the-dispatch-integration")
	admit := func(token string) *access.Caller {
		t.Helper()
		caller, _, err := f.Access.Admit(t.Context(), token, nil)
		servicetest.Must(t, err)
		return &caller
	}
	const few = 24
	inProgress := make([]*access.Caller, 0, few)
	for range few / 2 {
		inProgress = append(inProgress, admit(erp), admit(reader))
	}
	next := make(chan error, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		_, _, err := f.Access.Admit(ctx, reader, nil)
		next <- err
	}()
	servicetest.Await(t, "the next call waits", func() bool { return storetest.CallsWaiting(f.Store) == 1 })
	giveUp()
	if err := <-next; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that gave up: %v, want %v", err, context.Canceled)
	}
	admit(other).End()
	inProgress[0].End()
	admit(reader).End()
}
