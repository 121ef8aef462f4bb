package main

import (
	"context"
	"fmt"
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
	for _, p := range []float64{50, 95, 99} {
		r.add(fmt.Sprintf("%s, p%.0f", what, p), milliseconds(w.percentile(p)), "ms")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func perSecond(n int, from, to time.Time) float64 { return float64(n) / to.Sub(from).Seconds() }

// pacer hands out calls to concurrent callers, at a constant rate, whether or not earlier ones
// have ended.
type pacer struct {
	first     time.Time
	rate      float64
	calls     int64
	requested atomic.Int64
}

// newPacer returns a pacer of the calls that are due at the rate within the time from
// now.
func newPacer(rate float64, load time.Duration) *pacer {
	return &pacer{first: time.Now(), rate: rate, calls: int64(rate * load.Seconds())}
}

// due returns when the n-th call is due, counted from 0.
func (p *pacer) due(n int64) time.Time {
	return p.first.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
}

// next waits until the next call is due. It returns from when it counts, and false after
// the last one.
func (p *pacer) next(ctx context.Context) (from time.Time, more bool, err error) {
	n, free := p.requested.Add(1)-1, time.Now()
	if n >= p.calls {
		return from, false, nil
	}
	due := p.due(n)
	if err := after(ctx, due); err != nil {
		return from, false, err
	}
	return startOfCall(due, free, time.Now()), true, nil
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
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
