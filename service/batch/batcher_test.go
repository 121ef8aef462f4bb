package batch

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

type job struct {
	n      int
	tenant string
	keys   []string
}

// Whatever arrives and is withdrawn: every other job is served once, in batches that
// keep their bounds and hold no two jobs with a common key; a tenant is in one batch at
// a time, and its jobs with a common key stay in order.
func TestBatcher(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSize := rapid.IntRange(1, 5).Draw(t, "maxSize")
		jobs := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID), 0, 40).Draw(t, "jobs")
		tenants := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), len(jobs), len(jobs)).Draw(t, "tenants")
		maxRows := rapid.IntRange(0, 10).Draw(t, "maxRows")
		withdrawals := rapid.SliceOfN(rapid.IntRange(0, 39), 0, 5).Draw(t, "withdrawals")

		var mu sync.Mutex
		var served []int
		running, peak := 0, 0
		inBatch := map[string]bool{}
		var left sync.WaitGroup
		start := make(chan struct{})
		rowsOf := map[string]int{"x": 0, "y": 3, "z": 60}
		b := &batcher[*job]{
			maxSize: maxSize, maxRows: maxRows,
			tenant: func(j *job) string { return j.tenant }, conflictKeys: func(j *job) []string { return j.keys },
		}
		for tenant, rows := range rowsOf {
			b.learn(tenant, rows)
		}
		var observed []int
		b.observe = func(jobs, largest int) { // next holds the lock
			if largest < 1 || largest > jobs || jobs > maxSize {
				t.Errorf("observed are %d of %d jobs in a batch of at most %d", largest, jobs, maxSize)
			}
			observed = append(observed, jobs)
		}
		b.serve = func(batch []*job) {
			tenants := map[string]bool{}
			mu.Lock()
			running++
			peak = max(peak, running)
			for _, j := range batch {
				tenants[j.tenant] = true
			}
			for tenant := range tenants {
				if inBatch[tenant] {
					t.Errorf("tenant %s is in two batches", tenant)
				}
				inBatch[tenant] = true
			}
			mu.Unlock()
			<-start // jobs arrive while the first batches run
			mu.Lock()
			taken := map[string]bool{}
			rows := 0
			for _, j := range batch {
				rows += rowsOf[j.tenant]
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
			if maxRows > 0 && len(batch) > 1 && rows > maxRows {
				t.Errorf("a batch of %d jobs has %d rows, want at most %d", len(batch), rows, maxRows)
			}
			running--
			for tenant := range tenants {
				delete(inBatch, tenant)
			}
			mu.Unlock()
			left.Add(-len(batch))
		}
		added := make([]*job, len(jobs))
		for n, keys := range jobs {
			left.Add(1)
			added[n] = &job{n, tenants[n], keys}
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
		if peak > 2 {
			t.Errorf("%d batches ran at a time, want at most two", peak)
		}
		b.mu.Lock()
		total := 0
		for _, n := range observed {
			total += n
		}
		b.mu.Unlock()
		if total != len(served) {
			t.Errorf("batches of %v jobs were observed, %d jobs were served", observed, len(served))
		}
		for n := range jobs {
			if got := slices.Contains(served, n); got == withdrawn[n] {
				t.Errorf("job %d: served %v, withdrawn %v", n, got, withdrawn[n])
			}
		}
		if len(served)+len(withdrawn) != len(jobs) {
			t.Errorf("%d jobs were served and %d withdrawn of %d", len(served), len(withdrawn), len(jobs))
		}
		for tenant := range rowsOf {
			for _, key := range []string{"a", "b", "c"} {
				var order []int
				for _, n := range served {
					if tenants[n] == tenant && slices.Contains(jobs[n], key) {
						order = append(order, n)
					}
				}
				if !slices.IsSorted(order) {
					t.Errorf("the jobs of %s with key %s were served in the order %v", tenant, key, order)
				}
			}
		}
	})
}

