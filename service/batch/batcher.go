package batch

import (
	"runtime"
	"slices"
	"sync"
)

const (
	// maxWaiting bounds how many jobs of one tenant wait. More are rejected at once:
	// sixteen groups of writes take about as long as a caller is willing to wait.
	maxWaiting = 1024
	// quantum is the cost that a tenant may add to a batch before the next tenant's turn.
	quantum = 8
	// maxKnownTenants bounds how many tenants the batcher knows the cost of.
	maxKnownTenants = 4096
)

// batcher serves jobs in batches: jobs that arrive while a batch runs join the
// next one. A job that arrives alone is served at once.
//
// One batch runs at a time. With two, each would be half as large, and a statement
// costs almost the same for half the rows. But while a tenant has more jobs than a
// batch takes of it, a second one runs for other tenants: they need not wait for its
// jobs. A tenant's jobs are in one running batch at a time.
//
// Tenants share a batch by deficit round robin: in turn each gets credit, spends it
// on its oldest jobs, and keeps the rest for its next turn. So a tenant with a
// thousand jobs, or with costly ones, delays a tenant with one job by a turn at most.
type batcher[J comparable] struct {
	// serve runs one batch and returns when it is done.
	serve func([]J)
	// maxSize bounds the jobs in a batch.
	maxSize int
	// maxRows bounds the rows in a batch by what each job's tenant wrote last
	// (learn); 0 means no bound.
	maxRows int
	// observe, if not nil, is called with each batch: its jobs, and how many are of the
	// tenant with the most.
	observe func(jobs, largest int)
	// tenant returns whose job it is.
	tenant func(J) string
	// conflictKeys returns the keys of a job: no two jobs of a batch share one.
	// nil means that no jobs conflict.
	conflictKeys func(J) []string

	mu      sync.Mutex
	queues  map[string]*tenantQueue[J]
	turns   []*tenantQueue[J] // the queues that have jobs, in the order of their turns
	rows    map[string]int    // the rows of a job, by tenant
	waiting int
	running []*running // at most two
}

// running is what runs batches one after the other, with its current batch.
type running struct {
	tenants map[string]bool
	// large is true if the batch had no room for more jobs of one of them.
	large bool
}

// tenantQueue holds the jobs of a tenant, oldest first.
type tenantQueue[J comparable] struct {
	tenant string
	jobs   []J
	// credit is what the tenant may spend.
	credit int
	// next is the first job that the batch being filled has not considered; passed
	// are those that conflict with it.
	next   int
	passed []J
	// closed is true if the batch takes no more jobs of the tenant.
	closed bool
	// taken counts its jobs in the batch being filled.
	taken int
}

// add queues the jobs, which belong to one tenant. The batches run in goroutines of
// the batcher. It returns ErrOverloaded if too many jobs of the tenant wait.
func (b *batcher[J]) add(jobs ...J) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tenant := b.tenant(jobs[0])
	q := b.queues[tenant]
	if q == nil {
		q = &tenantQueue[J]{tenant: tenant}
	}
	if len(q.jobs)+len(jobs) > maxWaiting {
		return ErrOverloaded
	}
	if len(q.jobs) == 0 {
		if b.queues == nil {
			b.queues = map[string]*tenantQueue[J]{}
		}
		b.queues[tenant] = q
		b.turns = append(b.turns, q)
	}
	q.jobs = append(q.jobs, jobs...)
	b.waiting += len(jobs)
	b.start()
	return nil
}

// start runs the jobs that wait, unless a running batch is to end first. The caller
// holds b.mu.
func (b *batcher[J]) start() {
	if !b.mayRun(nil) || !slices.ContainsFunc(b.turns, func(q *tenantQueue[J]) bool { return !b.busy(q.tenant) }) {
		return
	}
	r := &running{}
	b.running = append(b.running, r)
	go b.run(r)
}

// mayRun reports whether r may run a batch next to the others that run.
func (b *batcher[J]) mayRun(r *running) bool {
	others := 0
	for _, other := range b.running {
		if other == r {
			continue
		}
		if others++; !other.large {
			return false
		}
	}
	return others < 2
}

// busy reports whether a running batch has jobs of the tenant.
func (b *batcher[J]) busy(tenant string) bool {
	return slices.ContainsFunc(b.running, func(r *running) bool { return r.tenants[tenant] })
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
	b.waiting--
	b.dropEmpty()
	return true
}

