package access_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// locked runs the statement in a transaction that stays open until release.
func locked(t *testing.T, f *servicetest.Fixture, sql string, args ...any) (release func()) {
	t.Helper()
	other := servicetest.Begin(t, f)
	servicetest.ExecIn(t, other, sql, args...)
	return func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }
}

// crowd is calls that are made at once.
type crowd struct {
	all sync.WaitGroup
	mu  sync.Mutex
	// rejected counts the calls rejected because too many wait.
	rejected int
	end      context.CancelFunc
}

// run makes the calls, which end with the crowd.
func (c *crowd) run(t *testing.T, n int, call func(context.Context, int) error) {
	var ctx context.Context
	ctx, c.end = context.WithCancel(t.Context())
	for i := range n {
		c.all.Go(func() {
			err := call(ctx, i)
			switch {
			case err == nil || ctx.Err() != nil:
			case models.CodeOf(err) == models.CodeUnavailable:
				c.mu.Lock()
				defer c.mu.Unlock()
				c.rejected++
			default:
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
}

func (c *crowd) rejections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rejected
}

// isBounded makes more calls of an organization, which wait for what is locked until release, than may run and wait:
// two hold a connection and 128 wait, the others get 503 at once. In that state it runs what others do.
func isBounded(t *testing.T, f *servicetest.Harness, release func(), call func(context.Context, int) error, others func()) {
	t.Helper()
	const running, waiting, more = 2, 128, 10
	var noisy crowd
	noisy.run(t, running+waiting+more, call)
	servicetest.Await(t, "two calls wait for the lock and some are rejected", func() bool { return servicetest.LockWaits(f.Fixture) == running && noisy.rejections() == more })
	others()
	servicetest.Expect(t, "calls that hold a connection", servicetest.LockWaits(f.Fixture), running)
	noisy.end()
	release()
	noisy.all.Wait()
	servicetest.Expect(t, "calls that were rejected", noisy.rejections(), more)
}

// Regardless of the number of records that an organization writes at once, it holds two connections, and one with
// too many writes in the queue gets 503 at once; another organization's write does not wait.
func TestWritesOfAnOrganizationAreBounded(t *testing.T) {
	f := servicetest.NewHarness(t)
	noisyActor, quietActor := f.As("erp"), f.As("erp")
	quietActor.OrganizationID = f.Polar.OrganizationID
	release := locked(t, f.Fixture, `LOCK TABLE feedback IN EXCLUSIVE MODE`) // they are read
	create := func(ctx context.Context, actor store.Actor) error {
		return servicetest.ErrorOf(f.Records.CreateFeedback(ctx, actor, store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"}))
	}
	isBounded(t, f, release, func(ctx context.Context, _ int) error { return create(ctx, noisyActor) }, func() {
		// It reaches the rules: the organization does not have this node.
		if err := create(t.Context(), quietActor); models.CodeOf(err) != models.CodeValidationFailed {
			t.Errorf("another organization's write: %v, want %s", err, models.CodeValidationFailed)
		}
	})
}

// Regardless of the number of settings that an organization changes at once and that wait for a lock, it holds
// two connections; another organization's change and list do not wait.
func TestRareWritesOfAnOrganizationAreBounded(t *testing.T) {
	f := servicetest.NewHarness(t)
	ann, erp := f.As("ann"), f.As("erp")
	release := locked(t, f.Fixture, `SELECT FROM integrations WHERE id = $1 FOR UPDATE`, f.ID("erp"))
	isBounded(t, f, release, func(ctx context.Context, n int) error {
		return servicetest.ErrorOf(f.Integrations.RenameIntegration(ctx, ann, f.ID("erp"), fmt.Sprint("Name ", n)))
	}, func() {
		ola := f.As("ola")
		ola.OrganizationID = f.Polar.OrganizationID
		if _, err := f.Integrations.RenameIntegration(t.Context(), ola, f.ID("erp"), "Stolen"); models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("another organization's change: %v, want %s", err, models.CodeNotFound)
		}
		if _, err := f.Records.WorkOrders(t.Context(), erp, records.WorkOrderFilter{}, lists.ListRequest{Limit: 1}); err != nil {
			t.Errorf("a list: %v", err)
		}
	})
}

// Regardless of the number of slow lists that an organization reads at once, it holds two connections;
// another organization's list does not wait.
func TestListsOfAnOrganizationAreBounded(t *testing.T) {
	f := servicetest.NewHarness(t)
	noisyActor, quietActor := f.As("erp"), f.As("erp")
	quietActor.OrganizationID = f.Polar.OrganizationID
	release := locked(t, f.Fixture, `LOCK TABLE feedback IN ACCESS EXCLUSIVE MODE`)
	isBounded(t, f, release, func(ctx context.Context, _ int) error {
		return servicetest.ErrorOf(f.Records.FeedbackList(ctx, noisyActor, records.FeedbackFilter{}, lists.ListRequest{Limit: 1}))
	}, func() {
		if _, err := f.Records.WorkOrders(t.Context(), quietActor, records.WorkOrderFilter{}, lists.ListRequest{Limit: 1}); err != nil {
			t.Errorf("another organization's list: %v", err)
		}
	})
}

// A person's pages hold two connections of the organization, regardless of what they read and of
// their number: another organization's pages, sessions and token requests do not wait.
func TestReadsOfPagesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		// table is locked: the read waits for it, the others do not need it.
		table string
		read  func(context.Context, *servicetest.Harness, store.Actor) error
	}{
		"a search of people": {"openid_accounts", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.People.ListForPerson(ctx, actor, "", people.PersonFilter{NameFilter: lists.NameFilter{Search: "a"}}))
		}},
		"a person": {"openid_accounts", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.People.PersonForPerson(ctx, actor, f.ID("bob")))
		}},
		"linked accounts": {"openid_accounts", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.People.LinkedAccounts(ctx, actor))
		}},
		"the requirement of OpenID Connect": {"openid_accounts", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.People.OpenIDRequirementForPerson(ctx, actor, "https://id.example"))
		}},
		"permissions on any node": {"permission_definitions", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.Inventory.HeldGrants(ctx, actor, models.GrantFeedbackCreate))
		}},
		"an inbox": {"feedback", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return servicetest.ErrorOf(f.People.Notices(ctx, actor, people.NoticeFilter{Read: true}))
		}},
		"notices about a record": {"feedback", func(ctx context.Context, f *servicetest.Harness, actor store.Actor) error {
			return f.People.ReadNoticesAbout(ctx, actor, "iss_00000000000000000000000000")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.NewHarness(t)
			noisyActor, quietActor := f.As("ann"), f.As("ola")
			token := servicetest.Session(f.Fixture, "ola")
			release := locked(t, f.Fixture, `LOCK TABLE `+c.table+` IN ACCESS EXCLUSIVE MODE`)
			isBounded(t, f, release, func(ctx context.Context, _ int) error { return c.read(ctx, f, noisyActor) }, func() {
				if _, err := f.People.Session(t.Context(), token); err != nil {
					t.Errorf("another organization's session: %v", err)
				}
				if _, err := f.People.OrganizationDefinitions(t.Context(), quietActor); err != nil {
					t.Errorf("another organization's page: %v", err)
				}
				if _, err := f.Access.IssueToken(t.Context(), "cli_erp", "secret-of-the-erp-integration", nil); err != nil {
					t.Errorf("a token request: %v", err)
				}
			})
		})
	}
}

// Calls of a client that are not admitted yet hold one connection, regardless of their number, and other
// callers' calls go on.
func TestCallersWithoutATokenAreBounded(t *testing.T) {
	f := servicetest.NewHarness(t)
	token := tokenOf(t, f.Fixture, "cli_reader", "secret-of-the-reader-integration")
	release := locked(t, f.Fixture, `LOCK TABLE revoked_tokens IN EXCLUSIVE MODE`) // it is read
	var noisy crowd
	noisy.run(t, 100, func(ctx context.Context, _ int) error {
		return f.Access.RevokeToken(ctx, "cli_reader", "secret-of-the-reader-integration", token)
	})
	servicetest.Await(t, "a revocation waits for the lock", func() bool { return servicetest.LockWaits(f.Fixture) > 0 })
	if _, err := f.Access.IssueToken(t.Context(), "cli_erp", "secret-of-the-erp-integration", nil); err != nil {
		t.Errorf("a token request: %v", err)
	}
	servicetest.Expect(t, "revocations that hold a connection", servicetest.LockWaits(f.Fixture), 1)
	release()
	noisy.all.Wait()
	servicetest.Expect(t, "revocations that were rejected", noisy.rejections(), 0)
}
