package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// floorChange is named apart, since deliveries are compared with it too.
const floorChange = "floor: change, raw transaction of its rows"

// measuredCall is an operation with its floors and what is asked of it.
type measuredCall struct {
	operation
	// http is the floor that answers it over HTTP; raw is the bare transaction, "" for what writes nothing.
	http, raw string
	aim       float64
	others    []other
}

func (call measuredCall) chosenAs() string { return call.name }

var measuredCalls = []measuredCall{
	{readOne, "floor: read, bare Gin and one pgx read", "", 0.6, []other{{Name: "PocketBase", Value: 6660}}},
	{listPage, "floor: list page of 50, bare Gin and one pgx read", "", 0, nil},
	{patchOne, "floor: change, bare Gin and its transaction", floorChange, 0, nil},
	{createOne, "floor: create, bare Gin and its transaction", "floor: create, raw transaction of its rows", 0.5, []other{{Name: "PocketBase", Value: 3260}}},
}

// benchCalls measures single calls, each beside its floors.
func benchCalls(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "calls")
	if err != nil {
		return err
	}
	defer in.close()
	told := changesTold(1)
	told.events = "work_order.created, work_order.updated"
	if err := in.subscribe(ctx, told); err != nil {
		return err
	}
	if err := in.rest(ctx, r); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, workOrdersOfBench); err != nil {
		return err
	}
	f, err := newFloors(ctx, in)
	if err != nil {
		return err
	}
	defer in.stopFloors(f)
	// The workflows of what was just created are started beside the first calls otherwise.
	if err := phase(ctx, "starts of workflows", 5*time.Minute, in.settle); err != nil {
		return err
	}
	peak := in.watchMemory(ctx)
	for _, call := range measuredCalls {
		if !chosen(o.calls, call) {
			continue
		}
		err := phase(ctx, call.name, 10*load+time.Minute, func(ctx context.Context) error { return in.benchCall(ctx, r, f, call, load) })
		if err != nil {
			return err
		}
	}
	if o.calls == "" {
		err = phase(ctx, "create beside the worker", 10*load+time.Minute, func(ctx context.Context) error { return in.benchCreateBesideWorker(ctx, r, load) })
	}
	peak().report(r, "most under load")
	if err != nil {
		return err
	}
	in.memories(ctx).report(r, "after the load")
	return nil
}

// rest starts api and worker, measures what they hold with nothing to do, and stops the worker.
func (in *installation) rest(ctx context.Context, r *report) error {
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.settle(ctx); err != nil {
		return err
	}
	in.memories(ctx).report(r, "at rest")
	return in.stopWorker()
}

// rounds is how often floor and product take turns: what else the machine does
// meanwhile strikes both.
const rounds = 3

// rates are how often something was done a second, in each round, and what it cost.
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

