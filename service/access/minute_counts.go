package access

import (
	"hash/maphash"
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

// add counts for a subject with a limit.
func (c *minuteCounts) add(subject string, limit int, now time.Time) Rate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if window := now.UTC().Truncate(models.RateWindow); !window.Equal(c.window) {
		c.window = window
		for row := range c.counts {
			clear(c.counts[row][:])
		}
	}
	rate := Rate{Limit: limit, Reset: c.window.Add(models.RateWindow)}
	for row := range c.counts {
		counter := &c.counts[row][maphash.String(c.seeds[row], subject)%countColumns]
		*counter++
		if row == 0 || int(*counter) < rate.Calls {
			rate.Calls = int(*counter)
		}
	}
	return rate
}
