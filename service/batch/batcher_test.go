package batch

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"millwright/service/slots"
)

type job struct {
	n      int
	tenant string
}

// Whatever arrives and is withdrawn: every other job is served once, in batches that keep
// their bound, one at a time, and each tenant's jobs in the order in which they arrived.
func TestBatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSize := rapid.IntRange(1, 5).Draw(t, "maxSize")
		tenants := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 40).Draw(t, "tenants") // of the jobs
		withdrawals := rapid.SliceOfN(rapid.IntRange(0, 39), 0, 5).Draw(t, "withdrawals")

		var mu sync.Mutex
		var served []int
		running := false
		var left sync.WaitGroup
		start := make(chan struct{})
		b := &batcher[*job]{maxSize: maxSize, tenant: func(j *job) string { return j.tenant }}
		var observed []int
		b.observe = func(jobs, largest int) { // next holds the lock
			if largest < 1 || largest > jobs || jobs > maxSize {
				t.Errorf("observed are %d of %d jobs in a batch of at most %d", largest, jobs, maxSize)
			}
			observed = append(observed, jobs)
		}
		b.serve = func(batch []*job) {
			mu.Lock()
			if running {
				t.Error("two batches run at a time")
			}
			running = true
			mu.Unlock()
			<-start // jobs arrive while the first batches run
			mu.Lock()
			for _, j := range batch {
				served = append(served, j.n)
			}
			if len(batch) == 0 || len(batch) > maxSize {
				t.Errorf("a batch has %d jobs, want 1 to %d", len(batch), maxSize)
			}
			running = false
			mu.Unlock()
			left.Add(-len(batch))
		}
		added := make([]*job, len(tenants))
		for n, tenant := range tenants {
			left.Add(1)
			added[n] = &job{n, tenant}
			if err := b.add(added[n]); err != nil {
				t.Fatal(err)
			}
		}
		withdrawn := map[int]bool{}
		for _, n := range withdrawals {
			if n < len(added) && b.withdraw(added[n]) {
				withdrawn[n] = true
				left.Done()
			}
		}
		close(start)
		left.Wait()
		mu.Lock()
		defer mu.Unlock()
		b.mu.Lock()
		total := 0
		for _, n := range observed {
			total += n
		}
		b.mu.Unlock()
		if total != len(served) {
			t.Errorf("batches of %v jobs were observed, %d jobs were served", observed, len(served))
		}
		for n := range tenants {
			if got := slices.Contains(served, n); got == withdrawn[n] {
				t.Errorf("job %d: served %v, withdrawn %v", n, got, withdrawn[n])
			}
		}
		if len(served)+len(withdrawn) != len(tenants) {
			t.Errorf("%d jobs were served and %d withdrawn of %d", len(served), len(withdrawn), len(tenants))
		}
		for _, tenant := range []string{"x", "y", "z"} {
			var order []int
			for _, n := range served {
				if tenants[n] == tenant {
					order = append(order, n)
				}
			}
			if !slices.IsSorted(order) {
				t.Errorf("the jobs of %s were served in the order %v", tenant, order)
			}
		}
	})
}

// fill returns the tenants of the jobs in each batch, if the jobs of the tenants
// arrive at once, tenant after tenant.
func fill(t *testing.T, jobs map[string]int, order ...string) []map[string]int {
	t.Helper()
	b := &batcher[*job]{maxSize: 64, tenant: func(j *job) string { return j.tenant }, running: true} // the test fills
	for _, tenant := range order {
		for n := range jobs[tenant] {
			if err := b.add(&job{n: n, tenant: tenant}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var batches []map[string]int
	for {
		batch := b.next()
		if len(batch) == 0 {
			return batches
		}
		served := map[string]int{}
		for _, j := range batch {
			served[j.tenant]++
		}
		batches = append(batches, served)
	}
}

func TestTenantsShareABatch(t *testing.T) {
	t.Run("a quiet tenant behind a noisy one", func(t *testing.T) {
		batches := fill(t, map[string]int{"noisy": 1000, "quiet": 3}, "noisy", "quiet")
		if batches[0]["quiet"] != 3 || batches[0]["noisy"] != 61 {
			t.Errorf("the first batch holds %v, want all of the quiet tenant's and 61 of the noisy one's", batches[0])
		}
	})
	t.Run("two tenants alike", func(t *testing.T) {
		for i, batch := range fill(t, map[string]int{"a": 320, "b": 320}, "a", "b") {
			if batch["a"] != 32 || batch["b"] != 32 {
				t.Errorf("batch %d holds %v, want 32 of each", i, batch)
			}
		}
	})
	t.Run("many tenants", func(t *testing.T) {
		jobs, order := map[string]int{}, []string{}
		for i := range 100 {
			order = append(order, string(rune('A'+i)))
			jobs[order[i]] = 20
		}
		batches := fill(t, jobs, order...)
		for _, tenant := range order {
			if n := sum(batches[:2], tenant); n == 0 {
				t.Errorf("tenant %s was not served in two batches", tenant)
			}
		}
	})
}

func sum(batches []map[string]int, tenant string) (n int) {
	for _, batch := range batches {
		n += batch[tenant]
	}
	return n
}

func TestAQueueIsBounded(t *testing.T) {
	b := &batcher[*job]{tenant: func(j *job) string { return j.tenant }, running: true}
	for range slots.MaxWaiting {
		if err := b.add(&job{tenant: "noisy"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.add(&job{tenant: "noisy"}); !errors.Is(err, slots.ErrOverloaded) {
		t.Errorf("one too many: %v, want slots.ErrOverloaded", err)
	}
	if err := b.add(&job{tenant: "quiet"}); err != nil {
		t.Errorf("a tenant with nothing in the queue: %v", err)
	}
}
