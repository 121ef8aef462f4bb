package main

import (
	"fmt"
	"time"

	"millwright/workflows"
)

// manyAddresses is the number of addresses that an integration may have.
const manyAddresses = 5

// benchDeliveries measures changes from the call to the receivers. Each load lasts
// about the given time.
func benchDeliveries(b *bench) {
	in := b.install("deliveries")
	in.startWith(changeSubscription(1))
	in.benchDrainOfTable()
	in.begin(baselineChange)
	f := in.startBaselines()
	in.add(baselineChange, in.measure(func() int { return must(sideBySide(in.ctx, in.load/2, f.raw(patchOne))) }).rate(), "/s")
	f.close()
	in.benchBareWorkflows()
	in.begin("workflows of new work orders")
	started := time.Now()
	in.startWorker(nil)
	in.awaitDirtyRecords()
	in.compare("workflows of new work orders started", perSecond(benchWorkOrders, started, time.Now()), "/s", baselineWorkflows)
	in.awaitIdle()
	rate := in.benchChanges(1)
	in.benchLatencies(rate / 2)
	in.benchDrain()
	in.subscribe(changeSubscription(manyAddresses))
	in.benchChanges(manyAddresses)
}

// awaitDirtyRecords waits until no record is dirty.
func (in *installation) awaitDirtyRecords() {
	in.await(10*time.Millisecond, func() bool { return in.dirtyRecords() == 0 })
}

// dirtyRecords returns how many records their workflows have not loaded.
func (in *installation) dirtyRecords() (n int) {
	check(in.pool.QueryRow(in.ctx, `SELECT count(*) FROM dirty_records`).Scan(&n))
	return n
}

// awaitWorkflowsIdle waits until no record is dirty, and worker and Temporal are
// idle.
func (in *installation) awaitWorkflowsIdle() {
	in.begin("workflows of new work orders")
	in.awaitDirtyRecords()
	in.awaitIdle()
}

// awaitIdle waits until worker and Temporal use less than a tenth of a CPU.
// Without /proc it does not wait.
func (in *installation) awaitIdle() { in.await(idleReading, in.idle("worker", "temporal")) }

// idleReading is the time between two calls of idle's function.
const idleReading = time.Second

// idle returns a function that reports whether the parts have used less than a tenth of
// a CPU since its previous call. Without /proc they are always idle.
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

// benchChanges measures the peak rate of changes and returns it, in changes per
// second.
func (in *installation) benchChanges(addresses int) float64 {
	in.begin(fmt.Sprintf("changes for %d addresses", addresses))
	changes := in.changes(addresses)
	// Warms up: opens connections, wakes the address workflows, and leaves the
	// tables as autovacuum keeps them.
	changes.flood(in.load / 5)
	in.exec(`VACUUM ANALYZE`)
	changes.flood(in.load / 5)
	f := changes.flood(in.load)
	what := "changes, 1 address"
	if addresses > 1 {
		what = fmt.Sprintf("changes, %d addresses", addresses)
	}
	in.compare(what+": accepted", f.accepted(), "/s", baselineChange)
	in.compare(what+": deliveries arrived", f.arrived(), "/s", baselineDrain)
	in.compare(what+": from first call to last delivery", f.through(), "/s", baselineChange)
	f.used.report(in.report, what, f.changes)
	in.profiled(what, func() { changes.flood(profileFor + time.Second) })
	return f.through()
}

// benchLatencies measures the time from a change to its receiver: without other load,
// while the address workflow sleeps, and at the given rate.
func (in *installation) benchLatencies(rate float64) {
	changes, times := in.changes(1), max(3, int(in.load.Seconds()))
	in.begin("latency when idle")
	changes.oneByOne(20*times, in.pause).report(in.report, "latency, idle")
	in.begin("latency when asleep")
	in.stopWorker()
	in.startWorker(map[string]string{"WEBHOOK_IDLE_TIMEOUT": "100ms"}) // goes to sleep sooner; waking is the same
	changes.oneByOne(times, in.awaitAddressIdle).report(in.report, "latency, address workflow asleep")
	in.stopWorker()
	in.startWorker(nil)
	in.awaitIdle()
	in.begin("latency when busy")
	changes.paced(rate, in.load/5) // wakes the address workflow
	changes.paced(rate, in.load).report(in.report, fmt.Sprintf("latency, busy (%.0f changes/s)", rate))
}

// pause waits for 50 to 100 ms, in steps that do not coincide with a poller's
// interval.
func (in *installation) pause() {
	const shortest, step, steps = 50 * time.Millisecond, 3700 * time.Microsecond, 13
	check(after(in.ctx, time.Now().Add(shortest+time.Duration(in.erp.calls.Load()%steps)*step)))
}

// awaitAddressIdle waits until the first address's workflow is asleep: it has no dispatch
// and nothing to do.
func (in *installation) awaitAddressIdle() {
	in.await(20*time.Millisecond, func() bool {
		is := must(in.temporal.DescribeWorkflowExecution(in.ctx, workflows.WebhookAddressID(in.webhookID), ""))
		return len(is.GetPendingActivities()) == 0 && is.GetPendingWorkflowTask() == nil
	})
}

// benchDrain measures how fast the API accepts changes without a worker, and how fast
// a new worker then delivers them to one address.
func (in *installation) benchDrain() {
	in.begin("drain")
	pending := int(2000 * in.load.Seconds())
	in.stopWorker()
	log := in.receiver.newLog()
	writing := in.measure(func() int {
		in.patchTimes(in.erp, callers, pending)
		return pending
	})
	in.compare("changes, no worker: accepted", writing.rate(), "/s", baselineChange)
	writing.cpu(in.report, "changes, no worker")
	var first, last time.Time
	started := time.Now()
	draining := in.measure(func() int {
		in.startWorker(nil)
		first, last = log.await(in.ctx, pending)
		return pending
	})
	in.add("drain: start of a worker to the first delivery", milliseconds(first.Sub(started)), "ms")
	in.compare(fmt.Sprintf("drain: %d pending deliveries arrived", pending), perSecond(pending, first, last), "/s", baselineDrain).Aim = 0.5
	draining.cpu(in.report, "drain")
}

// patchTimes makes a number of changes of the tenant's work orders.
func (in *installation) patchTimes(t *tenant, clients, times int) {
	check(t.times(in.ctx, clients, times, func(c *caller) error { return patchOne.call(t, c) }))
}
