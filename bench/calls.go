package main

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// rawBaseline names the transaction of a call without HTTP. Deliveries are compared with that of changes
// too.
func rawBaseline(of operation) string {
	return "baseline: " + of.name + ", raw transaction of its rows"
}

// measuredCalls have baselines over HTTP, and writes have a raw transaction, too. clients are the numbers
// of callers.
var measuredCalls = []struct {
	operation
	raw     bool
	clients []int
}{
	{readOne, false, []int{callers, manyCallers}},
	{listPage, false, []int{callers}},
	{patchOne, true, []int{callers}},
	{createOne, true, []int{callers, manyCallers}},
}

// benchCalls measures single calls and their baselines, while a worker does what follows from them.
func benchCalls(b *bench) {
	in := b.install("calls")
	defer in.close()
	in.subscribe(creationsToo())
	in.startAPI()
	in.startWorker()
	in.awaitIdle(time.Hour, "worker", "temporal")
	in.addMemory("at rest", func(s procfs.ProcStatus) uint64 { return s.VmRSS })
	in.erp.createWorkOrders(benchWorkOrders)
	f := in.startBaselines("calls_baselines")
	in.awaitWorkflows() // otherwise they would start during the first calls
	for _, call := range measuredCalls {
		if named(b.options.calls, call.name) {
			in.benchCall(f, call.operation, call.raw, call.clients)
		}
	}
	in.addMemory("peak", func(s procfs.ProcStatus) uint64 { return s.VmHWM })
}

// creationsToo is an address that gets changes and creations.
func creationsToo() organization {
	s := changeSubscription(1)
	s.Events = "work_order.created, work_order.updated"
	return s
}

// benchCall measures the calls per second, alternating with the baselines, and the
// latency of a call alone and at half that rate.
func (in *installation) benchCall(f baselines, op operation, raw bool, clients []int) {
	length := in.load / 2 / rounds
	in.flood(f.tenant, manyCallers, op, length/2) // opens connections and makes plans
	in.flood(in.erp, manyCallers, op, length/2)
	// Leaves the tables as autovacuum keeps them: the plans depend on their statistics.
	in.exec(`VACUUM ANALYZE`)
	must(f.pool.Exec(in.ctx, `VACUUM ANALYZE`))
	var rates []float64
	for _, n := range clients {
		with := fmt.Sprintf(", %d callers", n)
		rates = append(rates, in.alternate(op.name+with, "baseline: "+op.name+" over HTTP"+with,
			func() measured { return in.flood(in.erp, n, op, length) },
			func() measured {
				// Otherwise starting the workflows of the last round would slow the baseline down.
				in.awaitIdle(time.Hour, "worker", "temporal")
				return in.flood(f.tenant, n, op, length)
			}))
	}
	if raw {
		in.alternate(op.name+", next to raw", rawBaseline(op),
			func() measured { return in.flood(in.erp, callers, op, length) },
			func() measured {
				in.awaitIdle(time.Hour, "worker", "temporal")
				return in.sideBySide(length, f.raw(op))
			})
	}
	in.profiled(op.name, func() { in.flood(in.erp, callers, op, profileFor+time.Second) })
	times := max(20, int(30*in.load.Seconds()))
	baseline := "baseline: " + op.name + " over HTTP, alone"
	in.awaitWorkflows()
	in.addWaits(baseline, f.tenant.alone(op, times), "")
	in.addWaits(op.name+": alone", in.erp.alone(op, times), baseline)
	in.awaitWorkflows()
	half := rates[0] / 2
	in.addWaits(fmt.Sprintf("%s: at half load (%.0f/s)", op.name, half), in.erp.busy(op, half, in.load/2, 0), "")
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
	in.startWith(creationsToo())
	in.startWorker()
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
