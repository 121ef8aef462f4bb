package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// rounds is the number of times that what is compared alternates, so that other load on
	// the machine affects all of it.
	rounds = 3
	// stepLimit is the maximum duration of a step of a part.
	stepLimit = time.Hour
)

// bench is what a part measures with. A part is written like a Go benchmark: check and must
// end it at the first error, so that it reads as the list of what it does.
type bench struct {
	*report
	// ctx ends with the part, and fail ends both.
	ctx     context.Context
	fail    context.CancelCauseFunc
	options options
	// load is the duration of each load.
	load time.Duration
	// step is what the part does now; timer ends the part if that takes too long.
	step      string
	timer     *time.Timer
	installed *installation
}

// failure is what check panics with.
type failure struct{ error }

// check ends the part that runs if there is an error. Only the goroutine of the part may
// call it; others return their errors.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns the value, unless there is an error; see check.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt runs measure and returns the error that ended it early.
func attempt(measure func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	measure()
	return nil
}

// runPart measures a part, and closes its installation.
func runPart(ctx context.Context, r *report, o options, measure func(*bench)) error {
	b := &bench{report: r, options: o, load: time.Duration(o.seconds * float64(time.Second))}
	b.ctx, b.fail = context.WithCancelCause(ctx)
	defer b.fail(nil)
	b.timer = time.AfterFunc(stepLimit, func() { b.fail(fmt.Errorf("timed out after %s", stepLimit)) })
	defer b.timer.Stop()
	b.begin("prepare")
	err := attempt(func() { measure(b) })
	if err != nil {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		err = fmt.Errorf("%s: %w", b.step, err)
	}
	b.installed.close()
	return err
}

// begin names the part's next step, for its errors, and limits how long it takes.
func (b *bench) begin(step string) {
	b.step = step
	b.timer.Reset(stepLimit)
}

// await waits until the condition holds.
func (b *bench) await(every time.Duration, holds func() bool) {
	check(until(b.ctx, every, func() (bool, error) { return holds(), nil }))
}

// measured is what one load did: its operations, how long they took, and their CPU time.
type measured struct {
	n    int
	took time.Duration
	used usage
}

// measure runs a load, which returns the number of its operations.
func (in *installation) measure(load func() int) measured {
	before, started := in.usage(), time.Now()
	n := load()
	took := time.Since(started)
	return measured{n, took, in.usage().since(before)}
}

// rate returns the operations per second.
func (m measured) rate() float64 { return float64(m.n) / m.took.Seconds() }

// cpu adds the CPU time of the operations.
func (m measured) cpu(r *report, what string) { m.used.report(r, what, m.n) }

// series are rounds of the same load.
type series []measured

// cpu adds the CPU time of the operations of all rounds.
func (s series) cpu(r *report, what string) {
	n, used := 0, usage{}
	for _, m := range s {
		n, used = n+m.n, used.plus(m.used)
	}
	used.report(r, what, n)
}

// rates returns the operations per second of each round.
func (s series) rates() []float64 { return each(s, measured.rate) }

// each returns what of returns for each element.
func each[T, R any](all []T, of func(T) R) []R {
	results := make([]R, len(all))
	for n, one := range all {
		results[n] = of(one)
	}
	return results
}

// until polls until the condition holds or the context ends; then it returns the
// context's cause.
func until(ctx context.Context, every time.Duration, holds func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if held, err := holds(); held || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// after waits until the given time.
func after(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
