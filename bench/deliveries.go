package main

import (
	"context"
	"fmt"
	"time"
)

// manyAddresses is the number of addresses that an integration may have.
const manyAddresses = 5

// benchDeliveries measures changes from the call to the receivers. Each load lasts
// about the given time.
func benchDeliveries(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "deliveries")
	if err != nil {
		return err
	}
	defer in.close()
	if err := in.startWith(ctx, changeSubscription(1), benchWorkOrders); err != nil {
		return err
	}
	if err := in.benchPosts(ctx, r, load); err != nil {
		return err
	}
	if err := in.benchChangeBaseline(ctx, r, load); err != nil {
		return err
	}
	if err := in.benchBareWorkflows(ctx, r, load); err != nil {
		return err
	}
	if err := in.benchWorkflows(ctx, r); err != nil {
		return err
	}
	rate, err := in.benchChanges(ctx, r, 1, load)
	if err != nil {
		return err
	}
	if err := in.benchLatencies(ctx, r, rate/2, load); err != nil {
		return err
	}
	if err := in.benchDrain(ctx, r, load); err != nil {
		return err
	}
	if err := in.subscribe(ctx, changeSubscription(manyAddresses)); err != nil {
		return err
	}
	_, err = in.benchChanges(ctx, r, manyAddresses, load)
	return err
}

// benchChangeBaseline measures the writes of a change in the baselines' database.
func (in *installation) benchChangeBaseline(ctx context.Context, r *report, load time.Duration) error {
	f, err := newBaselines(ctx, in)
	if err != nil {
		return err
	}
	defer in.stopBaselines(f)
	return phase(ctx, baselineChange, load+time.Minute, func(ctx context.Context) error {
		rate, err := sideBySide(ctx, load/2, f.raw(patchOne))
		r.add(baselineChange, rate, "/s")
		return err
	})
}

// benchWorkflows measures how fast a new worker starts the workflows of the new work
// orders, and returns when it and Temporal are idle.
func (in *installation) benchWorkflows(ctx context.Context, r *report) error {
	return phase(ctx, "workflows of new work orders", 5*time.Minute, func(ctx context.Context) error {
		started := time.Now()
		if err := in.startWorker(ctx, nil); err != nil {
			return err
		}
		if err := in.awaitDirtyRecords(ctx); err != nil {
			return err
		}
		r.compare("workflows of new work orders started", perSecond(benchWorkOrders, started, time.Now()), "/s", baselineWorkflows)
		return in.awaitIdle(ctx)
	})
}

// awaitDirtyRecords waits until no record is dirty.
func (in *installation) awaitDirtyRecords(ctx context.Context) error {
	err := until(ctx, 10*time.Millisecond, func() (bool, error) {
		var dirty int
		err := in.pool.QueryRow(ctx, `SELECT count(*) FROM looks_owed`).Scan(&dirty)
		return dirty == 0, err
	})
	if err != nil {
		return fmt.Errorf("some work orders are still dirty: %w", err)
	}
	return nil
}

// awaitWorkflowsIdle waits until no record is dirty, and worker and Temporal are
// idle.
func (in *installation) awaitWorkflowsIdle(ctx context.Context) error {
	return phase(ctx, "workflows of new work orders", 5*time.Minute, func(ctx context.Context) error {
		if err := in.awaitDirtyRecords(ctx); err != nil {
			return err
		}
		return in.awaitIdle(ctx)
	})
}

// awaitIdle waits until worker and Temporal use less than a tenth of a processor.
// Without /proc it does not wait.
func (in *installation) awaitIdle(ctx context.Context) error {
	idle := in.idle("worker", "temporal")
	return until(ctx, idleReading, func() (bool, error) { return idle(), nil })
}

// idleReading is the time between two calls of idle's function.
const idleReading = time.Second

// idle returns a function that reports whether the parts have used less than a tenth of
// a processor since its previous call. Without /proc they are always idle.
func (in *installation) idle(parts ...string) func() bool {
	before := in.usage()
	readings := 0
	return func() bool {
		now := in.usage()
		since := now.since(before)
		before = now
		readings++
		var used time.Duration
		for _, part := range parts {
			used += since[part]
		}
		return now == nil || readings > 1 && used < idleReading/10
	}
}

// phase runs a part of the measurement, which must end within the limit.
func phase(ctx context.Context, name string, limit time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", limit))
	defer cancel()
	if err := run(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// benchChanges measures the peak rate of changes and returns it, in changes per
// second.
func (in *installation) benchChanges(ctx context.Context, r *report, addresses int, load time.Duration) (float64, error) {
	var f flood
	err := phase(ctx, fmt.Sprintf("changes for %d addresses", addresses), 20*load+time.Minute, func(ctx context.Context) error {
		// Warms up: opens connections, wakes the address workflows, and leaves the
		// tables as autovacuum keeps them.
		if _, err := in.changes(addresses).flood(ctx, load/5); err != nil {
			return err
		}
		if _, err := in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
			return err
		}
		if _, err := in.changes(addresses).flood(ctx, load/5); err != nil {
			return err
		}
		var err error
		f, err = in.changes(addresses).flood(ctx, load)
		return err
	})
	if err != nil {
		return 0, err
	}
	what := "changes, 1 address"
	if addresses > 1 {
		what = fmt.Sprintf("changes, %d addresses", addresses)
	}
	r.compare(what+": accepted", f.accepted(), "/s", baselineChange)
	r.compare(what+": deliveries arrived", f.arrived(), "/s", baselineDrain)
	r.compare(what+": from first call to last delivery", f.through(), "/s", baselineChange)
	f.used.report(r, what, f.changes)
	return f.through(), in.profiled(ctx, what, func() error {
		_, err := in.changes(addresses).flood(ctx, profileFor+time.Second)
		return err
	})
}
