package batch

import (
	"runtime"
	"slices"
	"sync"

	"millwright/service/slots"
)

// batcher serves jobs in batches: jobs that arrive while a batch runs join the
// next one. A job that arrives alone is served at once.
//
// One batch runs at a time. With two, each would be half as large, and a statement
// costs almost the same for half the rows.
//
// Tenants share a batch in turns of one job. So a tenant with a thousand jobs delays a
// tenant with one job by a batch at most.
type batcher[J comparable] struct {
	// serve runs one batch and returns when it is done.
	serve func([]J)
	// maxSize bounds the jobs in a batch.
	maxSize int
	// observe, if not nil, is called with each batch: its jobs, and how many are of the
	// tenant with the most.
	observe func(jobs, largest int)
	// tenant returns whose job it is.
	tenant func(J) string

	mu      sync.Mutex
	queues  map[string]*tenantQueue[J]
	turns   []*tenantQueue[J] // the queues that have jobs, in the order of their turns
	running bool
}

// tenantQueue holds the jobs of a tenant, oldest first.
type tenantQueue[J comparable] struct {
	tenant string
	jobs   []J
	// taken counts its jobs in the batch being filled.
	taken int
}

// add queues the jobs, which belong to one tenant. The batches run in goroutines of
// the batcher. It returns slots.ErrOverloaded if too many jobs of the tenant wait.
func (b *batcher[J]) add(jobs ...J) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tenant := b.tenant(jobs[0])
	q := b.queues[tenant]
	if q == nil {
		q = &tenantQueue[J]{tenant: tenant}
	}
	if len(q.jobs)+len(jobs) > slots.MaxWaiting {
		return slots.ErrOverloaded
	}
	if len(q.jobs) == 0 {
		if b.queues == nil {
			b.queues = map[string]*tenantQueue[J]{}
		}
		b.queues[tenant] = q
		b.turns = append(b.turns, q)
	}
	q.jobs = append(q.jobs, jobs...)
	if !b.running {
		b.running = true
		go b.run()
	}
	return nil
}

// withdraw removes the job if it waits. It reports false if it does not: then the
// job is already in a batch.
func (b *batcher[J]) withdraw(job J) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[b.tenant(job)]
	if q == nil {
		return false
	}
	n := slices.Index(q.jobs, job)
	if n < 0 {
		return false
	}
	q.jobs = slices.Delete(q.jobs, n, n+1)
	b.dropEmpty()
	return true
}

// run serves batches until no job waits.
func (b *batcher[J]) run() {
	for {
		// Yield so that runnable callers can join this batch.
		runtime.Gosched()
		jobs := b.next()
		if len(jobs) == 0 {
			return
		}
		b.serve(jobs)
	}
}

// next fills a batch with the jobs of the tenants in turn, oldest first. Without a job, nothing runs.
func (b *batcher[J]) next() []J {
	b.mu.Lock()
	defer b.mu.Unlock()
	var jobs []J
	left := slices.Clone(b.turns)
	for len(left) > 0 && len(jobs) < b.maxSize {
		q := left[0]
		left = left[1:]
		if q.taken < len(q.jobs) {
			jobs = append(jobs, q.jobs[q.taken])
			q.taken++
			left = append(left, q)
		}
	}
	largest := 0
	for _, q := range b.turns {
		largest = max(largest, q.taken)
		q.jobs, q.taken = q.jobs[q.taken:], 0
	}
	if len(left) > 0 { // the next batch begins with the tenant whose turn it is
		first := slices.Index(b.turns, left[0])
		b.turns = slices.Concat(b.turns[first:], b.turns[:first])
	}
	b.dropEmpty()
	b.running = len(jobs) > 0
	if b.observe != nil && b.running {
		b.observe(len(jobs), largest)
	}
	return jobs
}

// dropEmpty forgets tenants without jobs.
func (b *batcher[J]) dropEmpty() {
	b.turns = slices.DeleteFunc(b.turns, func(q *tenantQueue[J]) bool {
		if len(q.jobs) == 0 {
			delete(b.queues, q.tenant)
		}
		return len(q.jobs) == 0
	})
}
