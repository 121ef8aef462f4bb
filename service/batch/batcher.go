package batch

import (
	"runtime"
	"slices"
	"sync"
)

// batcher serves jobs in batches: jobs that arrive while a batch runs join the
// next one. A job that arrives alone is served at once.
type batcher[J any] struct {
	// serve runs one batch and returns when it is done.
	serve func([]J)
	// maxConcurrent bounds how many batches run at a time, maxSize the jobs in one.
	maxConcurrent, maxSize int
	// conflictKeys returns the keys of a job: no two jobs of a batch share one.
	// nil means that no jobs conflict.
	conflictKeys func(J) []string

	mu      sync.Mutex
	waiting []J
	running int
}

// add queues the jobs. The batches run in goroutines of the batcher.
func (b *batcher[J]) add(jobs ...J) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, jobs...)
	if b.running < b.maxConcurrent {
		b.running++
		go b.run()
	}
}

// withdraw removes the first waiting job that matches. It reports false if no job
// does: then the job is already in a batch.
func (b *batcher[J]) withdraw(matches func(J) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := slices.IndexFunc(b.waiting, matches)
	if n < 0 {
		return false
	}
	b.waiting = slices.Delete(b.waiting, n, n+1)
	return true
}

// size returns how many jobs wait for a batch.
func (b *batcher[J]) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
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

// next takes the oldest job and every later one that conflicts with none before
// it, up to maxSize.
func (b *batcher[J]) next() []J {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.running--
		return nil
	}
	var jobs, skipped []J
	taken := map[string]bool{}
	for i, job := range b.waiting {
		if len(jobs) == b.maxSize {
			skipped = append(skipped, b.waiting[i:]...)
			break
		}
		var keys []string
		if b.conflictKeys != nil {
			keys = b.conflictKeys(job)
		}
		if slices.ContainsFunc(keys, func(key string) bool { return taken[key] }) {
			skipped = append(skipped, job)
		} else {
			jobs = append(jobs, job)
		}
		// Skipped jobs count too, so jobs with one key stay in order.
		for _, key := range keys {
			taken[key] = true
		}
	}
	b.waiting = skipped
	return jobs
}
