package main

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// waits are the durations of calls.
type waits []time.Duration

// percentile returns the time within which p percent of the calls ended (nearest
// rank), 0 without calls.
func (w waits) percentile(p float64) time.Duration {
	if len(w) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(w))))-1)]
}

// report adds the percentiles.
func (w waits) report(r *report, what string) {
	for _, p := range []struct {
		name string
		of   float64
	}{{"p50", 50}, {"p95", 95}, {"p99", 99}} {
		r.add(what+", "+p.name, milliseconds(w.percentile(p.of)), "ms")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perSecond(n int, from, to time.Time) float64 { return float64(n) / to.Sub(from).Seconds() }

// schedule is when calls are due at a constant rate, whether or not earlier ones have
// ended.
type schedule struct {
	first time.Time
	rate  float64
}

// due returns when the n-th call is due, counted from 0.
func (s schedule) due(n int64) time.Time {
	return s.first.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
}

// total returns how many calls are due within the time.
func (s schedule) total(load time.Duration) int64 { return int64(s.rate * load.Seconds()) }

// pacer hands out the calls of a schedule to concurrent callers.
type pacer struct {
	schedule
	calls     int64
	requested atomic.Int64
}

// newPacer returns a pacer of the calls that are due at the rate within the time from
// now.
func newPacer(rate float64, load time.Duration) *pacer {
	plan := schedule{time.Now(), rate}
	return &pacer{schedule: plan, calls: plan.total(load)}
}

// next waits until the next call is due. It returns when it was due and from when it
// counts, and false after the last one.
func (p *pacer) next(ctx context.Context) (due, from time.Time, more bool, err error) {
	n, free := p.requested.Add(1)-1, time.Now()
	if n >= p.calls {
		return due, from, false, nil
	}
	due = p.due(n)
	if err := after(ctx, due); err != nil {
		return due, from, false, err
	}
	return due, startOfCall(due, free, time.Now()), true, nil
}

// startOfCall returns the time from which a call counts. A call that waited for a
// free caller counts from when it was due; otherwise a slow server would get fewer
// calls and look better. If a caller was free, its timer may fire a millisecond late,
// which is not the server's fault, so the call counts from when it was sent.
func startOfCall(due, free, sent time.Time) time.Time {
	if free.After(due) {
		return due
	}
	return sent
}

// median returns the median, 0 without values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
