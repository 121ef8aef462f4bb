package access

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"millwright/models"
)

const (
	countRows    = 2
	countColumns = 1 << 16
)

// minuteCounts counts what subjects send in a minute, in one process and in half a megabyte of
// memory for any number of them. In each row a subject has a counter, which others may have too,
// and its count is the least of these (a count-min sketch): it shares all of them with one of 1,000
// subjects over their limit once in 4,000 times. No one can choose with whom.
type minuteCounts struct {
	mu     sync.Mutex
	seeds  [countRows]maphash.Seed
	window time.Time
	counts [countRows][countColumns]uint32
}

func newMinuteCounts() *minuteCounts {
	c := &minuteCounts{}
	for row := range c.seeds {
		c.seeds[row] = maphash.MakeSeed()
	}
	return c
}

// add counts for a subject with a limit, unless it is over the limit.
func (c *minuteCounts) add(subject string, limit int, now time.Time) Rate {
	return c.count(subject, limit, now, 1)
}

// rate returns what was counted for a subject with a limit.
func (c *minuteCounts) rate(subject string, limit int, now time.Time) Rate {
	return c.count(subject, limit, now, 0)
}

func (c *minuteCounts) count(subject string, limit int, now time.Time, more uint32) Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if window := now.UTC().Truncate(models.RateWindow); !window.Equal(c.window) {
		c.window = window
		for row := range c.counts {
			clear(c.counts[row][:])
		}
	}
	var counters [countRows]*uint32
	least := uint32(math.MaxUint32)
	for row := range c.counts {
		counters[row] = &c.counts[row][maphash.String(c.seeds[row], subject)%countColumns]
		least = min(least, *counters[row])
	}
	if int(least) < limit {
		for _, counter := range counters {
			*counter += more
		}
	}
	return Rate{Limit: limit, Calls: int(least + more), Reset: c.window.Add(models.RateWindow)}
}
