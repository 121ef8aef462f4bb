package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/service/store"
	"millwright/workflows"
)

// fakeTemporal is a client that records wakes. A call of any other method panics.
type fakeTemporal struct {
	client.Client
	// respond returns a wake's result; nil succeeds at once.
	respond func(ctx context.Context) error

	mu    sync.Mutex
	calls []wakeCall
}

// wakeCall is a call of SignalWithStartWorkflow, in the trace.
type wakeCall struct {
	id, signal, trace string
	argument          any
	options           client.StartWorkflowOptions
	workflow          any
	arguments         []any
}

func (c *fakeTemporal) SignalWithStartWorkflow(
	ctx context.Context, id, signal string, argument any, options client.StartWorkflowOptions, workflow any, arguments ...any,
) (client.WorkflowRun, error) {
	c.mu.Lock()
	c.calls = append(c.calls, wakeCall{id, signal, trace.SpanContextFromContext(ctx).TraceID().String()[:4], argument, options, workflow, arguments})
	c.mu.Unlock()
	if c.respond != nil {
		return nil, c.respond(ctx)
	}
	return nil, nil
}

func (c *fakeTemporal) ExecuteWorkflow(_ context.Context, options client.StartWorkflowOptions, workflow any, arguments ...any) (client.WorkflowRun, error) {
	c.mu.Lock()
	c.calls = append(c.calls, wakeCall{id: options.ID, options: options, workflow: workflow, arguments: arguments})
	c.mu.Unlock()
	return nil, nil
}

// ids returns the woken workflows, in order.
func (c *fakeTemporal) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, p := range c.calls {
		ids = append(ids, p.id)
	}
	return ids
}

func (c *fakeTemporal) count(id string) int {
	n := 0
	for _, taken := range c.ids() {
		if taken == id {
			n++
		}
	}
	return n
}

// gate blocks wakes until it is opened.
type gate chan struct{}

func (g gate) wait(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func webhook(n int) store.WakeTarget {
	return store.WakeTarget{Kind: store.TargetWebhook, ID: fmt.Sprintf("whk_%d", n)}
}

func workOrder(n int) store.WakeTarget {
	return store.WakeTarget{Kind: store.TargetWorkOrder, ID: fmt.Sprintf("wo_%d", n)}
}

// withWaker tests a waker on a simulated clock.
func withWaker(t *testing.T, test func(t *testing.T, c *fakeTemporal, w *Waker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{}
		test(t, c, NewWaker(t.Context(), c, quiet))
	})
}

func TestWakeStartsOrSignalsTheWorkflow(t *testing.T) {
	mailed := "mail/idn_1: Mail[idn_1] on millwright-mail, Mail to people of idn_1"
	for _, tt := range []struct {
		target store.WakeTarget
		want   string // the workflow's id, start, queue and summary
		// key is a search attribute with the id of the target.
		key temporal.SearchAttributeKeyKeyword
	}{
		{store.WakeTarget{Kind: store.TargetWebhook, ID: "whk_1", OrganizationID: "idn_1", Swept: true},
			"webhook-address/whk_1: WebhookAddress[whk_1 {}] on millwright-webhooks, Deliveries to whk_1", workflows.AttributeWebhookAddress},
		{store.WakeTarget{Kind: store.TargetWorkOrder, ID: "wo_1", OrganizationID: "idn_1"},
			"work-order/wo_1: WorkOrder[wo_1] on millwright-records, Work order wo_1", workflows.AttributeRecordID},
		{store.WakeTarget{Kind: store.TargetFeedback, ID: "iss_1", OrganizationID: "idn_1"},
			"feedback/iss_1: Feedback[iss_1] on millwright-records, Feedback iss_1", workflows.AttributeRecordID},
		{store.MailTarget(store.TargetMail, "idn_1"), mailed, workflows.AttributeOrganization},
		{store.MailTarget(store.TargetLinks, "idn_1"), mailed, workflows.AttributeOrganization},
	} {
		withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
			w.Wake(tt.target)
			w.Stop(t.Context())
			if len(c.calls) != 1 {
				t.Fatalf("%d wakes, want 1", len(c.calls))
			}
			call, options := c.calls[0], c.calls[0].options
			got := fmt.Sprint(options.ID, ": ", call.workflow, call.arguments, " on ", options.TaskQueue, ", ", options.StaticSummary)
			if got != tt.want || call.id != options.ID {
				t.Errorf("%s is signaled, and started %s, want %s", call.id, got, tt.want)
			}
			if call.signal != "wake" || call.argument != nil {
				t.Errorf("the signal is %q with %v, want the wake signal without data", call.signal, call.argument)
			}
			// Not even a swept address has a low priority: its workflow lives too long.
			if options.Priority != (temporal.Priority{FairnessKey: "idn_1"}) {
				t.Errorf("the priority is %+v", options.Priority)
			}
			organization, _ := options.TypedSearchAttributes.GetKeyword(workflows.AttributeOrganization)
			id, _ := options.TypedSearchAttributes.GetKeyword(tt.key)
			if organization != "idn_1" || id != tt.target.ID {
				t.Errorf("the search attributes are the organization %q and %q", organization, id)
			}
		})
	}
}