// benchCall measures how many calls there are a second, in turn with the
// floors', and how long a call takes alone and at half that rate.
func (in *installation) benchCall(ctx context.Context, r *report, f *floors, call measuredCall, load time.Duration) error {
	turn := load / 2 / rounds
	var ours, overHTTP, raw, oursCrowded, crowded rates
	flood := func(to *rates, t *tenant, clients int, turn time.Duration) error {
		before, started := in.usage(), time.Now()
		n, err := t.flood(ctx, clients, call.operation, started.Add(turn))
		to.add(n, started, in.usage().since(before))
		return err
	}
	for round := range rounds {
		if round == 0 {
			var warm rates // connections are opened, plans are made
			if err := flood(&warm, f.tenant, crowd, turn/2); err != nil {
				return err
			}
			if err := flood(&warm, in.erp, crowd, turn/2); err != nil {
				return err
			}
			if err := in.vacuum(ctx, f); err != nil {
				return err
			}
		}
		if call.raw != "" {
			// What the last turn created has its workflow, or the floors would bear it.
			if err := in.settle(ctx); err != nil {
				return err
			}
			before, started := in.usage(), time.Now()
			rate, err := sideBySide(ctx, turn, f.raw(call.operation))
			if err != nil {
				return err
			}
			raw.add(int(rate*time.Since(started).Seconds()), started, in.usage().since(before))
		}
		if err := flood(&overHTTP, f.tenant, callers, turn); err != nil {
			return err
		}
		if call.others != nil {
			if err := flood(&crowded, f.tenant, crowd, turn); err != nil {
				return err
			}
		}
		if err := flood(&ours, in.erp, callers, turn); err != nil {
			return err
		}
		if call.others != nil {
			if err := flood(&oursCrowded, in.erp, crowd, turn); err != nil {
				return err
			}
		}
	}
	call.report(r, ours, overHTTP, raw)
	if call.others != nil {
		call.reportCrowd(r, oursCrowded, crowded)
	}
	if err := in.profiled(ctx, call.name, func() error { return flood(&rates{}, in.erp, callers, profileFor+time.Second) }); err != nil {
		return err
	}
	return in.benchCallLatency(ctx, r, f, call.operation, median(ours.rounds)/2, load)
}

// vacuum leaves the tables as autovacuum keeps them: statements are planned for what is in them.
func (in *installation) vacuum(ctx context.Context, f *floors) error {
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
		f := r.compareRounds(call.name, ours.rounds, overHTTP.rounds, call.http)
		f.Aim = call.aim
	} else {
		r.add(call.raw, median(raw.rounds), "/s")
		raw.used.report(r, call.raw, raw.calls)
		f := r.compareRounds(call.name, ours.rounds, raw.rounds, call.raw)
		f.Aim = call.aim
		r.compareRounds(call.name+" (the same figure)", ours.rounds, overHTTP.rounds, call.http)
	}
	ours.used.report(r, call.name, ours.calls)
}

// reportCrowd compares what goes through at the most with others, who said nothing of their callers.
func (call measuredCall) reportCrowd(r *report, ours, overHTTP rates) {
	with := fmt.Sprintf(", %d callers", crowd)
	r.add(call.http+with, median(overHTTP.rounds), "/s")
	r.compareRounds(call.name+with, ours.rounds, overHTTP.rounds, call.http+with).scale(call.others...)
	ours.used.report(r, call.name+with, ours.calls)
}

// compareRounds adds the median rate with the median ratio to a floor that took turns with it.
func (r *report) compareRounds(name string, values, floor []float64, to string) *figure {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = ratio(values[i], floor[i])
	}
	f := r.add(name, median(values), "/s")
	f.To, f.Ratio, f.Low, f.High = to, median(ratios), slices.Min(ratios), slices.Max(ratios)
	return f
}

func (in *installation) benchCallLatency(ctx context.Context, r *report, f *floors, op operation, half float64, load time.Duration) error {
	n := max(20, int(30*load.Seconds()))
	floor, err := f.tenant.alone(ctx, op, n)
	if err != nil {
		return err
	}
	floor.report(r, "floor: "+op.name+" over HTTP, alone")
	alone, err := in.erp.alone(ctx, op, n)
	if err != nil {
		return err
	}
	alone.report(r, op.name+": alone")
	busy, err := in.erp.busy(ctx, op, half, load/2)
	busy.report(r, fmt.Sprintf("%s: at half load (%.0f/s)", op.name, half))
	return err
}

// benchCreateBesideWorker measures creations while a worker takes them up, which costs what Temporal costs.
func (in *installation) benchCreateBesideWorker(ctx context.Context, r *report, load time.Duration) error {
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
	r.compare("create, beside a worker", rate, "/s", "create")
	in.usage().since(before).report(r, "create, beside a worker", n)
	busy, err := in.erp.busy(ctx, createOne, rate/2, load/2)
	busy.report(r, fmt.Sprintf("create, beside a worker: at half load (%.0f/s)", rate/2))
	return err
}
