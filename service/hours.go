package service

import (
	"sync"
	"time"

	"millwright/models"
)

// CountsKept is for how long a process keeps counts for charts after it has stored some.
// Storing an address's counts costs four times as much as recording a delivery.
const CountsKept = 5 * time.Second

// hourCounts are the counts of an hour.
type hourCounts struct {
	hour   time.Time
	counts []int32
}

// hourCounter adds up the counts of addresses, or of integrations, between storing them. The
// zero value is ready to use. Counts that are not stored are lost with the process, and those
// of attempts that are recorded again, after a lost response, are counted twice: charts may
// be wrong by that.
type hourCounter struct {
	mu      sync.Mutex
	counted map[string]*unstoredCounts // by the id of the address or the integration
}

// unstoredCounts are what is not stored of an id, and when counts were stored last.
type unstoredCounts struct {
	hours  []hourCounts
	stored time.Time
}

// add adds the counts to the id's.
func (c *hourCounter) add(id string, counts hourCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(id).add(counts)
}

// take adds the counts to the id's. It returns what to store now, nothing if that
// was done a short time ago.
func (c *hourCounter) take(id string, counts hourCounts, now time.Time) []hourCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(id)
	u.add(counts)
	if since := now.Sub(u.stored); since >= 0 && since < CountsKept {
		return nil
	}
	due := u.hours
	u.hours, u.stored = nil, now
	return due
}

// takeAll returns everything of the id, and forgets the id.
func (c *hourCounter) takeAll(id string) []hourCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, known := c.counted[id]
	if !known {
		return nil
	}
	delete(c.counted, id)
	return u.hours
}

// takeEvery returns everything of all ids, and forgets them.
func (c *hourCounter) takeEvery() map[string]*unstoredCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.counted
	c.counted = nil
	return all
}

// putBack adds counts that could not be stored.
func (c *hourCounter) putBack(id string, hours []hourCounts) {
	for _, counts := range hours {
		c.add(id, counts)
	}
}

func (c *hourCounter) of(id string) *unstoredCounts {
	if c.counted == nil {
		c.counted = map[string]*unstoredCounts{}
	}
	if c.counted[id] == nil {
		c.counted[id] = &unstoredCounts{}
	}
	return c.counted[id]
}

func (u *unstoredCounts) add(counts hourCounts) {
	for _, h := range u.hours {
		if h.hour.Equal(counts.hour) {
			for i, n := range counts.counts {
				h.counts[i] += n
			}
			return
		}
	}
	u.hours = append(u.hours, counts)
}

// chartTimes are the times at which a chart's steps begin, in the span that ends with the
// current step, oldest first.
func (s *Service) chartTimes(span, step time.Duration) []models.Time {
	now := s.Now()
	var times []models.Time
	for at := now.UTC().Truncate(step).Add(step - span); !at.After(now); at = at.Add(step) {
		times = append(times, models.TimeOf(at))
	}
	return times
}