// fill returns the tenants of the jobs in each batch, if the jobs of the tenants
// arrive at once, tenant after tenant, and their jobs write these rows.
func fill(t *testing.T, jobs, rows map[string]int, order ...string) []map[string]int {
	t.Helper()
	r := &running{} // nothing else runs
	b := &batcher[*job]{maxSize: 64, maxRows: 500, tenant: func(j *job) string { return j.tenant }, running: []*running{r}}
	for tenant, n := range rows {
		b.learn(tenant, n)
	}
	for _, tenant := range order {
		for n := range jobs[tenant] {
			if err := b.add(&job{n: n, tenant: tenant}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var batches []map[string]int
	for {
		r.tenants = nil
		batch := b.fill(r)
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
		batches := fill(t, map[string]int{"noisy": 1000, "quiet": 3}, nil, "noisy", "quiet")
		if batches[0]["quiet"] != 3 || batches[0]["noisy"] != 61 {
			t.Errorf("the first batch holds %v, want all of the quiet tenant's and 61 of the noisy one's", batches[0])
		}
	})
	t.Run("two tenants alike", func(t *testing.T) {
		for i, batch := range fill(t, map[string]int{"a": 320, "b": 320}, nil, "a", "b") {
			if batch["a"] != 32 || batch["b"] != 32 {
				t.Errorf("batch %d holds %v, want 32 of each", i, batch)
			}
		}
	})
	t.Run("a tenant whose writes are costly", func(t *testing.T) {
		batches := fill(t, map[string]int{"costly": 100, "cheap": 640}, map[string]int{"costly": 50}, "costly", "cheap")
		costly := 0
		for i := range 12 {
			if n := batches[i]["costly"]; n > 10 {
				t.Errorf("batch %d holds %d writes of 50 rows, want at most 10", i, n)
			}
			if batches[i]["cheap"] < 48 && batches[i]["cheap"] != 640-sum(batches[:i], "cheap") {
				t.Errorf("batch %d holds %v: the costly writes displace the cheap ones", i, batches[i])
			}
			costly += batches[i]["costly"]
		}
		if costly < 6 {
			t.Errorf("%d of the costly writes were served in twelve batches; they starve", costly)
		}
	})
	t.Run("many tenants", func(t *testing.T) {
		jobs, order := map[string]int{}, []string{}
		for i := range 100 {
			order = append(order, string(rune('A'+i)))
			jobs[order[i]] = 20
		}
		batches := fill(t, jobs, nil, order...)
		for _, tenant := range order {
			if n := sum(batches[:13], tenant); n == 0 {
				t.Errorf("tenant %s was not served in thirteen batches", tenant)
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

// While a batch that is mostly one tenant's runs, the others get another one.
// Otherwise jobs wait for the running batch, since larger batches cost less.
func TestATenantDoesNotWaitForAnothersLargeBatch(t *testing.T) {
	type batch struct {
		jobs []*job
		end  chan struct{}
	}
	running := make(chan batch)
	b := &batcher[*job]{maxSize: 8, tenant: func(j *job) string { return j.tenant }}
	b.serve = func(jobs []*job) {
		end := make(chan struct{})
		running <- batch{jobs, end}
		<-end
	}
	add := func(tenant string, n int) {
		t.Helper()
		var jobs []*job
		for range n {
			jobs = append(jobs, &job{tenant: tenant})
		}
		if err := b.add(jobs...); err != nil {
			t.Fatal(err)
		}
	}
	next := func(want map[string]int) batch {
		t.Helper()
		began := <-running
		got := map[string]int{}
		for _, j := range began.jobs {
			got[j.tenant]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("a batch holds %v, want %v", got, want)
		}
		return began
	}

	add("quiet", 3)
	small := next(map[string]int{"quiet": 3})
	add("other", 1)
	add("noisy", 20)
	if len(b.running) != 1 {
		t.Error("a batch began next to a small one")
	}
	close(small.end)
	large := next(map[string]int{"other": 1, "noisy": 7})
	add("quiet", 2)
	second := next(map[string]int{"quiet": 2})
	add("third", 1)
	add("noisy", 1)
	close(second.end)
	third := next(map[string]int{"third": 1})
	close(large.end) // the next batch waits for the third's, which is small
	close(third.end)
	large = next(map[string]int{"noisy": 8})
	close(large.end)
	last := next(map[string]int{"noisy": 6})
	close(last.end)
}

func TestAQueueIsBounded(t *testing.T) {
	b := &batcher[*job]{tenant: func(j *job) string { return j.tenant }, running: []*running{{}}}
	for range maxWaiting {
		if err := b.add(&job{tenant: "noisy"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.add(&job{tenant: "noisy"}); !errors.Is(err, ErrOverloaded) {
		t.Errorf("one too many: %v, want ErrOverloaded", err)
	}
	if err := b.add(&job{tenant: "quiet"}); err != nil {
		t.Errorf("a tenant with nothing in the queue: %v", err)
	}
}
