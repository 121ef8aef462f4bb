package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/service"
	"millwright/workflows"
)

// fakeTemporal is a client that takes pokes and nothing else: a call of any other
// method ends the test.
type fakeTemporal struct {
	client.Client
	// answer is what a poke is answered with; nil answers at once.
	answer func(ctx context.Context) error

	mu    sync.Mutex
	taken []poke
}

// wake is a call of SignalWithStartWorkflow.
type poke struct {
	id, signal string
	argument   any
	options    client.StartWorkflowOptions
	workflow   any
	arguments  []any
}

func (c *fakeTemporal) SignalWithStartWorkflow(
	ctx context.Context, id, signal string, argument any, options client.StartWorkflowOptions, workflow any, arguments ...any,
) (client.WorkflowRun, error) {
	c.mu.Lock()
	c.taken = append(c.taken, poke{id, signal, argument, options, workflow, arguments})
	c.mu.Unlock()
	if c.answer != nil {
		return nil, c.answer(ctx)
	}
	return nil, nil
}

// ids are the workflows that were poked, in that order.
func (c *fakeTemporal) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for _, p := range c.taken {
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

// gate makes pokes wait until it is opened.
type gate chan struct{}

func (g gate) wait(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func webhook(n int) service.WakeTarget {
	return service.WakeTarget{Kind: service.TargetWebhook, ID: fmt.Sprintf("whk_%d", n)}
}

func workOrder(n int) service.WakeTarget {
	return service.WakeTarget{Kind: service.TargetWorkOrder, ID: fmt.Sprintf("wo_%d", n)}
}

// occupy gives each of the poker's senders a poke to wait with.
func occupy(p *Waker) {
	for n := range pokersAtOnce {
		p.Wake(webhook(-1 - n))
	}
	synctest.Wait()
}

var quiet = slog.New(slog.DiscardHandler)

func TestPokeStartsOrSignalsTheWorkflowThatOwns(t *testing.T) {
	tests := []struct {
		name     string
		work     service.WakeTarget
		id       string
		workflow string
		queue    string
		summary  string
	}{
		{"an address's mailbox", service.WakeTarget{Kind: service.TargetWebhook, ID: "whk_1"}, "webhook-address/whk_1", "WebhookAddress", "millwright", "Deliveries of whk_1"},
		{"a delivery in trouble", service.WakeTarget{Kind: service.TargetDelivery, ID: "dlv_1"}, "delivery/dlv_1", "Delivery", "millwright-retries", "Retries of dlv_1"},
		{"a work order", service.WakeTarget{Kind: service.TargetWorkOrder, ID: "wo_1"}, "work-order/wo_1", "WorkOrder", "millwright-records", "Work order wo_1"},
		{"feedback", service.WakeTarget{Kind: service.TargetFeedback, ID: "iss_1"}, "feedback/iss_1", "Feedback", "millwright-records", "Feedback iss_1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &fakeTemporal{}
				p := NewWaker(t.Context(), c, quiet)
				p.Wake(tt.work)
				p.Stop(t.Context())
				if len(c.taken) != 1 {
					t.Fatalf("%d pokes, want 1", len(c.taken))
				}
				got := c.taken[0]
				if got.id != tt.id || got.options.ID != tt.id {
					t.Errorf("the workflow %q is signalled and %q started, want %q", got.id, got.options.ID, tt.id)
				}
				if got.signal != "poke" || got.argument != nil {
					t.Errorf("the signal is %q with %v, want poke, which says nothing", got.signal, got.argument)
				}
				if got.workflow != tt.workflow || len(got.arguments) != 1 || got.arguments[0] != tt.work.ID {
					t.Errorf("%v(%v) is started, want %s(%s)", got.workflow, got.arguments, tt.workflow, tt.work.ID)
				}
				if got.options.TaskQueue != tt.queue || got.options.StaticSummary != tt.summary {
					t.Errorf("task queue %q, summary %q", got.options.TaskQueue, got.options.StaticSummary)
				}
				if key, found := foundBy[tt.work.Kind]; found {
					if id, _ := got.options.TypedSearchAttributes.GetKeyword(key); id != tt.work.ID {
						t.Errorf("the search attribute %s is %q, want %q", key.GetName(), id, tt.work.ID)
					}
				}
			})
		})
	}
}