func TestWakesOfOneWorkflowAreMerged(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		open := make(gate)
		c.respond = open.wait
		for n := range senders {
			w.Wake(webhook(-n))
		}
		synctest.Wait()
		w.Wake(webhook(0)) // it is being sent: the workflow may have loaded already
		for range 1000 {
			w.Wake(webhook(1), webhook(2), webhook(1))
		}
		w.Wake(store.WakeTarget{Kind: store.TargetDelivery, ID: "whk_1"}) // a different workflow with the same id
		close(open)
		w.Stop(t.Context())
		for id, want := range map[string]int{
			"webhook-address/whk_0": 2, "webhook-address/whk_1": 1, "webhook-address/whk_2": 1, "delivery/whk_1": 1,
		} {
			if n := c.count(id); n != want {
				t.Errorf("%s was woken %d times, want %d", id, n, want)
			}
		}
	})
}

// A burst of records is paced, so that it starves nothing else on the machine; addresses are not, the organization's own included.
func TestBurstOfNewWorkOrdersIsPaced(t *testing.T) {
	for name, test := range map[string]struct {
		wake func(n int) store.WakeTarget
		many int
		want int // sent in the first second
	}{
		"records":       {workOrder, 500, 1 + pacedStarts},
		"a few records": {workOrder, burst, burst},
		"addresses":     {webhook, 500, 500},
	} {
		t.Run(name, func(t *testing.T) {
			withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
				wakes := make([]store.WakeTarget, test.many)
				for n := range wakes {
					wakes[n] = test.wake(n)
				}
				w.Wake(wakes...)
				<-time.After(time.Second)
				if n := len(c.ids()); n < test.want*9/10 || n > test.want {
					t.Errorf("%d wakes were sent in a second, want %d", n, test.want)
				}
				w.Wake(webhook(1000))
				synctest.Wait()
				if c.count(workflows.WebhookAddressID("whk_1000")) != 1 {
					t.Error("an address waits for them")
				}
				w.Stop(t.Context())
				if n := len(c.ids()); n != test.many+1 {
					t.Errorf("%d wakes were sent in total, want %d", n, test.many+1)
				}
			})
		})
	}
}

// Wakes that hang hold up none that is paced: another sender goes on.
func TestPacedWakesGoOnWhileOneHangs(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		var sent atomic.Int32
		c.respond = func(ctx context.Context) error {
			if sent.Add(1) == 1 {
				<-ctx.Done()
			}
			return nil
		}
		for n := range 500 {
			w.Wake(workOrder(n))
		}
		<-time.After(2 * time.Second)
		if n := len(c.ids()); n < pacedStarts*9/5 {
			t.Errorf("%d wakes were sent in two seconds, want %d", n, 2*pacedStarts)
		}
		w.Stop(t.Context())
	})
}

