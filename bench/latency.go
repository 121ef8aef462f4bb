package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millwright/workflows"
)

// benchLatencies measures how long a change takes to its receiver: when nothing
// else happens, when the address's mailbox is asleep, and at the given rate.
func (in *installation) benchLatencies(ctx context.Context, r *report, rate float64, load time.Duration) error {
	rounds := max(3, int(2*load.Seconds()))
	var idle, asleep, busy waits
	err := phase(ctx, "latency when idle", 20*load+time.Minute, func(ctx context.Context) (err error) {
		idle, err = in.oneByOne(ctx, 10*rounds, in.pause)
		return err
	})
	if err != nil {
		return err
	}
	err = phase(ctx, "latency when asleep", 30*load+time.Minute, func(ctx context.Context) error {
		// Falls asleep sooner; how it wakes is the same.
		if err := in.restartWorker(ctx, map[string]string{"WEBHOOK_LINGER": "100ms"}); err != nil {
			return err
		}
		if asleep, err = in.oneByOne(ctx, rounds, in.awaitSleep); err != nil {
			return err
		}
		if err := in.restartWorker(ctx, nil); err != nil {
			return err
		}
		return in.settle(ctx)
	})
	if err != nil {
		return err
	}
	err = phase(ctx, "latency when busy", 20*load+time.Minute, func(ctx context.Context) error {
		if _, err := in.paced(ctx, rate, load/5); err != nil { // the mailbox awakes
			return err
		}
		busy, err = in.paced(ctx, rate, load)
		return err
	})
	if err != nil {
		return err
	}
	idle.report(r, "latency, idle")
	asleep.report(r, "latency, mailbox asleep")
	busy.report(r, fmt.Sprintf("latency, busy (%.0f changes/s)", rate))
	return nil
}

// waits are the times that changes took to their receiver.
type waits struct{ fromCall, fromAnswer []time.Duration }

func (w *waits) add(a answered, due, arrived time.Time) {
	w.fromCall = append(w.fromCall, arrived.Sub(due))
	// The delivery may overtake the answer.
	w.fromAnswer = append(w.fromAnswer, max(0, arrived.Sub(a.at)))
}

func (w *waits) report(r *report, what string) {
	for _, from := range []struct {
		name string
		took []time.Duration
	}{{"answer to receiver", w.fromAnswer}, {"call to receiver", w.fromCall}} {
		slices.Sort(from.took)
		n := len(from.took)
		r.add(what+": "+from.name+", p50", milliseconds(from.took[n/2]), "ms")
		r.add(what+": "+from.name+", p99", milliseconds(from.took[n*99/100]), "ms")
	}
}

// oneByOne makes one change after another. Before each, ready waits until it may come.
func (in *installation) oneByOne(ctx context.Context, n int, ready func(context.Context) error) (waits, error) {
	var w waits
	c, err := in.newCaller(ctx)
	if err != nil {
		return w, err
	}
	defer c.conn.Close()
	for range n {
		if err := ready(ctx); err != nil {
			return w, err
		}
		taking := in.receiver.take()
		a, err := in.patch(c)
		if err != nil {
			return w, err
		}
		if err := taking.await(ctx, 1); err != nil {
			return w, err
		}
		arrived, known := taking.arrival(a.change)
		if !known {
			return w, fmt.Errorf("what arrived was not the change of %s at %s", a.workOrder, a.change.at)
		}
		w.add(a, a.sent, arrived)
	}
	return w, nil
}

// pause waits for 50 to 100 ms, in steps that do not fall in with any poller's.
func (in *installation) pause(ctx context.Context) error {
	const shortest, step, steps = 50 * time.Millisecond, 3700 * time.Microsecond, 13
	return after(ctx, time.Now().Add(shortest+time.Duration(in.patches.Load()%steps)*step))
}

// after waits until the time has come.
func after(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitSleep waits until the mailbox of the first address does not run.
func (in *installation) awaitSleep(ctx context.Context) error {
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		is, err := in.temporal.DescribeWorkflowExecution(ctx, workflows.WebhookAddressID(in.webhookID()), "")
		if _, never := errors.AsType[*serviceerror.NotFound](err); never {
			return true, nil
		}
		return is.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
	})
	if err != nil {
		return fmt.Errorf("the mailbox does not fall asleep: %w", err)
	}
	return nil
}

// paced makes changes at the rate for a while, whether the earlier ones were
// answered or not, as long as callers are left. What a change waits for a caller
// counts: it is due when the rate says so.
func (in *installation) paced(ctx context.Context, rate float64, load time.Duration) (waits, error) {
	taking := in.receiver.take()
	first, total := time.Now(), int64(rate*load.Seconds())
	due := func(n int64) time.Time {
		return first.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	}
	var mu sync.Mutex
	var w waits
	dues := map[change]time.Time{}
	var made []answered
	var asked atomic.Int64
	more := func() bool { return asked.Load() < total }
	err := in.call(ctx, 2*callers, more, func(c *caller) error {
		n := asked.Add(1) - 1
		if n >= total {
			return nil
		}
		if err := after(ctx, due(n)); err != nil {
			return err
		}
		a, err := in.patch(c)
		mu.Lock()
		defer mu.Unlock()
		made, dues[a.change] = append(made, a), due(n)
		return err
	})
	if err != nil {
		return w, err
	}
	if err := taking.await(ctx, len(made)); err != nil {
		return w, err
	}
	for _, a := range made {
		arrived, known := taking.arrival(a.change)
		if !known {
			return w, fmt.Errorf("the change of %s at %s did not arrive", a.workOrder, a.change.at)
		}
		w.add(a, dues[a.change], arrived)
	}
	return w, nil
}
