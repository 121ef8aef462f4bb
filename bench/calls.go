package main

import (
	"context"
	"fmt"
	"slices"
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
	// manyCallers says that the call is also measured with that many.
	manyCallers bool
}

func (call measuredCall) selector() string { return call.name }

var measuredCalls = []measuredCall{
	{readOne, "baseline: read, bare Gin and one pgx read", "", 0.6, true},
	{listPage, "baseline: list page of 50, bare Gin and one pgx read", "", 0, false},
	{patchOne, "baseline: change, bare Gin and its transaction", baselineChange, 0, false},
	{createOne, "baseline: create, bare Gin and its transaction", "baseline: create, raw transaction of its rows", 0.5, true},
}

// benchCalls measures single calls and their baselines.
func benchCalls(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "calls")
	if err != nil {
		return err
	}
	defer in.close()
	subscription := changeSubscription(1)
	subscription.events = "work_order.created, work_order.updated"
	if err := in.subscribe(ctx, subscription); err != nil {
		return err
	}
	if err := in.measureIdle(ctx, r); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, benchWorkOrders); err != nil {
		return err
	}
	f, err := newBaselines(ctx, in)
	if err != nil {
		return err
	}
	defer in.stopBaselines(f)
	// Otherwise the workflows of the new work orders would start during the first
	// calls.
	if err := phase(ctx, "starts of workflows", 5*time.Minute, in.awaitIdle); err != nil {
		return err
	}
	peak := in.watchMemory(ctx)
	for _, call := range measuredCalls {
		if !selected(o.calls, call) {
			continue
		}
		err := phase(ctx, call.name, 10*load+10*time.Minute, func(ctx context.Context) error { return in.benchCall(ctx, r, f, call, load) })
		if err != nil {
			return err
		}
	}
	if o.calls == "" {
		err = phase(ctx, "create with a worker", 10*load+10*time.Minute, func(ctx context.Context) error { return in.benchCreateWithWorker(ctx, r, load) })
	}
	peak().report(r, "peak under load")
	if err != nil {
		return err
	}
	in.memories(ctx).report(r, "after the load")
	return nil
}

// measureIdle starts api and worker, measures their memory while they are idle, and
// stops the worker.
func (in *installation) measureIdle(ctx context.Context, r *report) error {
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.awaitIdle(ctx); err != nil {
		return err
	}
	in.memories(ctx).report(r, "at rest")
	return in.stopWorker()
}

// rounds is how often baseline and product alternate, so that other load on the
// machine affects both.
const rounds = 3

// rates are the calls per second of each round, and their total number and cost.
type rates struct {
	rounds []float64
	calls  int
	used   usage
}

func (r *rates) add(n int, started time.Time, used usage) {
	r.rounds = append(r.rounds, perSecond(n, started, time.Now()))
	r.calls += n
	r.used = r.used.plus(used)
}

// flood adds a round in which a tenant's clients make the call as often as they can.
func (in *installation) flood(ctx context.Context, to *rates, t *tenant, clients int, op operation, roundTime time.Duration) error {
	before, started := in.usage(), time.Now()
	n, err := t.flood(ctx, clients, op, started.Add(roundTime))
	to.add(n, started, in.usage().since(before))
	return err
}

// benchCall measures the calls per second, alternating with the baselines, and the
// latency of a call alone and at half that rate.
func (in *installation) benchCall(ctx context.Context, r *report, f *baselines, call measuredCall, load time.Duration) error {
	roundTime := load / 2 / rounds
	var ours, overHTTP, raw, oursCrowded, crowded rates
	flood := func(to *rates, t *tenant, clients int, roundTime time.Duration) error {
		return in.flood(ctx, to, t, clients, call.operation, roundTime)
	}
	for round := range rounds {
		if round == 0 {
			var warm rates // opens connections and makes plans
			if err := flood(&warm, f.tenant, manyCallers, roundTime/2); err != nil {
				return err
			}
			if err := flood(&warm, in.erp, manyCallers, roundTime/2); err != nil {
				return err
			}
			if err := in.vacuum(ctx, f); err != nil {
				return err
			}
		}
		if call.raw != "" {
			// Otherwise starting the workflows of the last round would slow the baseline
			// down.
			if err := in.awaitIdle(ctx); err != nil {
				return err
			}
			before, started := in.usage(), time.Now()
			rate, err := sideBySide(ctx, roundTime, f.raw(call.operation))
			if err != nil {
				return err
			}
			raw.add(int(rate*time.Since(started).Seconds()), started, in.usage().since(before))
		}
		if err := flood(&overHTTP, f.tenant, callers, roundTime); err != nil {
			return err
		}
		if call.manyCallers {
			if err := flood(&crowded, f.tenant, manyCallers, roundTime); err != nil {
				return err
			}
		}
		if err := flood(&ours, in.erp, callers, roundTime); err != nil {
			return err
		}
		if call.manyCallers {
			if err := flood(&oursCrowded, in.erp, manyCallers, roundTime); err != nil {
				return err
			}
		}
	}
	call.report(r, ours, overHTTP, raw)
	if call.manyCallers {
		call.reportManyCallers(r, oursCrowded, crowded)
	}
	if err := in.profiled(ctx, call.name, func() error { return flood(&rates{}, in.erp, callers, profileFor+time.Second) }); err != nil {
		return err
	}
	return in.benchCallLatency(ctx, r, f, call.operation, median(ours.rounds)/2, load)
}

