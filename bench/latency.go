package main

import (
	"context"
	"fmt"
	"time"

	"millwright/workflows"
)

// benchLatencies measures the time from a change to its receiver: without other load,
// while the address workflow sleeps, and at the given rate.
func (in *installation) benchLatencies(ctx context.Context, r *report, rate float64, load time.Duration) error {
	rounds := max(3, int(load.Seconds()))
	var idle, asleep, busy latencies
	err := phase(ctx, "latency when idle", 20*load+time.Minute, func(ctx context.Context) (err error) {
		idle, err = in.changes(1).oneByOne(ctx, 20*rounds, in.pause)
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
		if asleep, err = in.changes(1).oneByOne(ctx, rounds, in.awaitAddressIdle); err != nil {
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
		if _, err := in.changes(1).paced(ctx, rate, load/5); err != nil { // wakes the address workflow
			return err
		}
		busy, err = in.changes(1).paced(ctx, rate, load)
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

// awaitAddressIdle waits until the first address's workflow is asleep: it has no dispatch
// and nothing to do.
func (in *installation) awaitAddressIdle(ctx context.Context) error {
	err := until(ctx, 20*time.Millisecond, func() (bool, error) {
		is, err := in.temporal.DescribeWorkflowExecution(ctx, workflows.WebhookAddressID(in.webhookID), "")
		return err == nil && len(is.GetPendingActivities()) == 0 && is.GetPendingWorkflowTask() == nil, err
	})
	if err != nil {
		return fmt.Errorf("the address workflow does not sleep: %w", err)
	}
	return nil
}
