package access_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func tokenOf(t *testing.T, f *servicetest.Fixture, clientID, secret string) string {
	t.Helper()
	token, err := f.Access.IssueToken(t.Context(), clientID, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token.AccessToken
}

func TestPrefetch(t *testing.T) {
	f := servicetest.New(t)
	create := func(node string) string {
		result, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: f.ID(node), Title: "as it was", Assignees: []string{f.ID("ann")},
		})
		if err != nil {
			t.Fatal(err)
		}
		var record struct{ ID string }
		if err := json.Unmarshal(result.Body, &record); err != nil {
			t.Fatal(err)
		}
		return record.ID
	}
	below, elsewhere := create("ahu1"), create("hq")
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	for name, test := range map[string]struct {
		token, prefetch, read string
		people                bool
		want                  models.Code
		// old is true if the record is as it was when the call was admitted.
		old bool
	}{
		"the record that was prefetched":                   {erp, below, below, true, "", true},
		"another record":                                   {erp, elsewhere, below, true, "", false},
		"nothing prefetched":                               {erp, "", below, true, "", false},
		"a record of another kind prefetched":              {erp, f.ID("ahu1"), below, true, "", false},
		"an invalid id prefetched":                         {erp, "wo_", below, true, "", false},
		"the call no longer shows people":                  {erp, below, below, false, "", false},
		"a token without people:read":                      {reader, below, below, false, "", true},
		"a record that the caller may not read":            {reader, elsewhere, elsewhere, false, models.CodeNotFound, false},
		"a prefetched record that the caller may not read": {reader, elsewhere, below, false, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f.Exec(`UPDATE work_orders SET title = 'as it was'`)
			caller, _, err := f.Access.Admit(t.Context(), test.token, test.prefetch)
			if err != nil {
				t.Fatal(err)
			}
			f.Exec(`UPDATE work_orders SET title = 'as it is'`)
			caller.ShowPeople = test.people
			body, err := f.Records.WorkOrder(t.Context(), caller.Actor, test.read)
			if models.CodeOf(err) != test.want {
				t.Fatalf("%v, want %q", err, test.want)
			}
			if err != nil {
				return
			}
			if !bytes.Contains(body, []byte(test.read)) {
				t.Errorf("the record is %s, want %s", body, test.read)
			}
			if old := bytes.Contains(body, []byte("as it was")); old != test.old {
				t.Errorf("read with the admission: %t, want %t", old, test.old)
			}
			if people := bytes.Contains(body, []byte("ann@acme.example.com")); people != test.people {
				t.Errorf("people are shown: %t, want %t", people, test.people)
			}
		})
	}
	for name, token := range map[string]string{"no token": "", "another's token": erp + "x"} {
		caller, _, err := f.Access.Admit(t.Context(), token, below)
		if models.CodeOf(err) != models.CodeInvalidToken || caller.IdentityID != "" {
			t.Errorf("%s: %v, caller %q", name, err, caller.IdentityID)
		}
	}
}

// Concurrent calls are admitted by one statement; each is counted and gets its own
// count.
func TestConcurrentCallsAreCounted(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`UPDATE plans SET calls_per_minute = 1000`)
	erp := []string{tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration"), tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")}
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	stale := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	if err := f.Access.RevokeToken(t.Context(), "cli_reader", "secret-of-the-reader-integration", stale); err != nil {
		t.Fatal(err)
	}
	const n = 100
	places := map[string][]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(t.Context())
	for range n {
		for name, token := range map[string]string{"erp": erp[0], "erp again": erp[1], "reader": reader, "stale": stale} {
			group.Go(func() error {
				caller, rate, err := f.Access.Admit(ctx, token, "")
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
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
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

// A round trip that hangs delays the calls after it briefly, and no call beyond its
// context.
func TestAnAdmissionThatHangs(t *testing.T) {
	f := servicetest.New(t)
	erp := tokenOf(t, f, "cli_erp", "secret-of-the-erp-integration")
	reader := tokenOf(t, f, "cli_reader", "secret-of-the-reader-integration")
	if _, _, err := f.Access.Admit(t.Context(), erp, ""); err != nil {
		t.Fatal(err)
	}
	gate, err := f.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gate.Exec(t.Context(), `UPDATE rate_counters SET calls = calls WHERE subject = $1`, f.ID("erp")); err != nil {
		t.Fatal(err)
	}
	hanging := make(chan error)
	call, giveUp := context.WithTimeout(t.Context(), 3*time.Second)
	defer giveUp()
	go func() {
		_, _, err := f.Access.Admit(call, erp, "")
		hanging <- err
	}()
	servicetest.AwaitLocks(t, f, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // shorter than the timeout of a round trip
	defer cancel()
	if _, _, err := f.Access.Admit(ctx, reader, ""); err != nil {
		t.Errorf("a call after one that hangs: %v", err)
	}
	if err := <-hanging; models.CodeOf(err) != models.CodeUnavailable {
		t.Errorf("a call whose context has ended: %v", err)
	}
	if err := gate.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
