package main

import (
	"context"
	"fmt"
	"time"
)

// manyAddresses is as many as an integration may have.
const manyAddresses = 5

// benchDeliveries measures the way of a change from its call to its receivers.
// Each load lasts for about the given time.
func benchDeliveries(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "deliveries")
	if err != nil {
		return err
	}
	defer in.close()
	if err := in.subscribe(ctx, changesTold(1)); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, workOrdersOfBench); err != nil {
		return err
	}
	if err := in.benchPosts(ctx, r, load); err != nil {
		return err
	}
	if err := in.benchChangeFloor(ctx, r, load); err != nil {
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
	if err := in.subscribe(ctx, changesTold(manyAddresses)); err != nil {
		return err
	}
	_, err = in.benchChanges(ctx, r, manyAddresses, load)
	return err
}

// benchChangeFloor measures a change's rows in a database of the floors' own.
func (in *installation) benchChangeFloor(ctx context.Context, r *report, load time.Duration) error {
	f, err := newFloors(ctx, in)
	if err != nil {
		return err
	}
	defer in.stopFloors(f)
	return phase(ctx, floorChange, load+time.Minute, func(ctx context.Context) error {
		rate, err := sideBySide(ctx, load/2, f.raw(patchOne))
		r.add(floorChange, rate, "/s")
		return err
	})
}

// benchWorkflows measures how fast a worker that starts takes up the new work
// orders, and returns when it and Temporal have nothing more to do.
func (in *installation) benchWorkflows(ctx context.Context, r *report) error {
	return phase(ctx, "workflows of new work orders", 5*time.Minute, func(ctx context.Context) error {
		started := time.Now()
		if err := in.startWorker(ctx, nil); err != nil {
			return err
		}
		if err := in.awaitLooks(ctx); err != nil {
			return err
		}
		r.compare("new work orders taken up by their workflows", perSecond(workOrdersOfBench, started, time.Now()), "/s", floorWorkflows)
		return in.settle(ctx)
	})
}

// awaitLooks waits until the workflow of every record has looked at it.
func (in *installation) awaitLooks(ctx context.Context) error {
	err := until(ctx, 10*time.Millisecond, func() (bool, error) {
		var owed int
		err := in.pool.QueryRow(ctx, `SELECT count(*) FROM looks_owed`).Scan(&owed)
		return owed == 0, err
	})
	if err != nil {
		return fmt.Errorf("not every work order's workflow has looked: %w", err)
	}
	return nil
}

// awaitRest waits until the workflows of new work orders have looked and nothing is left to do.
func (in *installation) awaitRest(ctx context.Context) error {
	return phase(ctx, "workflows of new work orders", 5*time.Minute, func(ctx context.Context) error {
		if err := in.awaitLooks(ctx); err != nil {
			return err
		}
		return in.settle(ctx)
	})
}

// settle waits until the worker and Temporal rest: until they use less than a
// tenth of a processor. Where that cannot be seen it waits for nothing.
func (in *installation) settle(ctx context.Context) error {
	const pause = time.Second
	before := in.usage()
	if before == nil {
		return nil
	}
	looks := 0
	return until(ctx, pause, func() (bool, error) {
		now := in.usage()
		used := now.since(before)
		before = now
		looks++
		return looks > 1 && used["worker"]+used["temporal"] < pause/10, nil
	})
}

// phase runs a part of the measurement, which must end within the limit.
func phase(ctx context.Context, name string, limit time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %s", limit))
	defer cancel()
	if err := run(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// flood is what came of as many changes as the API takes.
type flood struct {
	changes, deliveries int
	// first is when the first call was sent, answered when the last one was.
	first, answered time.Time
	// began and ended are when the first and the last delivery arrived.
	began, ended time.Time
	used         usage
}

func (f flood) accepted() float64 { return perSecond(f.changes, f.first, f.answered) }
func (f flood) arrived() float64  { return perSecond(f.deliveries, f.began, f.ended) }
func (f flood) through() float64  { return perSecond(f.changes, f.first, f.ended) }

// benchChanges measures what goes through at the most, and returns how many changes a second.
func (in *installation) benchChanges(ctx context.Context, r *report, addresses int, load time.Duration) (float64, error) {
	var f flood
	err := phase(ctx, fmt.Sprintf("changes for %d addresses", addresses), 20*load+time.Minute, func(ctx context.Context) error {
		// Connections are opened, the mailbox is awake, and the tables are as autovacuum
		// keeps them: statements are planned for what is in them.
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
	r.compare(what+": accepted", f.accepted(), "/s", floorChange)
	arrived := r.compare(what+": deliveries arrived", f.arrived(), "/s", floorDrain)
	if addresses > 1 {
		arrived.scale(other{Name: "Outpost", Value: 2000}, other{Name: "WebhookX", Value: 1340})
	}
	r.compare(what+": from first call to last delivery", f.through(), "/s", floorChange)
	f.used.report(r, what, f.changes)
	return f.through(), in.profiled(ctx, what, func() error {
		_, err := in.flood(ctx, addresses, profileFor+time.Second)
		return err
	})
}

// flood has all callers change work orders for a while, and waits until every
// change has arrived at every address.
func (in *installation) flood(ctx context.Context, addresses int, load time.Duration) (flood, error) {
	taking := in.receiver.take()
	before := in.usage()
	f := flood{first: time.Now()}
	var err error
	f.changes, err = in.erp.flood(ctx, callers, patchOne, time.Now().Add(load))
	if err != nil {
		return f, err
	}
	f.answered = time.Now()
	f.deliveries = f.changes * addresses
	if err := taking.await(ctx, f.deliveries); err != nil {
		return f, err
	}
	f.began, f.ended = taking.span()
	f.used = in.usage().since(before)
	return f, nil
}
