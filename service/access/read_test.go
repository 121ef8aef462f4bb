package access_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func tokenOf(t *testing.T, f *servicetest.Fixture, clientID, secret string) string {
	t.Helper()
	token, err := f.Access.IssueToken(t.Context(), clientID, secret, nil)
	servicetest.Must(t, err)
	return token.AccessToken
}

// A record is read in the round trip that admits its call, as the token's integration may read it.
func TestARecordIsReadWithItsCall(t *testing.T) {
	f := servicetest.New(t)
	create := func(node string) string {
		result, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: f.ID(node), Title: "as it was", Assignees: []string{f.ID("ann")},
		})
		servicetest.Must(t, err)
		return result.RecordID
	}
	below, elsewhere := create("ahu1"), create("hq")
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	for name, test := range map[string]struct {
		token, record string
		people        bool
		want          models.Code
	}{
		"a token with people:read":              {erp, below, true, ""},
		"a token without people:read":           {reader, below, false, ""},
		"a record that the caller may not read": {reader, elsewhere, false, models.CodeNotFound},
		"a record of another kind":              {erp, f.ID("ahu1"), false, models.CodeNotFound},
		"an invalid id":                         {erp, "wo_", false, models.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f.Exec(`UPDATE work_orders SET title = 'as it was'`)
			read := records.WorkOrderReader.Of(test.record)
			caller, _, err := f.Access.Admit(t.Context(), test.token, read)
			servicetest.Must(t, err)
			caller.End()
			f.Exec(`UPDATE work_orders SET title = 'as it is'`)
			body, err := read.Encoded()
			if models.CodeOf(err) != test.want {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if err != nil {
				return
			}
			if !bytes.Contains(body, []byte(test.record)) || !bytes.Contains(body, []byte("as it was")) {
				t.Errorf("the record is %s, want %s as it was when the call was admitted", body, test.record)
			}
			servicetest.Expect(t, "people are shown", bytes.Contains(body, []byte("ann@acme.example.com")), test.people)
		})
	}
	f.Exec(`UPDATE integrations SET enabled = false WHERE id = $1`, f.ID("erp"))
	for name, token := range map[string]string{"no token": "", "another's token": reader + "x", "a token that has ended": erp} {
		read := records.WorkOrderReader.Of(below)
		caller, _, err := f.Access.Admit(t.Context(), token, read)
		if models.CodeOf(err) != models.CodeInvalidToken || caller.IdentityID != "" {
			t.Errorf("%s: %v, caller %q", name, err, caller.IdentityID)
		}
		if _, err := read.Encoded(); models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("%s: the record is read: %v", name, err)
		}
	}
}

// Concurrent calls are counted; each gets its own count.
func TestConcurrentCallsAreCounted(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`UPDATE plans SET calls_per_minute = 1000`)
	erp := []string{tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration"), tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")}
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	stale := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	servicetest.Must(t, f.Access.RevokeToken(t.Context(), "cli_reader", "secret-of-the-reader-integration", stale))
	const n = 100
	places := map[string][]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(t.Context())
	for range n {
		for name, token := range map[string]string{"erp": erp[0], "erp again": erp[1], "reader": reader, "stale": stale} {
			group.Go(func() error {
				caller, rate, err := f.Access.Admit(ctx, token, nil)
				defer caller.End()
				if name == "stale" && models.CodeOf(err) == models.CodeInvalidToken {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				places[name] = append(places[name], rate.Calls)
				return err
			})
		}
	}
	servicetest.Must(t, group.Wait())
	both := slices.Sorted(slices.Values(append(places["erp"], places["erp again"]...)))
	alone := slices.Sorted(slices.Values(places["reader"]))
	if len(both) != 2*n || len(alone) != n || len(places["stale"]) != 0 {
		t.Fatalf("%d, %d and %d calls were admitted", len(both), len(alone), len(places["stale"]))
	}
	for _, calls := range [][]int{both, alone} {
		for i, place := range calls {
			if place != i+1 {
				t.Fatalf("the counts are %v, want 1 to %d", calls, len(calls))
			}
		}
	}
}

// A round trip that hangs delays no other organization's calls, and none beyond its context.
func TestAnAdmissionThatHangs(t *testing.T) {
	f := servicetest.New(t)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	other := tokenOf(t, f, "cli_dispatch", "secret-of-the-dispatch-integration")
	release := locked(t, f, `LOCK TABLE feedback IN ACCESS EXCLUSIVE MODE`)
	const n, running = 20, 2
	hanging := make(chan error, n)
	call, giveUp := context.WithCancel(t.Context())
	for range n {
		go func() {
			_, _, err := f.Access.Admit(call, erp, records.FeedbackReader.Of(models.FirstID(models.PrefixFeedback, f.Clock.Now())))
			hanging <- err
		}()
	}
	servicetest.AwaitLocks(t, f, running)
	caller, _, err := f.Access.Admit(t.Context(), other, nil)
	if err != nil {
		t.Errorf("another organization's call: %v", err)
	}
	caller.End()
	servicetest.Expect(t, "calls that hold a connection", servicetest.LockWaits(f), running)
	giveUp()
	for range n {
		if err := <-hanging; err == nil {
			t.Error("a call whose context has ended was admitted")
		}
	}
	release()
}
