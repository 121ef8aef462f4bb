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

func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		atOnce, most := rapid.IntRange(1, 3).Draw(t, "at once"), rapid.IntRange(1, 5).Draw(t, "most")
		jobs := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID), 0, 40).Draw(t, "jobs")
		withdrawn := rapid.SliceOfN(rapid.IntRange(0, 39), 0, 5).Draw(t, "withdrawn")

		var mu sync.Mutex
		var order []int
		busy, peak := 0, 0
		all := sync.WaitGroup{}
		start := make(chan struct{})
		turns := &batcher[job]{maxConcurrent: atOnce, maxSize: most, conflictKeys: func(j job) []string { return j.keys }}
		turns.serve = func(turn []job) {
			<-start // so that whoever comes has to wait
			mu.Lock()
			busy++
			peak = max(peak, busy)
			taken := map[string]bool{}
			for _, j := range turn {
				for _, key := range j.keys {
					if taken[key] {
						t.Errorf("two with %s are in one turn", key)
					}
					taken[key] = true
				}
				order = append(order, j.n)
			}
			if len(turn) == 0 || len(turn) > most {
				t.Errorf("%d are in one turn, want 1 to %d", len(turn), most)
			}
			busy--
			mu.Unlock()
			all.Add(-len(turn))
		}
		for n, keys := range jobs {
			all.Add(1)
			turns.add(job{n, keys})
		}
		gone := map[int]bool{}
		for _, n := range withdrawn {
			if turns.withdraw(func(j job) bool { return j.n == n }) {
				gone[n] = true
				all.Done()
			}
		}
		close(start)
		all.Wait()
		mu.Lock()
		defer mu.Unlock()
		if peak > atOnce {
			t.Errorf("%d turns were served at once, want at most %d", peak, atOnce)
		}
		for n := range jobs {
			if served := slices.Contains(order, n); served == gone[n] {
				t.Errorf("job %d: served %v, withdrawn %v", n, served, gone[n])
			}
		}
		if len(order)+len(gone) != len(jobs) {
			t.Errorf("%d are served and %d withdrawn of %d", len(order), len(gone), len(jobs))
		}
		if atOnce == 1 { // those of one name in the order they came in
			for _, key := range []string{"a", "b", "c"} {
				var of []int
				for _, n := range order {
					if slices.Contains(jobs[n], key) {
						of = append(of, n)
					}
				}
				if !slices.IsSorted(of) {
					t.Errorf("those of %s are served in the order %v", key, of)
				}
			}
		}
	})
}
