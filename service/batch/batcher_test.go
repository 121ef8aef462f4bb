package batch

import (
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

type job struct {
	n    int
	keys []string
}

// Whatever arrives and is withdrawn: every other job is served once, in batches that
// keep their bounds and hold no two jobs with a common key.
func TestBatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxConcurrent, maxSize := rapid.IntRange(1, 3).Draw(t, "maxConcurrent"), rapid.IntRange(1, 5).Draw(t, "maxSize")
		jobs := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID), 0, 40).Draw(t, "jobs")
		withdrawals := rapid.SliceOfN(rapid.IntRange(0, 39), 0, 5).Draw(t, "withdrawals")

		var mu sync.Mutex
		var served []int
		running, peak := 0, 0
		var left sync.WaitGroup
		start := make(chan struct{})
		b := &batcher[job]{maxConcurrent: maxConcurrent, maxSize: maxSize, conflictKeys: func(j job) []string { return j.keys }}
		b.serve = func(batch []job) {
			<-start // jobs arrive while the first batches run
			mu.Lock()
			running++
			peak = max(peak, running)
			taken := map[string]bool{}
			for _, j := range batch {
				for _, key := range j.keys {
					if taken[key] {
						t.Errorf("two jobs of a batch have the key %s", key)
					}
					taken[key] = true
				}
				served = append(served, j.n)
			}
			if len(batch) == 0 || len(batch) > maxSize {
				t.Errorf("a batch has %d jobs, want 1 to %d", len(batch), maxSize)
			}
			running--
			mu.Unlock()
			left.Add(-len(batch))
		}
		for n, keys := range jobs {
			left.Add(1)
			b.add(job{n, keys})
		}
		withdrawn := map[int]bool{}
		for _, n := range withdrawals {
			if b.withdraw(func(j job) bool { return j.n == n }) {
				withdrawn[n] = true
				left.Done()
			}
		}
		close(start)
		left.Wait()
		mu.Lock()
		defer mu.Unlock()
		if peak > maxConcurrent {
			t.Errorf("%d batches ran at a time, want at most %d", peak, maxConcurrent)
		}
		for n := range jobs {
			if got := slices.Contains(served, n); got == withdrawn[n] {
				t.Errorf("job %d: served %v, withdrawn %v", n, got, withdrawn[n])
			}
		}
		if len(served)+len(withdrawn) != len(jobs) {
			t.Errorf("%d jobs were served and %d withdrawn of %d", len(served), len(withdrawn), len(jobs))
		}
		if maxConcurrent > 1 {
			return
		}
		for _, key := range []string{"a", "b", "c"} {
			var order []int
			for _, n := range served {
				if slices.Contains(jobs[n], key) {
					order = append(order, n)
				}
			}
			if !slices.IsSorted(order) {
				t.Errorf("the jobs with key %s were served in the order %v", key, order)
			}
		}
	})
}
