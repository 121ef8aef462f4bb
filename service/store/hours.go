package store

import (
	"sync"
	"time"

	"millwright/models"
)

// CountsKept is for how long a process keeps counts for charts after it has stored some.
// Storing an address's counts costs four times as much as recording a delivery.
const CountsKept = 5 * time.Second

// HourCounts are the counts of an hour.
type HourCounts struct {
	Hour   time.Time
	Counts []int32
}

// HourCounter adds up the counts of addresses between storing them. The
// zero value is ready to use. Counts that are not stored are lost with the process, and those
// of attempts that are recorded again, after a lost response, are counted twice: charts may
// be wrong by that.
type HourCounter struct {
	mu      sync.Mutex
	counted map[string]*UnstoredCounts // by the id of the address
}

// UnstoredCounts are what is not stored of an id, and when counts were stored last.
type UnstoredCounts struct {
	Hours  []HourCounts
	stored time.Time
}

// Add adds the counts to the id's.
func (c *HourCounter) Add(id string, counts HourCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(id).add(counts)
}

// Take adds the counts to the id's. It returns what to store now, nothing if that
// was done a short time ago.
func (c *HourCounter) Take(id string, counts HourCounts, now time.Time) []HourCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(id)
	u.add(counts)
	if since := now.Sub(u.stored); since >= 0 && since < CountsKept {
		return nil
	}
	due := u.Hours
	u.Hours, u.stored = nil, now
	return due
}

// TakeAll returns everything of the id, and forgets the id.
func (c *HourCounter) TakeAll(id string) []HourCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	u, known := c.counted[id]
	if !known {
		return nil
	}
	delete(c.counted, id)
	return u.Hours
}

// PutBack adds counts that could not be stored.
func (c *HourCounter) PutBack(id string, hours []HourCounts) {
	for _, counts := range hours {
		c.Add(id, counts)
	}
}

func (c *HourCounter) of(id string) *UnstoredCounts {
	if c.counted == nil {
		c.counted = map[string]*UnstoredCounts{}
	}
	if c.counted[id] == nil {
		c.counted[id] = &UnstoredCounts{}
	}
	return c.counted[id]
}

func (u *UnstoredCounts) add(counts HourCounts) {
	for _, h := range u.Hours {
		if h.Hour.Equal(counts.Hour) {
			for i, n := range counts.Counts {
				h.Counts[i] += n
			}
			return
		}
	}
	u.Hours = append(u.Hours, counts)
}

// ChartTimes are the times at which a chart's steps begin, in the span that ends with the
// current step, oldest first.
func (s *Store) ChartTimes(span, step time.Duration) []models.Time {
	now := s.Now()
	var times []models.Time
	for at := now.UTC().Truncate(step).Add(step - span); !at.After(now); at = at.Add(step) {
		times = append(times, models.TimeOf(at))
	}
	return times
}