// foundBy is the search attribute that a workflow has from its start.
var foundBy = map[service.TargetKind]temporal.SearchAttributeKeyKeyword{
	service.TargetWebhook:   workflows.AttributeWebhookAddress,
	service.TargetWorkOrder: workflows.AttributeRecordID,
	service.TargetFeedback:  workflows.AttributeRecordID,
}

func TestPokesOfOneWorkflowThatWaitAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		occupy(p)
		for range 1000 {
			p.Wake(webhook(1), webhook(2), webhook(1))
		}
		p.Wake(service.WakeTarget{Kind: service.TargetDelivery, ID: "whk_1"}) // another workflow with the same id
		close(open)
		p.Stop(t.Context())
		for _, id := range []string{"webhook-address/whk_1", "webhook-address/whk_2", "delivery/whk_1"} {
			if n := c.count(id); n != 1 {
				t.Errorf("%s was poked %d times, want once", id, n)
			}
		}
	})
}

func TestPokeWhileOneIsSentIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		p.Wake(webhook(1))
		synctest.Wait() // it is on its way: the workflow may have looked already
		p.Wake(webhook(1))
		close(open)
		p.Stop(t.Context())
		if n := c.count("webhook-address/whk_1"); n != 2 {
			t.Errorf("it was poked %d times, want twice", n)
		}
	})
}

// Records have a lane of their own, in which fewer are sent at once.
func TestThousandsOfNewWorkOrdersDelayNoMailbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		for n := range maxWaiting + 5000 {
			p.Wake(workOrder(n), service.WakeTarget{Kind: service.TargetFeedback, ID: fmt.Sprintf("iss_%d", n)})
		}
		synctest.Wait()
		if n := len(c.ids()); n != recordPokersAtOnce {
			t.Errorf("%d of them are on their way, want %d", n, recordPokersAtOnce)
		}
		for n := range pokersAtOnce {
			p.Wake(webhook(n))
		}
		synctest.Wait()
		for n := range pokersAtOnce {
			if c.count(workflows.WebhookAddressID(webhook(n).ID)) != 1 {
				t.Errorf("mailbox %d waits behind them", n)
			}
		}
		close(open)
		p.Stop(t.Context())
		if n := len(c.ids()); n != recordPokersAtOnce+maxWaiting+pokersAtOnce {
			t.Errorf("%d pokes were sent, want %d of records and each mailbox's", n, recordPokersAtOnce+maxWaiting)
		}
	})
}

func TestABurstOfNewWorkOrdersLeavesTheProcessorsToOthers(t *testing.T) {
	const took = 100 * time.Millisecond
	for name, test := range map[string]struct {
		wake func(n int) service.WakeTarget
		many int
		// every is how often another comes in the first second, 0 for never.
		every time.Duration
		want  int // sent in that second
	}{
		"a burst of records that goes on":        {workOrder, 500, 3 * time.Millisecond, recordPokersAtOnce},
		"a burst of records that goes on slowly": {workOrder, 500, 45 * time.Millisecond, recordPokersAtOnce * 4},
		"a burst of records that is over":        {workOrder, 500, 0, recordPokersAtOnce * 10},
		"a few records":                          {workOrder, recordsAtHand, 0, recordsAtHand},
		"mailboxes":                              {webhook, 500, 3 * time.Millisecond, pokersAtOnce * 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &fakeTemporal{answer: func(context.Context) error {
					<-time.After(took) // of the bubble
					return nil
				}}
				p := NewWaker(t.Context(), c, quiet)
				burst := make([]service.WakeTarget, test.many)
				for n := range burst {
					burst[n] = test.wake(n)
				}
				p.Wake(burst...)
				total := test.many
				second := time.After(time.Second - time.Nanosecond)
				for over := false; !over; {
					var another <-chan time.Time
					if test.every > 0 {
						another = time.After(test.every)
					}
					select {
					case <-another:
						p.Wake(test.wake(total))
						total++
					case <-second:
						over = true
					}
				}
				if n := len(c.ids()); n != test.want {
					t.Errorf("%d pokes were sent in a second, want %d", n, test.want)
				}
				p.Stop(t.Context())
				if n := len(c.ids()); n != total {
					t.Errorf("%d pokes were sent in all, want %d", n, total)
				}
			})
		})
	}
}

func TestMailboxesDelayNoWorkOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		for n := range maxWaiting + 5000 {
			p.Wake(webhook(n))
		}
		p.Wake(workOrder(1), workOrder(1))
		synctest.Wait()
		if c.count("work-order/wo_1") != 1 {
			t.Error("a work order waits behind them")
		}
		close(open)
		p.Stop(t.Context())
	})
}

func TestAWorkflowThatWasPokedIsLeftAloneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{}
		p := NewWaker(t.Context(), c, quiet)
		after := func(d time.Duration, want int) {
			t.Helper()
			<-time.After(d) // on the bubble's clock
			synctest.Wait()
			if n := c.count("webhook-address/whk_1"); n != want {
				t.Errorf("it was poked %d times, want %d", n, want)
			}
		}
		p.Wake(webhook(1))
		after(0, 1)
		for range 100 {
			p.Wake(webhook(1), webhook(1))
		}
		p.Wake(webhook(2)) // which does not rest
		after(pokeRest-time.Millisecond, 1)
		if n := c.count("webhook-address/whk_2"); n != 1 {
			t.Errorf("another was poked %d times, want once", n)
		}
		after(time.Millisecond, 2) // all of them are one
		after(10*pokeRest, 2)
		p.Wake(webhook(1))
		after(0, 3)
		p.Wake(webhook(1))
		p.Stop(t.Context()) // does not wait for the rest
		after(0, 4)
		after(10*pokeRest, 4)
	})
}

func TestPokesAreSentInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{})
		c := &fakeTemporal{answer: func(context.Context) error { <-turn; return nil }}
		p := NewWaker(t.Context(), c, quiet)
		occupy(p)
		for n := range 20 {
			p.Wake(webhook(n))
		}
		for range pokersAtOnce + 20 {
			turn <- struct{}{} // one sender goes on
			synctest.Wait()
		}
		p.Stop(t.Context())
		for n, id := range c.ids()[pokersAtOnce:] {
			if want := workflows.WebhookAddressID(webhook(n).ID); id != want {
				t.Errorf("poke %d was %s's, want %s's", n, id, want)
			}
		}
	})
}

func TestPokerSendsSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		for n := range 100 {
			p.Wake(webhook(n))
		}
		synctest.Wait()
		if n := len(c.ids()); n != pokersAtOnce {
			t.Errorf("%d pokes are on their way, want %d", n, pokersAtOnce)
		}
		close(open)
		p.Stop(t.Context())
		if n := len(c.ids()); n != 100 {
			t.Errorf("%d pokes were sent, want 100", n)
		}
	})
}

func TestPokerKeepsABoundedNumberDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		occupy(p)
		for n := range maxWaiting + 5000 {
			p.Wake(webhook(n)) // does not block
		}
		if l := p.webhooks; len(l.order) != maxWaiting || len(l.waiting) != maxWaiting {
			t.Errorf("%d wait in %d entries, want %d", len(l.order), len(l.waiting), maxWaiting)
		}
		close(open)
		synctest.Wait()
		if n := len(c.ids()); n != pokersAtOnce+maxWaiting {
			t.Errorf("%d pokes were sent, want %d", n, pokersAtOnce+maxWaiting)
		}
		if l := p.webhooks; len(l.order) != 0 || len(l.waiting) != 0 {
			t.Errorf("afterwards %d wait in %d entries", len(l.order), len(l.waiting))
		}
		// What was dropped can be poked now.
		p.Wake(webhook(maxWaiting + 4999))
		p.Stop(t.Context())
		if c.count(workflows.WebhookAddressID(webhook(maxWaiting+4999).ID)) != 1 {
			t.Error("after the outage a poke that was dropped in it is not sent")
		}
	})
}

func TestStopSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(gate)
		c := &fakeTemporal{answer: open.wait}
		p := NewWaker(t.Context(), c, quiet)
		for n := range 100 {
			p.Wake(webhook(n))
		}
		time.AfterFunc(time.Second, func() { close(open) })
		p.Stop(t.Context())
		if n := len(c.ids()); n != 100 {
			t.Errorf("%d pokes were sent before Stop returned, want 100", n)
		}
		p.Wake(webhook(200))
		synctest.Wait()
		if n := len(c.ids()); n != 100 {
			t.Error("a poke after Stop was sent")
		}
	})
}

func TestStopOfAPokerThatDoesNothingReturnsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewWaker(t.Context(), &fakeTemporal{}, quiet)
		synctest.Wait() // all its senders wait
		started := time.Now()
		p.Stop(t.Context())
		p.Stop(t.Context()) // and again
		if took := time.Since(started); took != 0 {
			t.Errorf("Stop took %v", took)
		}
	})
}

func TestPokerOutlivesTheContextItWasMadeWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{answer: func(ctx context.Context) error { return ctx.Err() }}
		ctx, cancel := context.WithCancel(t.Context())
		var written bytes.Buffer
		p := NewWaker(ctx, c, slog.New(slog.NewTextHandler(&written, nil)))
		cancel()
		p.Wake(webhook(1))
		p.Stop(t.Context())
		if len(c.ids()) != 1 || written.Len() > 0 {
			t.Errorf("%d pokes were sent, want 1; the log says %q", len(c.ids()), written.String())
		}
	})
}

func TestStopDropsWhatWaitsWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{answer: make(gate).wait} // never opened
		p := NewWaker(t.Context(), c, quiet)
		for n := range 100 {
			p.Wake(webhook(n), workOrder(n))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		started := time.Now()
		p.Stop(ctx)
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("Stop took %v, want the context's 3s", took)
		}
		// What was on its way ends with its own time limit; nothing follows it,
		// or this bubble would not end.
		<-time.After(pokeTimeout) // on the bubble's clock
		synctest.Wait()
		if n := len(c.ids()); n != pokersAtOnce+recordPokersAtOnce {
			t.Errorf("%d pokes were sent, want only the %d on their way", n, pokersAtOnce+recordPokersAtOnce)
		}
	})
}

func TestPokeThatHangsIsGivenUpForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		var mu sync.Mutex
		never := make(gate)
		c := &fakeTemporal{answer: func(ctx context.Context) error {
			err := never.wait(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			return err
		}}
		p := NewWaker(t.Context(), c, quiet)
		started := time.Now()
		for n := range 2 * pokersAtOnce {
			p.Wake(webhook(n))
		}
		p.Stop(t.Context())
		if took := time.Since(started); took != 2*pokeTimeout {
			t.Errorf("two rounds of pokes that hang took %v, want %v", took, 2*pokeTimeout)
		}
		if len(errs) != 2*pokersAtOnce || slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, context.DeadlineExceeded) }) {
			t.Errorf("the pokes ended with %v", errs)
		}
	})
}

func TestOutageIsLoggedOnceAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		down := true
		c := &fakeTemporal{answer: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return errors.New("no connection to Temporal")
			}
			return nil
		}}
		var written bytes.Buffer // the handler locks it
		p := NewWaker(t.Context(), c, slog.New(slog.NewTextHandler(&written, nil)))
		for range 3 {
			for n := range 100 {
				p.Wake(webhook(n))
			}
			<-time.After(pokeRest) // on the bubble's clock
			synctest.Wait()
		}
		if n := len(c.ids()); n != 300 {
			t.Errorf("%d pokes were tried while it fails, want all 300", n)
		}
		checkLines(t, written.String(), "level=WARN")
		mu.Lock()
		down = false
		mu.Unlock()
		for n := range 100 {
			p.Wake(webhook(n))
		}
		p.Stop(t.Context())
		checkLines(t, written.String(), "level=WARN", "level=INFO")
		if !strings.Contains(written.String(), "no connection to Temporal") {
			t.Errorf("the log does not say why: %s", written.String())
		}
	})
}

// checkLines checks that each line of a log contains one of the texts, in order.
func checkLines(t *testing.T, log string, texts ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if len(lines) != len(texts) {
		t.Fatalf("%d lines in the log, want %d:\n%s", len(lines), len(texts), log)
	}
	for i, text := range texts {
		if !strings.Contains(lines[i], text) {
			t.Errorf("line %d lacks %q: %s", i+1, text, lines[i])
		}
	}
}

func TestPokerIsSafeForManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeTemporal{}
		p := NewWaker(t.Context(), c, quiet)
		var writers sync.WaitGroup
		for writer := range 20 {
			writers.Go(func() {
				for n := range 50 {
					p.Wake(webhook(n), webhook(1000*writer+n))
				}
			})
		}
		writers.Wait()
		p.Stop(t.Context())
		sent := map[string]bool{}
		for _, id := range c.ids() {
			sent[id] = true
		}
		if len(sent) != 20*50 {
			t.Errorf("%d workflows were poked, want %d", len(sent), 20*50)
		}
	})
}
