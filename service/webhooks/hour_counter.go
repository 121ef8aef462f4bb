package webhooks

import (
	"sync"
	"time"
)

// countsKept is for how long a process keeps an address's counts for charts after it has stored some. Storing them costs
// four times as much as recording a delivery.
const countsKept = 5 * time.Second

// hourCounts are the counts of an hour.
type hourCounts struct {
	hour   time.Time
	counts []int32
}

// hourCounter adds up the counts of addresses between storing them. The
// zero value is ready to use. Counts that are not stored are lost with the process, and those
// of attempts that are recorded again, after a lost response, are counted twice: charts may
// be wrong by that.
type hourCounter struct {
	mu      sync.Mutex
	counted map[string]*unstoredHours // by the id of the address
}

// unstoredHours are what is not stored of an address, and when counts were stored last.
type unstoredHours struct {
	hours  []hourCounts
	stored time.Time
}

// take adds the counts to the address's. It returns what to store now, nothing if that
// was done a short time ago.
func (c *hourCounter) take(id string, counts hourCounts, now time.Time) []hourCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(id)
	u.add(counts)
	if since := now.Sub(u.stored); since >= 0 && since < countsKept {
		return nil
	}
	due := u.hours
	u.hours, u.stored = nil, now
	return due
}

// takeAll returns everything of the address, and forgets the address.
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

// putBack adds counts that could not be stored.
func (c *hourCounter) putBack(id string, hours []hourCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, counts := range hours {
		c.of(id).add(counts)
	}
}

func (c *hourCounter) of(id string) *unstoredHours {
	if c.counted == nil {
		c.counted = map[string]*unstoredHours{}
	}
	if c.counted[id] == nil {
		c.counted[id] = &unstoredHours{}
	}
	return c.counted[id]
}

func (u *unstoredHours) add(counts hourCounts) {
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
