package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"

	"millwright/service"
	"millwright/service/servicetest"
)

// read is what the collectors show: name, or name and its label's value.
func read(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "millwright_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

func wantRead(t *testing.T, when string, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if n, shown := got[name]; !shown || n != value {
			t.Errorf("%s %s is %v, want %v", when, name, n, value)
		}
	}
}

func TestPokesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		for n := range pokersAtOnce + maxWaiting + 3 {
			p.Wake(webhook(n))
			if n < pokersAtOnce {
				synctest.Wait()
			}
		}
		p.Wake(webhook(pokersAtOnce), webhook(pokersAtOnce+1)) // they wait already
		p.Wake(workOrder(1), workOrder(2), workOrder(3))
		synctest.Wait()
		wantRead(t, "during an outage", read(t, p), map[string]float64{
			"pokes_total sent": 0, "pokes_total failed": 0, "pokes_total merged": 2, "pokes_total dropped": 3,
			"pokes_waiting webhooks": maxWaiting, "pokes_waiting records": 1,
		})
		close(open)
		p.Stop(t.Context())
		wantRead(t, "afterwards", read(t, p), map[string]float64{
			"pokes_total sent": pokersAtOnce + maxWaiting + 3, "pokes_total failed": 0, "pokes_waiting webhooks": 0, "pokes_waiting records": 0,
		})
	})
}

func TestFailedPokesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewWaker(t.Context(), &fakeTemporal{answer: func(context.Context) error { return errors.New("unavailable") }}, quiet)
		p.Wake(webhook(1))
		p.Stop(t.Context())
		wantRead(t, "after it", read(t, p), map[string]float64{"pokes_total sent": 0, "pokes_total failed": 1})
	})
}

// tracedTemporal notes the trace of each poke.
type tracedTemporal struct {
	client.Client
	mu     sync.Mutex
	traces map[string][]string
}

func (c *tracedTemporal) SignalWithStartWorkflow(
	ctx context.Context, id, _ string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any,
) (client.WorkflowRun, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traces[id] = append(c.traces[id], trace.SpanContextFromContext(ctx).TraceID().String()[:4])
	return nil, nil
}

func TestPokesCarryTheTraceOfTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(trace string) context.Context {
			return service.WithTraceParent(t.Context(), "00-"+trace+"2f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		}
		c := &tracedTemporal{traces: map[string][]string{}}
		p := NewWaker(t.Context(), c, quiet)
		p.WakeIn(in("aaaa"), workOrder(1), webhook(1))
		synctest.Wait()
		// The workflow rests now; the first of those that wait keeps its trace.
		p.Wake(workOrder(1))
		p.WakeIn(in("bbbb"), workOrder(1))
		p.WakeIn(in("cccc"), workOrder(1))
		<-time.After(pokeRest) // on the bubble's clock
		synctest.Wait()
		p.Wake(workOrder(1))
		p.WakeIn(in("dddd"), service.WakeTarget{Kind: service.TargetDelivery, ID: "dlv_1"})
		p.Stop(t.Context())
		if got := strings.Join(c.traces["work-order/wo_1"], " "); got != "aaaa bbbb 0000" {
			t.Errorf("the work order was poked in the traces %s", got)
		}
		if got := strings.Join(c.traces["webhook-address/whk_1"], " "); got != "0000" {
			t.Errorf("the mailbox was poked in the traces %s", got)
		}
		if got := strings.Join(c.traces["delivery/dlv_1"], " "); got != "dddd" {
			t.Errorf("the delivery was poked in the traces %s", got)
		}
		if n := len(p.webhooks.parents) + len(p.records.parents); n != 0 {
			t.Errorf("%d traces are kept for nobody", n)
		}
	})
}

func TestTheBacklogIsShownWhileItIsKnown(t *testing.T) {
	f := servicetest.New(t)
	b := NewBacklog(f.Service, 10*time.Second, quiet)
	if got := read(t, b); len(got) != 0 {
		t.Errorf("before it is known %v is shown", got)
	}
	_, err := f.CreateWorkOrder(t.Context(), f.Actor("erp"), service.Call{}, service.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
	if err != nil {
		t.Fatal(err)
	}
	f.Clock.Advance(30 * time.Second)
	b.ask(t.Context())
	pending := servicetest.Value[int](f, `SELECT count(*) FROM deliveries WHERE status = 'pending'`)
	addresses := servicetest.Value[int](f, `SELECT count(*) FROM webhooks`)
	got := read(t, b)
	wantRead(t, "then", got, map[string]float64{
		"deliveries_pending": float64(pending), "deliveries_oldest_pending_seconds": 30, "unheld_addresses": float64(pending),
		"deliveries_retrying": 0, "unheld_retries": 0, "looks_owed": 1, "looks_oldest_seconds": 30, "unheld_looks": 0,
		"addresses_on": float64(addresses), "addresses_off": 0, "addresses_failing": 0, "mails_oldest_seconds": 30,
		"backlog_counted_timestamp_seconds": float64(f.Clock.Now().UnixMilli()) / 1000,
	})
	if got["mails_waiting"] == 0 || len(got) != len(backlogGauges) {
		t.Errorf("shown is %v", got)
	}

	// The database is gone: the last answer is shown for a while.
	f.Pool.Close()
	b.ask(t.Context())
	f.Clock.Advance(staleAfter*10*time.Second + backlogTimeout)
	if got := read(t, b); len(got) != len(backlogGauges) {
		t.Error("the last answer is not shown for a while")
	}
	f.Clock.Advance(time.Second)
	if got := read(t, b); len(got) != 0 {
		t.Errorf("long afterwards %v is shown", got)
	}
}

func TestTheBacklogIsAskedAtOnceAndAgain(t *testing.T) {
	f := servicetest.New(t, func(o *service.Options) { o.Now = time.Now })
	b := NewBacklog(f.Service, time.Millisecond, quiet)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	done := make(chan struct{})
	go func() {
		b.Run(ctx)
		close(done)
	}()
	last := func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.last.At.Time
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var first time.Time
	for first.IsZero() || !last().After(first) {
		if first.IsZero() {
			first = last()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it was not asked twice within 20 s")
		}
	}
	cancel()
	<-done
}