func TestNewWorkOrderDoesNotWaitForThoseOfOtherOrganizations(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		c.respond = func(context.Context) error {
			<-time.After(10 * time.Millisecond) // on the bubble's clock
			return nil
		}
		wake := func(organization string, n int, swept bool) {
			target := workOrder(n)
			target.OrganizationID, target.Swept = organization, swept
			w.Wake(target)
		}
		for n := range 10_000 {
			wake("org_1", n, false)
		}
		<-time.After(time.Second)
		before := len(c.ids())
		wake("org_2", 20_000, true)
		wake("org_2", 20_001, false)
		<-time.After(time.Second)
		stop, cancel := context.WithCancel(t.Context())
		cancel()
		w.Stop(stop)
		<-time.After(time.Second) // until the senders have ended
		priorities := map[string]temporal.Priority{}
		others := 0
		for n, call := range c.calls {
			priorities[call.id] = call.options.Priority
			if n >= before && call.options.Priority.FairnessKey == "org_1" {
				others++
			}
			if call.id == workflows.WorkOrderID("wo_20001") && others > 1 {
				t.Errorf("%d of another organization were sent before it", others)
			}
		}
		for id, want := range map[string]temporal.Priority{
			c.calls[before-1].id:              {FairnessKey: "org_1"},
			workflows.WorkOrderID("wo_20001"): {FairnessKey: "org_2"},
			workflows.WorkOrderID("wo_20000"): {FairnessKey: "org_2", PriorityKey: sweptPriority},
		} {
			if got, sent := priorities[id]; !sent || got != want {
				t.Errorf("%s starts with %+v (%t), want %+v", id, got, sent, want)
			}
		}
	})
}

func TestWakeThatWaitedTooLongIsLeftToTheSweep(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		synctest.Wait() // all its senders are idle
		w.mu.Lock()
		w.add(wake{target: workOrder(1), since: time.Now().Add(-maxWait - time.Nanosecond)})
		w.add(wake{target: workOrder(2), since: time.Now().Add(-maxWait)})
		w.mu.Unlock()
		w.Stop(t.Context())
		wantMetrics(t, "then", gather(t, w), map[string]float64{"wakes_total expired": 1, "wakes_total dropped": 0, "wakes_total sent": 1})
		if ids := c.ids(); !slices.Equal(ids, []string{workflows.WorkOrderID("wo_2")}) {
			t.Errorf("the wakes %v were sent, want the one that waited no longer", ids)
		}
	})
}

func TestWakesDuringTheCooldownAreMerged(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		after := func(d time.Duration, want int) {
			t.Helper()
			<-time.After(d) // on the bubble's clock
			synctest.Wait()
			if n := c.count("webhook-address/whk_1"); n != want {
				t.Errorf("it was woken %d times, want %d", n, want)
			}
		}
		w.Wake(webhook(1))
		after(0, 1)
		for range 100 {
			w.Wake(webhook(1), webhook(1))
		}
		w.Wake(webhook(2)) // which is not cooling down
		after(wakeCooldown-time.Millisecond, 1)
		if n := c.count("webhook-address/whk_2"); n != 1 {
			t.Errorf("another was woken %d times, want once", n)
		}
		after(time.Millisecond, 2) // all merged into one
		after(10*wakeCooldown, 2)
		w.Wake(webhook(1))
		after(0, 3)
		w.Wake(webhook(1))
		w.Stop(t.Context()) // does not wait for the cooldown
		after(0, 4)
		after(10*wakeCooldown, 4)
	})
}

// Notices are mailed ten seconds after the first of them, in one run; links at once, even then.
func TestNoticesAreMailedTogetherAndLinksAtOnce(t *testing.T) {
	withWaker(t, func(t *testing.T, temporal *fakeTemporal, w *Waker) {
		defer w.Stop(t.Context())
		notice, link := store.MailTarget(store.TargetMail, "idn_1"), store.MailTarget(store.TargetLinks, "idn_1")
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if n := temporal.count(workflows.MailID("idn_1")); n != want {
				t.Errorf("%s the workflow was woken %d times, want %d", when, n, want)
			}
		}
		for range 10 {
			w.Wake(notice)
			<-time.After(900 * time.Millisecond)
		}
		expect("nine seconds after the first notice", 0)
		w.Wake(link)
		expect("at a link", 1)
		<-time.After(time.Second)
		expect("ten seconds after the first notice", 2)
		w.Wake(notice)
		<-time.After(store.MailDelay - time.Millisecond)
		expect("a moment before the next ten seconds are over", 2)
		<-time.After(time.Millisecond)
		expect("after them", 3)
		<-time.After(time.Minute)
		expect("later", 3)
	})
}