// size returns how many jobs wait for a batch.
func (b *batcher[J]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// learn records how many rows a job of the tenant wrote, as an estimate for its next.
func (b *batcher[J]) learn(tenant string, rows int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil || len(b.rows) >= maxKnownTenants {
		b.rows = map[string]int{}
	}
	if rows == 0 {
		delete(b.rows, tenant)
		return
	}
	b.rows[tenant] = rows
}

// run serves batches until no job may run.
func (b *batcher[J]) run(r *running) {
	for {
		// Yield so that runnable callers can join this batch.
		runtime.Gosched()
		jobs := b.next(r)
		if len(jobs) == 0 {
			return
		}
		b.serve(jobs)
	}
}

// next ends the batch of r and fills another, which it returns. If no job may run, r
// ends: the other one runs what waits.
func (b *batcher[J]) next(r *running) []J {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.tenants, r.large = nil, false
	var jobs []J
	if b.mayRun(r) {
		jobs = b.fill(r)
	}
	if len(jobs) == 0 {
		b.running = slices.DeleteFunc(b.running, func(other *running) bool { return other == r })
	} else if r.large {
		b.start()
	}
	return jobs
}

// fill fills a batch with the jobs of the tenants in turn, except those that are busy.
// It takes a tenant's oldest job and every later one that conflicts with none
// before it.
func (b *batcher[J]) fill(r *running) []J {
	full := &filling[J]{tenants: map[string]bool{}, taken: map[string]bool{}}
	for _, q := range b.turns {
		q.closed, q.taken = b.busy(q.tenant), 0
	}
	first := min(1, len(b.turns)) // the turn with which the next batch begins
	for open := true; open && len(full.jobs) < b.maxSize; {
		open = false
		for i, q := range b.turns {
			if q.closed {
				continue
			}
			q.credit += quantum
			b.take(q, full)
			open = open || !q.closed
			if len(full.jobs) == b.maxSize {
				first = i + 1
				break
			}
		}
	}
	largest := 0
	for _, q := range b.turns {
		largest = max(largest, q.taken)
		q.jobs = append(q.passed, q.jobs[q.next:]...)
		q.next, q.passed, q.closed = 0, nil, false
		// Credit is for jobs that wait for their turn, not for those that conflict.
		q.credit = min(q.credit, quantum+b.rows[q.tenant])
	}
	b.turns = slices.Concat(b.turns[first:], b.turns[:first])
	b.waiting -= len(full.jobs)
	b.dropEmpty()
	if b.observe != nil && len(full.jobs) > 0 {
		b.observe(len(full.jobs), largest)
	}
	r.tenants, r.large = full.tenants, full.large || len(full.jobs) == b.maxSize
	return full.jobs
}

// filling is a batch that is being filled.
type filling[J comparable] struct {
	jobs []J
	rows int
	// tenants are the tenants with jobs in the batch; large is true if it has no room for more
	// jobs of one of them.
	tenants map[string]bool
	large   bool
	// taken are the keys of the jobs considered. Those passed over count too, so that
	// jobs of a tenant with one key stay in order.
	taken map[string]bool
}

// take moves jobs of the tenant to the batch as far as its credit and the batch allow.
func (b *batcher[J]) take(q *tenantQueue[J], batch *filling[J]) {
	for ; q.next < len(q.jobs); q.next++ {
		job := q.jobs[q.next]
		var keys []string
		if b.conflictKeys != nil {
			keys = b.conflictKeys(job)
		}
		if slices.ContainsFunc(keys, func(key string) bool { return batch.taken[key] }) {
			q.passed = append(q.passed, job)
		} else {
			rows := b.rows[q.tenant]
			if b.maxRows > 0 && len(batch.jobs) > 0 && batch.rows+rows > b.maxRows {
				q.closed, batch.large = true, true
				return
			}
			if len(batch.jobs) == b.maxSize || 1+rows > q.credit {
				return
			}
			q.credit -= 1 + rows
			q.taken++
			batch.jobs, batch.rows = append(batch.jobs, job), batch.rows+rows
			batch.tenants[q.tenant] = true
		}
		for _, key := range keys {
			batch.taken[key] = true
		}
	}
	q.closed = true
}

// dropEmpty forgets tenants without jobs, and with them their credit.
func (b *batcher[J]) dropEmpty() {
	b.turns = slices.DeleteFunc(b.turns, func(q *tenantQueue[J]) bool {
		if len(q.jobs) == 0 {
			delete(b.queues, q.tenant)
		}
		return len(q.jobs) == 0
	})
}
