package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// poison is a write whose statement Postgres rejects.
func poison(tenant string) *write {
	return &write{tenant: tenant, do: func(ctx context.Context, t *Tx) error {
		t.QueueBulk(insertEntries, []any{"failing"}, []any{"failing"})
		return t.Flush(ctx)
	}}
}

func of(tenant string, w *write) *write {
	w.tenant = tenant
	return w
}

// After a group failed, the writes of each tenant share a transaction again. Only those
// of the tenant with the write at fault run alone, a bounded number at a time.
func TestAFailedGroupRunsAgainByTenant(t *testing.T) {
	for name, test := range map[string]struct {
		tenants, each, transactions int
	}{
		"two tenants":    {2, 31, 1 + 31},
		"many tenants":   {15, 4, 14 + 4},
		"a write each":   {63, 1, 63},
		"a tenant alone": {1, 63, 63},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			var mu sync.Mutex
			alone := map[string]int{}
			writes := []*write{poison("tenant0")}
			for i := range test.tenants * test.each {
				w := inserts(fmt.Sprintf("e%02d", i))
				insert := w.do
				w.tenant = fmt.Sprint("tenant", i%test.tenants)
				w.do = func(ctx context.Context, t *Tx) error {
					if !t.Shared() {
						mu.Lock()
						alone[w.tenant]++
						alone[""]++
						if alone[w.tenant] > maxRunningPerTenant || alone[""] > maxRunning {
							h.Errorf("%d writes of %s and %d in all run alone at a time", alone[w.tenant], w.tenant, alone[""])
						}
						mu.Unlock()
						defer func() {
							mu.Lock()
							defer mu.Unlock()
							alone[w.tenant]--
							alone[""]--
						}()
					}
					return insert(ctx, t)
				}
				writes = append(writes, w)
			}
			for i, err := range h.together(writes...) {
				if i == 0 && !isCode("23505")(err) || i > 0 && err != nil {
					t.Errorf("write %d: %v; want an error of the first alone", i, err)
				}
			}
			if n := value[int](h, `SELECT count(*)::integer FROM entries`); n != test.tenants*test.each {
				t.Errorf("%d entries were written, want %d", n, test.tenants*test.each)
			}
			if _, transactions := h.entries(); transactions != test.transactions {
				t.Errorf("the writes took %d transactions, want %d", transactions, test.transactions)
			}
		})
	}
}

// A call that ends while its tenant's group waits for a slot leaves it; the others run.
func TestACallEndsBeforeItsGroupRunsAgain(t *testing.T) {
	h := newHarness(t)
	leave, left := make(chan struct{}), make(chan error, maxRunningPerTenant)
	for range maxRunningPerTenant { // the tenant's slots
		go func() {
			left <- h.writer.RunAlone(h.Context(), "tenant", func() error { <-leave; return nil })
		}()
	}
	h.await("the slots are taken", func() bool {
		h.writer.alone.mu.Lock()
		defer h.writer.alone.mu.Unlock()
		return h.writer.alone.used == maxRunningPerTenant
	})
	release := h.hold()
	defer release()
	ctx, cancel := context.WithCancel(h.Context())
	start := func(ctx context.Context, w *write) chan error {
		waiting, done := h.writer.Waiting(), make(chan error, 1)
		go func() { done <- h.writer.WriteTogether(ctx, w.tenant, nil, w.do) }()
		h.await("a write waits for its group", func() bool { return h.writer.Waiting() > waiting })
		return done
	}
	bad, ends, stays := start(h.Context(), poison("other")), start(ctx, of("tenant", inserts("ends"))), start(h.Context(), of("tenant", inserts("stays")))
	release()
	if err := <-bad; !isCode("23505")(err) {
		t.Errorf("the write at fault: %v", err)
	}
	cancel()
	if err := <-ends; !errors.Is(err, context.Canceled) {
		t.Errorf("the write of the call that ended: %v, want %v", err, context.Canceled)
	}
	close(leave)
	if err := <-stays; err != nil {
		t.Errorf("the other write: %v", err)
	}
	if names, _ := h.entries(); names != "stays" {
		t.Errorf("the entries are %q, want stays", names)
	}
	for range maxRunningPerTenant {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
}
