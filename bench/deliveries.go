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
	if err := in.subscribe(ctx, changeSubscription(1)); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, benchWorkOrders); err != nil {
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
	const pause = time.Second
	before := in.usage()
	if before == nil {
		return nil
	}
	readings := 0
	return until(ctx, pause, func() (bool, error) {
		now := in.usage()
		used := now.since(before)
		before = now
		readings++
		return readings > 1 && used["worker"]+used["temporal"] < pause/10, nil
	})
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

// flood is the result of making as many changes as the API accepts.
type flood struct {
	changes, deliveries int
	// first is when the first call was sent, answered when the last response came.
	first, answered time.Time
	// began and ended are when the first and the last delivery arrived.
	began, ended time.Time
	used         usage
}

func (f flood) accepted() float64 { return perSecond(f.changes, f.first, f.answered) }
func (f flood) arrived() float64  { return perSecond(f.deliveries, f.began, f.ended) }
func (f flood) through() float64  { return perSecond(f.changes, f.first, f.ended) }

// benchChanges measures the peak rate of changes and returns it, in changes per
// second.
func (in *installation) benchChanges(ctx context.Context, r *report, addresses int, load time.Duration) (float64, error) {
	var f flood
	err := phase(ctx, fmt.Sprintf("changes for %d addresses", addresses), 20*load+time.Minute, func(ctx context.Context) error {
		// Warms up: opens connections, wakes the address workflows, and leaves the
		// tables as autovacuum keeps them.
		if _, err := in.flood(ctx, addresses, load/5); err != nil {
			return err
		}
		if _, err := in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
			return err
		}
		if _, err := in.flood(ctx, addresses, load/5); err != nil {
			return err
		}
		var err error
		f, err = in.flood(ctx, addresses, load)
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
	arrived := r.compare(what+": deliveries arrived", f.arrived(), "/s", baselineDrain)
	if addresses > 1 {
		arrived.compareWithOthers(other{Name: "Outpost", Value: 2000}, other{Name: "WebhookX", Value: 1340})
	}
	r.compare(what+": from first call to last delivery", f.through(), "/s", baselineChange)
	f.used.report(r, what, f.changes)
	return f.through(), in.profiled(ctx, what, func() error {
		_, err := in.flood(ctx, addresses, profileFor+time.Second)
		return err
	})
}

// flood runs all callers, which change work orders for the given time, and waits
// until every change has arrived at every address.
func (in *installation) flood(ctx context.Context, addresses int, load time.Duration) (flood, error) {
	log := in.receiver.newLog()
	before := in.usage()
	f := flood{first: time.Now()}
	var err error
	f.changes, err = in.erp.flood(ctx, callers, patchOne, time.Now().Add(load))
	if err != nil {
		return f, err
	}
	f.answered = time.Now()
	f.deliveries = f.changes * addresses
	if err := log.await(ctx, f.deliveries); err != nil {
		return f, err
	}
	f.began, f.ended = log.span()
	f.used = in.usage().since(before)
	return f, nil
}
