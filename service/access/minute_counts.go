package access

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"millwright/models"
)

const (
	// maxSubjects bounds the subjects that are counted exactly. Others share the counters of a sketch.
	maxSubjects   = 10_000
	sketchRows    = 2
	sketchColumns = 1 << 16
)

// minuteCounts counts what subjects send in a minute, in a few megabytes of memory for any number of
// them. Each of the first 10,000 has its own count, to which counts of other processes are added
// (ExchangeCounts). Beyond, each row of a sketch has a counter for a subject, which others may share, and
// its count is the least of these (count-min): it shares all of them with one of 1,000 subjects over their limit once
// in 4,000 times. No one can choose with whom.
type minuteCounts struct {
	mu sync.Mutex
	// ahead is by how much the database's clock is ahead of this process's.
	ahead  time.Duration
	window time.Time               // by the database's clock
	exact  map[string]*minuteCount // by subject
	seeds  [sketchRows]maphash.Seed
	sketch [sketchRows][sketchColumns]uint32
}

// minuteCount is what this process admitted of a subject in the minute, what the database knows of that, and what other
// processes admitted.
type minuteCount struct{ admitted, stored, elsewhere int }

func newMinuteCounts() *minuteCounts {
	c := &minuteCounts{exact: map[string]*minuteCount{}}
	for row := range c.seeds {
		c.seeds[row] = maphash.MakeSeed()
	}
	return c
}

// add counts for a subject with a limit, unless it is over the limit: the returned count is above the limit then.
func (c *minuteCounts) add(subject string, limit int, now time.Time) Rate {
	return c.count(subject, limit, limit, now, 1)
}

// addAny is add also for a subject that is over the limit.
func (c *minuteCounts) addAny(subject string, limit int, now time.Time) Rate {
	return c.count(subject, limit, math.MaxInt32, now, 1)
}

// rate returns what was counted for a subject with a limit.
func (c *minuteCounts) rate(subject string, limit int, now time.Time) Rate {
	return c.count(subject, limit, 0, now, 0)
}

// count adds n for the subject if that is at most the maximum, and returns the count as if it did.
func (c *minuteCounts) count(subject string, limit, maximum int, now time.Time, n int) Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(now)
	rate := Rate{Limit: limit, Calls: n, Reset: c.window.Add(models.RateWindow - c.ahead)}
	if n > 0 && c.exact[subject] == nil && len(c.exact) < maxSubjects {
		c.exact[subject] = &minuteCount{}
	}
	if exact := c.exact[subject]; exact != nil {
		rate.Calls += exact.admitted + exact.elsewhere
		if rate.Calls <= maximum {
			exact.admitted += n
		}
		return rate
	}
	var counters [sketchRows]*uint32
	least := uint32(math.MaxUint32)
	for row := range c.sketch {
		counters[row] = &c.sketch[row][maphash.String(c.seeds[row], subject)%sketchColumns]
		least = min(least, *counters[row])
	}
	rate.Calls += int(least)
	if rate.Calls <= maximum {
		for _, counter := range counters {
			*counter += uint32(n) //nolint:gosec // 0 or 1
		}
	}
	return rate
}

// begin begins the minute of the time, unless it is the current one. A minute that has begun does not end because the clocks
// turn out to differ by less than a minute.
func (c *minuteCounts) begin(now time.Time) {
	window := now.Add(c.ahead).UTC().Truncate(models.RateWindow)
	if !window.After(c.window) && window.After(c.window.Add(-2*models.RateWindow)) {
		return
	}
	c.window = window
	clear(c.exact)
	for row := range c.sketch {
		clear(c.sketch[row][:])
	}
}

// unstored is what ExchangeCounts sends: all subjects of the minute, and the counts that changed.
type unstored struct {
	window   time.Time
	subjects []string
	counts   map[string]int
}

// unstored returns what to exchange.
func (c *minuteCounts) unstored(now time.Time) unstored {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(now)
	u := unstored{window: c.window, subjects: slices.Collect(maps.Keys(c.exact)), counts: map[string]int{}}
	for subject, n := range c.exact {
		if n.admitted != n.stored {
			u.counts[subject] = n.admitted
		}
	}
	return u
}

// exchanged takes what the database answered at the time: its clock, and counts of other processes.
func (c *minuteCounts) exchanged(u unstored, now, atDatabase time.Time, elsewhere []subjectCalls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = atDatabase.Sub(now)
	if !u.window.Equal(c.window) {
		return
	}
	for subject, calls := range u.counts {
		if n := c.exact[subject]; n != nil {
			n.stored = calls
		}
	}
	for _, other := range elsewhere {
		if n := c.exact[other.Subject]; n != nil {
			n.elsewhere = other.Calls
		}
	}
}