// vacuum leaves the tables as autovacuum keeps them: the plans depend on their
// statistics.
func (in *installation) vacuum(ctx context.Context, f *baselines) error {
	if _, err := in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	_, err := f.rows.pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

func (call measuredCall) report(r *report, ours, overHTTP, raw rates) {
	r.add(call.http, median(overHTTP.rounds), "/s")
	overHTTP.used.report(r, call.http, overHTTP.calls)
	if call.raw == "" {
		f := r.compareRounds(call.name, ours.rounds, overHTTP.rounds, "/s", call.http)
		f.Aim = call.aim
	} else {
		r.add(call.raw, median(raw.rounds), "/s")
		raw.used.report(r, call.raw, raw.calls)
		f := r.compareRounds(call.name, ours.rounds, raw.rounds, "/s", call.raw)
		f.Aim = call.aim
		r.compareRounds(call.name+" (same figure)", ours.rounds, overHTTP.rounds, "/s", call.http)
	}
	ours.used.report(r, call.name, ours.calls)
}

// reportManyCallers reports the peak rate.
func (call measuredCall) reportManyCallers(r *report, ours, overHTTP rates) {
	with := fmt.Sprintf(", %d callers", manyCallers)
	r.add(call.http+with, median(overHTTP.rounds), "/s")
	r.compareRounds(call.name+with, ours.rounds, overHTTP.rounds, "/s", call.http+with)
	ours.used.report(r, call.name+with, ours.calls)
}

// compareRounds adds the median value with the median ratio to a baseline that
// alternated with it.
func (r *report) compareRounds(name string, values, baseline []float64, unit, to string) *figure {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = ratio(values[i], baseline[i])
	}
	f := r.add(name, median(values), unit)
	f.To, f.Ratio, f.Low, f.High = to, median(ratios), slices.Min(ratios), slices.Max(ratios)
	return f
}

func (in *installation) benchCallLatency(ctx context.Context, r *report, f *baselines, op operation, half float64, load time.Duration) error {
	n := max(20, int(30*load.Seconds()))
	baseline, err := f.tenant.alone(ctx, op, n)
	if err != nil {
		return err
	}
	baseline.report(r, "baseline: "+op.name+" over HTTP, alone")
	alone, err := in.erp.alone(ctx, op, n)
	if err != nil {
		return err
	}
	alone.report(r, op.name+": alone")
	busy, err := in.erp.busy(ctx, op, half, load/2)
	busy.report(r, fmt.Sprintf("%s: at half load (%.0f/s)", op.name, half))
	return err
}

// benchCreateWithWorker measures creations while a worker starts their workflows,
// which costs what Temporal costs.
func (in *installation) benchCreateWithWorker(ctx context.Context, r *report, load time.Duration) error {
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if _, err := in.erp.flood(ctx, callers, createOne, time.Now().Add(load/10)); err != nil {
		return err
	}
	before, started := in.usage(), time.Now()
	n, err := in.erp.flood(ctx, callers, createOne, started.Add(load/2))
	if err != nil {
		return err
	}
	rate := perSecond(n, started, time.Now())
	r.compare("create, with a worker", rate, "/s", "create")
	in.usage().since(before).report(r, "create, with a worker", n)
	busy, err := in.erp.busy(ctx, createOne, rate/2, load/2)
	busy.report(r, fmt.Sprintf("create, with a worker: at half load (%.0f/s)", rate/2))
	return err
}
