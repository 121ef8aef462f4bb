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

// benchLatencies measures the time from a change to its receiver: without other load,
// while the address workflow sleeps, and at the given rate.
func (in *installation) benchLatencies(ctx context.Context, r *report, rate float64, load time.Duration) error {
	rounds := max(3, int(load.Seconds()))
	var idle, asleep, busy latencies
	err := phase(ctx, "latency when idle", 20*load+time.Minute, func(ctx context.Context) (err error) {
		idle, err = in.oneByOne(ctx, 20*rounds, in.pause)
		return err
	})
	if err != nil {
		return err
	}
	err = phase(ctx, "latency when asleep", 30*load+time.Minute, func(ctx context.Context) error {
		// Goes to sleep sooner; waking is the same.
		if err := in.restartWorker(ctx, map[string]string{"WEBHOOK_LINGER": "100ms"}); err != nil {
			return err
		}
		if asleep, err = in.oneByOne(ctx, rounds, in.awaitAddressIdle); err != nil {
			return err
		}
		if err := in.restartWorker(ctx, nil); err != nil {
			return err
		}
		return in.awaitIdle(ctx)
	})
	if err != nil {
		return err
	}
	err = phase(ctx, "latency when busy", 20*load+time.Minute, func(ctx context.Context) error {
		if _, err := in.paced(ctx, rate, 1, load/5); err != nil { // wakes the address workflow
			return err
		}
		busy, err = in.paced(ctx, rate, 1, load)
		return err
	})
	if err != nil {
		return err
	}
	idle.report(r, "latency, idle")
	asleep.report(r, "latency, address workflow asleep")
	busy.report(r, fmt.Sprintf("latency, busy (%.0f changes/s)", rate))
	return nil
}

// latencies are the times from changes to their receiver.
type latencies struct{ fromCall, fromResponse waits }

// add adds the deliveries of a change, which counts from the given time.
func (w *latencies) add(a answeredChange, from time.Time, arrived []time.Time) error {
	if len(arrived) == 0 {
		return fmt.Errorf("the change of %s at %s did not arrive", a.workOrder, a.changeKey.at)
	}
	for _, at := range arrived {
		w.fromCall = append(w.fromCall, at.Sub(from))
		// The delivery may arrive before the response.
		w.fromResponse = append(w.fromResponse, max(0, at.Sub(a.respondedAt)))
	}
	return nil
}

func (w *latencies) report(r *report, what string) {
	w.fromResponse.report(r, what+": response to receiver")
	w.fromCall.report(r, what+": call to receiver")
}

// oneByOne makes sequential changes. Before each it calls ready.
func (in *installation) oneByOne(ctx context.Context, n int, ready func(context.Context) error) (latencies, error) {
	var w latencies
	c, err := dial(ctx, in.erp.address, in.erp.token)
	if err != nil {
		return w, err
	}
	defer c.conn.Close()
	for range n {
		if err := ready(ctx); err != nil {
			return w, err
		}
		log := in.receiver.newLog()
		a, err := in.erp.patch(c)
		if err != nil {
			return w, err
		}
		if err := log.await(ctx, 1); err != nil {
			return w, err
		}
		if err := w.add(a, a.sent, log.arrivals(a.changeKey)); err != nil {
			return w, err
		}
	}
	return w, nil
}

// pause waits for 50 to 100 ms, in steps that do not coincide with a poller's
// interval.
func (in *installation) pause(ctx context.Context) error {
	const shortest, step, steps = 50 * time.Millisecond, 3700 * time.Microsecond, 13
	return after(ctx, time.Now().Add(shortest+time.Duration(in.erp.calls.Load()%steps)*step))
}

// after waits until the given time.
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

// awaitAddressIdle waits until the first address's workflow does not run.
func (in *installation) awaitAddressIdle(ctx context.Context) error {
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		is, err := in.temporal.DescribeWorkflowExecution(ctx, workflows.WebhookAddressID(in.webhookID), "")
		if _, never := errors.AsType[*serviceerror.NotFound](err); never {
			return true, nil
		}
		return is.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
	})
	if err != nil {
		return fmt.Errorf("the address workflow does not end: %w", err)
	}
	return nil
}

// paced makes changes at the rate for the given time, and waits until each has
// arrived at every address.
func (in *installation) paced(ctx context.Context, rate float64, addresses int, load time.Duration) (latencies, error) {
	total := schedule{rate: rate}.total(load)
	return in.pacedBy(ctx, rate, load, int(total)*addresses, in.erp.patch)
}

// pacedBy makes changes with patch at the rate for the given time, and waits for
// their deliveries.
func (in *installation) pacedBy(ctx context.Context, rate float64, load time.Duration, deliveries int, patch func(*caller) (answeredChange, error)) (latencies, error) {
	log := in.receiver.newLog()
	var mu sync.Mutex
	var w latencies
	froms := map[changeKey]time.Time{}
	var made []answeredChange
	err := in.erp.paced(ctx, rate, load, func(c *caller) (func(due, from time.Time), error) {
		a, err := patch(c)
		return func(_, from time.Time) {
			mu.Lock()
			defer mu.Unlock()
			made, froms[a.changeKey] = append(made, a), from
		}, err
	})
	if err != nil {
		return w, err
	}
	if err := log.await(ctx, deliveries); err != nil {
		return w, err
	}
	for _, a := range made {
		if err := w.add(a, froms[a.changeKey], log.arrivals(a.changeKey)); err != nil {
			return w, err
		}
	}
	return w, nil
}
