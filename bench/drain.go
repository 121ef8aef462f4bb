package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// benchDrain measures what is pending for one address when a worker starts: how
// fast the API takes changes while none runs, and how fast they arrive then.
func (in *installation) benchDrain(ctx context.Context, r *report, load time.Duration) error {
	pending := int64(2000 * load.Seconds())
	var accepted, arrived, wait float64
	var writing, draining usage
	err := phase(ctx, "drain", 20*load+2*time.Minute, func(ctx context.Context) error {
		if err := in.stopWorker(); err != nil {
			return err
		}
		taking := in.receiver.take()
		var asked atomic.Int64
		before, called := in.usage(), time.Now()
		err := in.erp.call(ctx, callers, func() bool { return asked.Add(1) <= pending }, func(c *caller) error {
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
		if err := taking.await(ctx, int(pending)); err != nil {
			return err
		}
		first, last := taking.span()
		arrived, wait = perSecond(int(pending), first, last), milliseconds(first.Sub(started))
		draining = in.usage().since(before)
		return nil
	})
	if err != nil {
		return err
	}
	r.compare("changes, no worker: accepted", accepted, "/s", floorChange)
	writing.report(r, "changes, no worker", int(pending))
	r.add("drain: start of a worker to the first delivery", wait, "ms")
	r.compare(fmt.Sprintf("drain: %d pending deliveries arrived", pending), arrived, "/s", floorDrain).Aim = 0.5
	draining.report(r, "drain", int(pending))
	return nil
}
