package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millwright/workflows"
)

// benchLatencies measures how long a change takes to its receiver: when nothing
// else happens, when the address's mailbox is asleep, and at the given rate.
func (in *installation) benchLatencies(ctx context.Context, r *report, rate float64, load time.Duration) error {
	rounds := max(3, int(load.Seconds()))
	var idle, asleep, busy arrivals
	err := phase(ctx, "latency when idle", 20*load+time.Minute, func(ctx context.Context) (err error) {
		idle, err = in.oneByOne(ctx, 20*rounds, in.pause)
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
		if _, err := in.paced(ctx, rate, 1, load/5); err != nil { // the mailbox awakes
			return err
		}
		busy, err = in.paced(ctx, rate, 1, load)
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

// arrivals are the times that changes took to their receiver.
type arrivals struct{ fromCall, fromAnswer waits }

// add adds the deliveries of a change, which counts from the given moment.
func (w *arrivals) add(a answered, from time.Time, arrived []time.Time) error {
	if len(arrived) == 0 {
		return fmt.Errorf("the change of %s at %s did not arrive", a.workOrder, a.change.at)
	}
	for _, at := range arrived {
		w.fromCall = append(w.fromCall, at.Sub(from))
		// The delivery may overtake the answer.
		w.fromAnswer = append(w.fromAnswer, max(0, at.Sub(a.at)))
	}
	return nil
}

func (w *arrivals) report(r *report, what string) {
	w.fromAnswer.report(r, what+": answer to receiver")
	w.fromCall.report(r, what+": call to receiver")
}

// oneByOne makes one change after another. Before each, ready waits until it may come.
func (in *installation) oneByOne(ctx context.Context, n int, ready func(context.Context) error) (arrivals, error) {
	var w arrivals
	c, err := dial(ctx, in.erp.address, in.erp.token)
	if err != nil {
		return w, err
	}
	defer c.conn.Close()
	for range n {
		if err := ready(ctx); err != nil {
			return w, err
		}
		taking := in.receiver.take()
		a, err := in.erp.patch(c)
		if err != nil {
			return w, err
		}
		if err := taking.await(ctx, 1); err != nil {
			return w, err
		}
		if err := w.add(a, a.sent, taking.arrivals(a.change)); err != nil {
			return w, err
		}
	}
	return w, nil
}

// pause waits for 50 to 100 ms, in steps that do not fall in with any poller's.
func (in *installation) pause(ctx context.Context) error {
	const shortest, step, steps = 50 * time.Millisecond, 3700 * time.Microsecond, 13
	return after(ctx, time.Now().Add(shortest+time.Duration(in.erp.turn.Load()%steps)*step))
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
		is, err := in.temporal.DescribeWorkflowExecution(ctx, workflows.WebhookAddressID(in.webhookID), "")
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

// paced makes changes at the rate for a while, and waits until they have
// arrived at so many addresses each.
func (in *installation) paced(ctx context.Context, rate float64, addresses int, load time.Duration) (arrivals, error) {
	total := schedule{rate: rate}.total(load)
	return in.pacedBy(ctx, rate, load, int(total)*addresses, in.erp.patch)
}

// pacedBy makes changes in the given way at the rate for a while, and waits for
// their deliveries.
func (in *installation) pacedBy(ctx context.Context, rate float64, load time.Duration, deliveries int, patch func(*caller) (answered, error)) (arrivals, error) {
	taking := in.receiver.take()
	var mu sync.Mutex
	var w arrivals
	froms := map[change]time.Time{}
	var made []answered
	err := in.erp.paced(ctx, rate, load, func(c *caller) (func(due, from time.Time), error) {
		a, err := patch(c)
		return func(_, from time.Time) {
			mu.Lock()
			defer mu.Unlock()
			made, froms[a.change] = append(made, a), from
		}, err
	})
	if err != nil {
		return w, err
	}
	if err := taking.await(ctx, deliveries); err != nil {
		return w, err
	}
	for _, a := range made {
		if err := w.add(a, froms[a.change], taking.arrivals(a.change)); err != nil {
			return w, err
		}
	}
	return w, nil
}
