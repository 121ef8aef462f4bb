package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// benchDrain measures how fast the API accepts changes without a worker, and how fast
// a new worker then delivers them to one address.
func (in *installation) benchDrain(ctx context.Context, r *report, load time.Duration) error {
	pending := int64(2000 * load.Seconds())
	var accepted, arrived, wait float64
	var writing, draining usage
	err := phase(ctx, "drain", 20*load+2*time.Minute, func(ctx context.Context) error {
		if err := in.stopWorker(); err != nil {
			return err
		}
		log := in.receiver.newLog()
		var requested atomic.Int64
		before, called := in.usage(), time.Now()
		err := in.erp.call(ctx, callers, func() bool { return requested.Add(1) <= pending }, func(c *caller) error {
			_, err := in.erp.patch(c)
			return err
		})
		if err != nil {
			return err
		}
		accepted = perSecond(int(pending), called, time.Now())
		writing = in.usage().since(before)
		before = in.usage()
		started := time.Now()
		if err := in.startWorker(ctx, nil); err != nil {
			return err
		}
		if err := log.await(ctx, int(pending)); err != nil {
			return err
		}
		first, last := log.span()
		arrived, wait = perSecond(int(pending), first, last), milliseconds(first.Sub(started))
		draining = in.usage().since(before)
		return nil
	})
	if err != nil {
		return err
	}
	r.compare("changes, no worker: accepted", accepted, "/s", baselineChange)
	writing.report(r, "changes, no worker", int(pending))
	r.add("drain: start of a worker to the first delivery", wait, "ms")
	r.compare(fmt.Sprintf("drain: %d pending deliveries arrived", pending), arrived, "/s", baselineDrain).Aim = 0.5
	draining.report(r, "drain", int(pending))
	return nil
}
