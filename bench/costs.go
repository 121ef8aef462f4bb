package main

import "time"

// benchCosts measures what calls cost with all that follows from them: the delivery to an address,
// the workflows, the notice of the person who is assigned.
func benchCosts(b *bench) {
	in := b.install("costs")
	in.startWith(changeSubscription(1))
	in.startWorker(nil)
	in.benchCost("change, 100 a second", patchOne, 100)
	in.benchCost("creation, 50 a second", createOne, 50)
}

// benchCost measures the CPU time of calls at a rate that leaves CPUs free, with all that follows from
// them, and without what the servers use at rest.
func (in *installation) benchCost(what string, op operation, rate float64) {
	in.begin(what)
	in.measureAboveRest(func() int {
		n := len(must(in.erp.busy(in.ctx, op, rate, in.load)))
		in.awaitWorkflowsIdle()
		return n
	}).cpu(in.report, what)
}

// measureAboveRest is measure without the CPU time that the servers use at rest.
func (in *installation) measureAboveRest(load func() int) measured {
	in.awaitWorkflowsIdle()
	rest := in.measure(func() int { check(after(in.ctx, time.Now().Add(in.load))); return 0 })
	made := in.measure(load)
	for part, used := range rest.used {
		made.used[part] = max(0, made.used[part]-time.Duration(float64(used)*made.took.Seconds()/rest.took.Seconds()))
	}
	return made
}