func TestQueueIsBoundedDuringAnOutage(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		open := make(gate)
		c.respond = open.wait
		for n := range senders {
			w.Wake(webhook(-1 - n))
		}
		synctest.Wait()
		for n := range maxQueued + 3 {
			w.Wake(webhook(n)) // does not block
		}
		w.Wake(webhook(maxQueued), webhook(maxQueued+1)) // already queued
		wantMetrics(t, "during it", gather(t, w), map[string]float64{
			"wakes_total sent": 0, "wakes_total failed": 0, "wakes_total merged": 2, "wakes_total dropped": 3, "wakes_queued": maxQueued,
		})
		close(open)
		synctest.Wait()
		wantMetrics(t, "afterwards", gather(t, w), map[string]float64{
			"wakes_total sent": senders + maxQueued, "wakes_total failed": 0, "wakes_queued": 0,
		})
		// A dropped wake can be repeated now.
		w.Wake(webhook(0))
		w.Stop(t.Context())
		if n := len(c.ids()); n != senders+maxQueued+1 || c.count(workflows.WebhookAddressID(webhook(0).ID)) != 1 {
			t.Errorf("%d wakes were sent, %d of the one that was dropped", n, c.count(workflows.WebhookAddressID(webhook(0).ID)))
		}
	})
}

func TestStopSendsQueuedWakes(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		open := make(gate)
		c.respond = open.wait
		for n := range 100 {
			w.Wake(webhook(n))
		}
		synctest.Wait()
		if n := len(c.ids()); n != senders {
			t.Errorf("%d wakes are being sent at a time, want %d", n, senders)
		}
		time.AfterFunc(time.Second, func() { close(open) })
		w.Stop(t.Context())
		if n := len(c.ids()); n != 100 {
			t.Errorf("%d wakes were sent before Stop returned, want 100", n)
		}
		w.Wake(webhook(200))
		stopped := time.Now()
		w.Stop(t.Context()) // again, when nothing is left
		if n := len(c.ids()); n != 100 || time.Since(stopped) != 0 {
			t.Errorf("after Stop %d wakes were sent; another Stop took %v", n-100, time.Since(stopped))
		}
	})
}

func TestWakerOutlivesTheContextOfItsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{respond: func(ctx context.Context) error { return ctx.Err() }}
		ctx, cancel := context.WithCancel(t.Context())
		var written bytes.Buffer
		w := NewWaker(ctx, c, slog.New(slog.NewTextHandler(&written, nil)))
		cancel()
		w.Wake(webhook(1))
		w.Stop(t.Context())
		if len(c.ids()) != 1 || written.Len() > 0 {
			t.Errorf("%d wakes were sent, want 1; the log says %q", len(c.ids()), written.String())
		}
	})
}

func TestStopDropsQueuedWakesWhenItsContextEnds(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		c.respond = make(gate).wait // never opened
		for n := range 100 {
			w.Wake(webhook(n), workOrder(n))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		started := time.Now()
		w.Stop(ctx)
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("Stop took %v, want the context's 3s", took)
		}
		// Wakes being sent end at their time limit. Nothing follows them, or this
		// bubble would not end.
		<-time.After(wakeTimeout) // on the bubble's clock
		synctest.Wait()
		if n := len(c.ids()); n != senders {
			t.Errorf("%d wakes were sent, want only the first %d", n, senders)
		}
	})
}

func TestOutageAndItsEndAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		c := &fakeTemporal{respond: func(context.Context) error {
			if down.Load() {
				return errors.New("no connection to Temporal")
			}
			return nil
		}}
		var written bytes.Buffer // the handler locks it
		w := NewWaker(t.Context(), c, slog.New(slog.NewTextHandler(&written, nil)))
		logged := func() string {
			return strings.Join(regexp.MustCompile(`level=\w+`).FindAllString(written.String(), -1), " ")
		}
		for range 3 {
			for n := range 100 {
				w.Wake(webhook(n))
			}
			<-time.After(wakeCooldown) // on the bubble's clock
			synctest.Wait()
		}
		wantMetrics(t, "during it", gather(t, w), map[string]float64{"wakes_total sent": 0, "wakes_total failed": 300})
		if logged() != "level=WARN" || !strings.Contains(written.String(), "no connection to Temporal") {
			t.Errorf("the log is %s", written.String())
		}
		down.Store(false)
		for n := range 100 {
			w.Wake(webhook(n))
		}
		w.Stop(t.Context())
		if logged() != "level=WARN level=INFO" {
			t.Errorf("afterwards the log is %s", written.String())
		}
	})
}

// A Delivery workflow is started or woken; one that the sweep found is only started.
func TestWorkflowsOfFailingDeliveries(t *testing.T) {
	failing := func(startOnly bool) store.FailingDelivery {
		return store.FailingDelivery{DeliveryID: "dlv_1", OrganizationID: "idn_1", WebhookID: "whk_1", LastResult: "500", StartOnly: startOnly}
	}
	target := store.WakeTarget{Kind: store.TargetDelivery, ID: "dlv_1"}
	for name, tt := range map[string]struct {
		wake func(w *Waker)
		// want is the last call: its signal and whether it starts the workflow.
		want string
	}{
		"one that failed":        {func(w *Waker) { w.WakeFailing(failing(false)) }, "wake start"},
		"one that is overdue":    {func(w *Waker) { w.WakeFailing(failing(true)) }, " start"},
		"one that changed":       {func(w *Waker) { w.Wake(target) }, "wake start"},
		"overdue and changed":    {func(w *Waker) { w.WakeFailing(failing(true)); w.Wake(target) }, "wake start"},
		"changed and overdue":    {func(w *Waker) { w.Wake(target); w.WakeFailing(failing(true)) }, "wake start"},
		"overdue and failed":     {func(w *Waker) { w.WakeFailing(failing(true), failing(false)) }, "wake start"},
		"overdue in every sweep": {func(w *Waker) { w.WakeFailing(failing(true), failing(true)) }, " start"},
	} {
		t.Run(name, func(t *testing.T) {
			withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
				w.mu.Lock() // until all are queued
				w.coolingDown[keyOf(target)] = nil
				w.mu.Unlock()
				tt.wake(w)
				w.Stop(t.Context())
				if len(c.calls) != 1 {
					t.Fatalf("%d wakes, want 1", len(c.calls))
				}
				got := c.calls[0].signal
				if c.calls[0].workflow != nil {
					got += " start"
				}
				if got != tt.want || w.failing {
					t.Errorf("sent %q, want %q; failing %t", got, tt.want, w.failing)
				}
			})
		})
	}
}

func TestWakesCarryTheTraceOfTheirCall(t *testing.T) {
	withWaker(t, func(t *testing.T, c *fakeTemporal, w *Waker) {
		in := func(trace string) context.Context {
			return store.WithTraceParent(t.Context(), "00-"+trace+"2f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		}
		w.WakeIn(in("aaaa"), workOrder(1), webhook(1))
		synctest.Wait()
		// The workflow is cooling down; of the merged wakes the first trace is kept.
		w.Wake(workOrder(1))
		w.WakeIn(in("bbbb"), workOrder(1))
		w.WakeIn(in("cccc"), workOrder(1))
		<-time.After(wakeCooldown) // on the bubble's clock
		synctest.Wait()
		w.Wake(workOrder(1))
		w.WakeFailing(store.FailingDelivery{DeliveryID: "dlv_1", TraceParent: *store.TraceParent(in("dddd"))})
		w.Stop(t.Context())
		traces := map[string]string{}
		for _, call := range c.calls {
			traces[call.id] += " " + call.trace
		}
		for id, want := range map[string]string{
			"work-order/wo_1": " aaaa bbbb 0000", "webhook-address/whk_1": " 0000", "delivery/dlv_1": " dddd",
		} {
			if traces[id] != want {
				t.Errorf("%s was woken in the traces%s, want%s", id, traces[id], want)
			}
		}
	})
}
