package service

import (
	"runtime"
	"slices"
	"sync"
)

// batcher has what is asked for at the same moment done together: who comes while
// others are served waits, and is served in one turn with everyone else who came.
// Alone, nobody waits for anybody.
type batcher[J any] struct {
	// serve does all of one turn.
	serve func([]J)
	// maxConcurrent is how many turns are served side by side, most how many are in one.
	maxConcurrent, maxSize int
	// conflictKeys names what no two in one turn may have in common; nil keeps nobody apart.
	conflictKeys func(J) []string

	mu      sync.Mutex
	waiting []J
	serving int
}

// add has the jobs served, in a goroutine of the turn's.
func (t *batcher[J]) add(jobs ...J) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, jobs...)
	if t.serving < t.maxConcurrent {
		t.serving++
		go t.run()
	}
}

// withdraw takes back the first waiting job of which is holds. It reports false
// when none waits: its turn has come.
func (t *batcher[J]) withdraw(is func(J) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := slices.IndexFunc(t.waiting, is)
	if n < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, n, n+1)
	return true
}

// run serves turns until nobody waits.
func (t *batcher[J]) run() {
	for {
		// Whoever is about to come comes first: the turn is the larger for it, and
		// where nobody is, this costs nothing.
		runtime.Gosched()
		turn := t.next()
		if len(turn) == 0 {
			return
		}
		t.serve(turn)
	}
}

// next takes the next turn: who waits longest, and whoever may be beside them.
func (t *batcher[J]) next() []J {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.serving--
		return nil
	}
	var turn, left []J
	taken := map[string]bool{}
	for i, job := range t.waiting {
		if len(turn) == t.maxSize {
			left = append(left, t.waiting[i:]...)
			break
		}
		var keys []string
		if t.conflictKeys != nil {
			keys = t.conflictKeys(job)
		}
		if slices.ContainsFunc(keys, func(key string) bool { return taken[key] }) {
			left = append(left, job)
		} else {
			turn = append(turn, job)
		}
		for _, key := range keys { // also of who is left: those of one name keep their order
			taken[key] = true
		}
	}
	t.waiting = left
	return turn
}
