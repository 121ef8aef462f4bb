package activities_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/webhook"
)

// hangingReceivers is a Sender whose receivers with "hanging" in their address hang
// until released; the others respond at once.
type hangingReceivers struct {
	mu      sync.Mutex
	posts   map[string]int // by address
	release chan struct{}
}

func (a *hangingReceivers) Post(ctx context.Context, address string, _ http.Header, _ []byte) (webhook.Response, error) {
	a.mu.Lock()
	a.posts[address]++
	a.mu.Unlock()
	if strings.Contains(address, "hanging") {
		select {
		case <-a.release:
		case <-ctx.Done():
		}
		return webhook.Response{}, &webhook.AttemptError{Kind: webhook.KindTimeout, Detail: "The receiver did not respond in time."}
	}
	return webhook.Response{Status: http.StatusNoContent}, nil
}

// addAddresses gives the ERP's organization an address for each name, of an integration that
// reads what the ERP does, and returns their ids.
func (h *harness) addAddresses(names []string) (ids []string) {
	h.t.Helper()
	h.AddAddresses(len(names))
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT a.node_id, w.integration_id, a.definition_id, a.organization_id
		FROM assignments a, webhooks w WHERE a.identity_id = $1 AND w.url LIKE '%/other/%'`, h.Fixture.ID("erp"))
	for i, name := range names {
		id := fmt.Sprintf("whk_%026d", i)
		sealed, err := h.Fixture.Store.Vault.Seal([]byte("whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="), id, strings.NewReader(strings.Repeat("n", 100)))
		if err != nil {
			h.t.Fatal(err)
		}
		h.Exec(`UPDATE webhooks SET url = $2, secret_sealed = $3 WHERE id = $1`, id, "https://"+name+".example.com/", sealed)
		ids = append(ids, id)
	}
	return ids
}

func TestHangingReceiversDelayOnlyTheirOwnDeliveries(t *testing.T) {
	const healthy, hanging, each = 6, 2, 40
	sender := &hangingReceivers{posts: map[string]int{}, release: make(chan struct{})}
	h := newDispatchHarness(t, nil, time.Millisecond)
	h.dispatcher.Sender = sender
	// The two that hang take every shared slot.
	h.dispatcher.SharedSlots = make(chan struct{}, 2*28)
	var names []string
	for i := range hanging + healthy {
		names = append(names, fmt.Sprintf("%s%d", map[bool]string{true: "hanging", false: "healthy"}[i < hanging], i))
	}
	ids := h.addAddresses(names)
	for i := range each {
		h.createWorkOrder(fmt.Sprint(i))
	}
	h.Exec(`DELETE FROM open_deliveries WHERE webhook_id = $1`, h.Fixture.ID("erp_hook"))

	var dispatches sync.WaitGroup
	dispatch := func(i int) {
		dispatches.Go(func() {
			if _, err := h.dispatchTo(ids[i]); err != nil {
				t.Errorf("the dispatch to %s failed: %v", names[i], err)
			}
		})
	}
	for i := range hanging {
		dispatch(i)
	}
	// The others start once these hang with as many requests as they can make.
	servicetest.Await(t, "both hang with as many requests as they can make", func() bool {
		sender.mu.Lock()
		defer sender.mu.Unlock()
		return sender.posts["https://hanging0.example.com/"]+sender.posts["https://hanging1.example.com/"] == 2*32
	})
	for i := hanging; i < len(ids); i++ {
		dispatch(i)
	}
	servicetest.Await(t, "the healthy ones have everything", func() bool {
		return servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_deliveries WHERE status = 'delivered'`) == healthy*each
	})
	for _, id := range ids[:hanging] {
		if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM all_deliveries WHERE webhook_id = $1 AND status = 'pending'`, id); n != each {
			t.Errorf("%d deliveries to one that hangs are pending, want %d", n, each)
		}
	}
	close(h.stop)
	close(sender.release)
	dispatches.Wait()
}

func TestHangingRecordsDelayNoOtherRecords(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	release := make(chan struct{})
	var slow []string
	for range 3 {
		slow = append(slow, h.createWorkOrder("slow"))
	}
	for _, id := range slow {
		h.addUpdates(id, 3)
	}
	const many = 120 // more than are sent and recorded at once
	for range many {
		h.createWorkOrder("quick")
	}
	r.respond = func(_ context.Context, d received) (webhook.Response, error) {
		if slices.Contains(slow, d.RecordID) {
			<-release
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	done := h.dispatch()
	quick := 0
	for _, d := range r.take(t, many+3) {
		if !slices.Contains(slow, d.RecordID) {
			quick++
		}
	}
	if quick != many {
		t.Errorf("%d quick deliveries arrived while three records hung, want %d", quick, many)
	}
	// They are recorded while the slow ones hang.
	servicetest.Await(t, "the quick ones are recorded", func() bool { return h.statuses() == fmt.Sprintf("delivered %d, pending 12", many) })
	// New deliveries are not delayed either.
	h.createWorkOrder("later")
	if d := r.take(t, 1)[0]; slices.Contains(slow, d.RecordID) {
		t.Error("a slow record's second delivery arrived before the response to its first")
	}
	close(release)
	if result := h.end(done); result.Delivered != many+13 {
		t.Errorf("the dispatch returned %+v, want %d delivered", result, many+13)
	}
}

func TestSlowReceiverGetsRecordsAsTheyAreWhenSent(t *testing.T) {
	r := newReceiver()
	h := newDispatchHarness(t, r, time.Millisecond)
	clock := servicetest.NewClock(time.Now())
	h.dispatcher.Now = clock.Now
	id := h.createWorkOrder("first title")
	h.addUpdates(id, 1)
	r.respond = func(_ context.Context, d received) (webhook.Response, error) {
		if d.EventType == models.EventWorkOrderCreated {
			h.Exec(`UPDATE work_orders SET title = 'second title' WHERE id = $1`, id) //nolint:contextcheck // the fixture has its own
			clock.Advance(2 * time.Second)                                            // the receiver is slow
		}
		return webhook.Response{Status: http.StatusOK}, nil
	}
	h.dispatchAll()
	if len(r.titles) != 2 || r.titles[0] != "first title" || r.titles[1] != "second title" {
		t.Errorf("the receiver got the titles %q", r.titles)
	}
}
