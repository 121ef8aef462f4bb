package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// baselineChange has a constant because deliveries are compared with it too.
const baselineChange = "baseline: change, raw transaction of its rows"

// measuredCall is an operation with its baselines.
type measuredCall struct {
	operation
	// http is the baseline over HTTP; raw is the bare transaction, "" for reads.
	http, raw string
	// clients are the numbers of callers.
	clients []int
}

var measuredCalls = []measuredCall{
	{readOne, "baseline: read, bare Gin and one pgx read", "", []int{callers, manyCallers}},
	{listPage, "baseline: list page of 50, bare Gin and one pgx read", "", []int{callers}},
	{patchOne, "baseline: change, bare Gin and its transaction", baselineChange, []int{callers}},
	{createOne, "baseline: create, bare Gin and its transaction", "baseline: create, raw transaction of its rows", []int{callers, manyCallers}},
}

// benchCalls measures single calls and their baselines, while a worker does what follows from them.
func benchCalls(b *bench) {
	in := b.install("calls")
	defer in.close()
	subscription := changeSubscription(1)
	subscription.Events = "work_order.created, work_order.updated"
	in.subscribe(subscription)
	in.startAPI(nil)
	in.startWorker(nil)
	in.awaitIdle(time.Hour, "worker", "temporal")
	in.addMemory("at rest", func(s procfs.ProcStatus) uint64 { return s.VmRSS })
	in.erp.createWorkOrders(benchWorkOrders)
	f := in.startBaselines("calls_baselines")
	in.awaitWorkflows() // otherwise they would start during the first calls
	for _, call := range measuredCalls {
		if named(b.options.calls, call.name) {
			in.benchCall(f, call)
		}
	}
	in.addMemory("peak", func(s procfs.ProcStatus) uint64 { return s.VmHWM })
}

// benchCall measures the calls per second, alternating with the baselines, and the
// latency of a call alone and at half that rate.
func (in *installation) benchCall(f baselines, call measuredCall) {
	length := in.load / 2 / rounds
	in.flood(f.tenant, manyCallers, call.operation, length/2) // opens connections and makes plans
	in.flood(in.erp, manyCallers, call.operation, length/2)
	// Leaves the tables as autovacuum keeps them: the plans depend on their statistics.
	in.exec(`VACUUM ANALYZE`)
	must(f.pool.Exec(in.ctx, `VACUUM ANALYZE`))
	rate := 0.0
	for _, clients := range call.clients {
		with := fmt.Sprintf(", %d callers", clients)
		reached := in.alternate(call.name+with, call.http+with,
			func() measured { return in.flood(in.erp, clients, call.operation, length) },
			func() measured {
				// Otherwise starting the workflows of the last round would slow the baseline down.
				in.awaitIdle(time.Hour, "worker", "temporal")
				return in.flood(f.tenant, clients, call.operation, length)
			})
		if clients == callers {
			rate = reached
		}
	}
	if call.raw != "" {
		in.alternate(call.name+", next to raw", call.raw,
			func() measured { return in.flood(in.erp, callers, call.operation, length) },
			func() measured {
				in.awaitIdle(time.Hour, "worker", "temporal")
				return in.sideBySide(length, f.raw(call.operation))
			})
	}
	in.profiled(call.name, func() { in.flood(in.erp, callers, call.operation, profileFor+time.Second) })
	n := max(20, int(30*in.load.Seconds()))
	baseline := "baseline: " + call.name + " over HTTP, alone"
	in.addWaits(baseline, f.tenant.alone(call.operation, n), "")
	in.addWaits(call.name+": alone", in.erp.alone(call.operation, n), baseline)
	in.addWaits(fmt.Sprintf("%s: at half load (%.0f/s)", call.name, rate/2), in.erp.busy(call.operation, rate/2, in.load/2, 0), "")
}

// sideBySide runs do in 32 goroutines for the given time.
func (in *installation) sideBySide(load time.Duration, do func()) measured {
	return in.flood(&tenant{}, callers, operation{"", func(*tenant, *caller) error { do(); return nil }}, load)
}

// benchCosts measures what calls cost with all that follows from them: the delivery to an address,
// the workflows, the notice of the person who is assigned.
func benchCosts(b *bench) {
	in := b.install("costs")
	defer in.close()
	in.startWith(changeSubscription(1))
	in.startWorker(nil)
	in.benchCost("change, 100 a second", patchOne, 100)
	in.benchCost("creation, 50 a second", createOne, 50)
}

// benchCost measures the CPU time of calls at a rate that leaves CPUs free, without what the
// servers use at rest.
func (in *installation) benchCost(what string, op operation, rate float64) {
	in.awaitWorkflows()
	rest := in.measure(func() int { sleep(in.load); return 0 })
	made := in.measure(func() int {
		n := len(in.erp.busy(op, rate, in.load, 0))
		in.awaitWorkflows()
		return n
	})
	for process, used := range rest.used {
		made.used[process] = max(0, made.used[process]-used*made.took.Seconds()/rest.took.Seconds())
	}
	in.addCPU(what, made)
}

// awaitWorkflows waits until the workflows have loaded all records and rest.
func (in *installation) awaitWorkflows() {
	in.awaitDirtyRecords()
	in.awaitIdle(time.Hour, "worker", "temporal")
}
