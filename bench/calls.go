package main

import (
	"fmt"
	"time"
)

// baselineChange has a constant because deliveries are compared with it too.
const baselineChange = "baseline: change, raw transaction of its rows"

// measuredCall is an operation with its baselines and its aim.
type measuredCall struct {
	operation
	// http is the baseline over HTTP; raw is the bare transaction, "" for reads.
	http, raw string
	aim       float64
	// manyCallers makes the bench measure the call with that many, too.
	manyCallers bool
}

var measuredCalls = []measuredCall{
	{readOne, "baseline: read, bare Gin and one pgx read", "", 0.6, true},
	{listPage, "baseline: list page of 50, bare Gin and one pgx read", "", 0, false},
	{patchOne, "baseline: change, bare Gin and its transaction", baselineChange, 0, false},
	{createOne, "baseline: create, bare Gin and its transaction", "baseline: create, raw transaction of its rows", 0.5, true},
}

// benchCalls measures single calls and their baselines, while a worker does what follows from them.
func benchCalls(b *bench) {
	in := b.install("calls")
	subscription := changeSubscription(1)
	subscription.events = []string{"work_order.created", "work_order.updated"}
	in.subscribe(subscription)
	in.startAPI()
	in.startWorker(nil)
	in.awaitIdle()
	in.memories(in.ctx).report(in.report, "at rest")
	check(in.erp.createWorkOrders(in.ctx, benchWorkOrders))
	f := in.startBaselines()
	// Otherwise the workflows of the new work orders would start during the first
	// calls.
	in.begin("starts of workflows")
	in.awaitIdle()
	peak := in.watchMemory()
	for _, call := range measuredCalls {
		if selected(b.options.calls, call.name) {
			in.benchCall(f, call)
		}
	}
	peak().report(in.report, "peak under load")
	in.memories(in.ctx).report(in.report, "after the load")
}

// benchCall measures the calls per second, alternating with the baselines, and the
// latency of a call alone and at half that rate.
func (in *installation) benchCall(f *baselines, call measuredCall) {
	in.begin(call.name)
	length := in.load / 2 / rounds
	flood := func(t *tenant, clients int) measured { return in.flood(t, clients, call.operation, length) }
	in.flood(f.tenant, manyCallers, call.operation, length/2) // opens connections and makes plans
	in.flood(in.erp, manyCallers, call.operation, length/2)
	// Leaves the tables as autovacuum keeps them: the plans depend on their statistics.
	in.exec(`VACUUM ANALYZE`)
	must(f.rows.pool.Exec(in.ctx, `VACUUM ANALYZE`))
	var ours, overHTTP, raw, oursCrowded, crowded series
	for range rounds {
		if call.raw != "" {
			// Otherwise starting the workflows of the last round would slow the baseline
			// down.
			in.awaitIdle()
			raw = append(raw, in.measure(func() int { return must(sideBySide(in.ctx, length, f.raw(call.operation))) }))
		}
		overHTTP = append(overHTTP, flood(f.tenant, callers))
		if call.manyCallers {
			crowded = append(crowded, flood(f.tenant, manyCallers))
		}
		ours = append(ours, flood(in.erp, callers))
		if call.manyCallers {
			oursCrowded = append(oursCrowded, flood(in.erp, manyCallers))
		}
	}
	in.addSeries(call.http, overHTTP)
	if call.raw == "" {
		in.compareSeries(call.name, ours, overHTTP, call.http).Aim = call.aim
	} else {
		in.addSeries(call.raw, raw)
		in.compareSeries(call.name, ours, raw, call.raw).Aim = call.aim
		in.compareSeries(call.name+" (same figure)", ours, overHTTP, call.http)
	}
	ours.cpu(in.report, call.name)
	if call.manyCallers {
		with := fmt.Sprintf(", %d callers", manyCallers)
		in.add(call.http+with, median(crowded.rates()), "/s")
		in.compareSeries(call.name+with, oursCrowded, crowded, call.http+with)
		oursCrowded.cpu(in.report, call.name+with)
	}
	in.profiled(call.name, func() { must(in.erp.flood(in.ctx, callers, call.operation, profileFor+time.Second)) })
	n, half := max(20, int(30*in.load.Seconds())), median(ours.rates())/2
	must(f.tenant.alone(in.ctx, call.operation, n)).report(in.report, "baseline: "+call.name+" over HTTP, alone")
	must(in.erp.alone(in.ctx, call.operation, n)).report(in.report, call.name+": alone")
	must(in.erp.busy(in.ctx, call.operation, half, in.load/2)).report(in.report, fmt.Sprintf("%s: at half load (%.0f/s)", call.name, half))
}

// flood runs clients of a tenant that make the call for the given time.
func (in *installation) flood(t *tenant, clients int, op operation, load time.Duration) measured {
	return in.measure(func() int { return must(t.flood(in.ctx, clients, op, load)) })
}
