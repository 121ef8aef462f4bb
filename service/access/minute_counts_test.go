package access

import (
	"fmt"
	"testing"
	"time"

	"millwright/models"
)

// A subject's count is at least what it sent in the minute, and a flood of others does not bring it
// over a limit.
func TestMinuteCounts(t *testing.T) {
	c := newMinuteCounts()
	now := time.Date(2026, 3, 2, 9, 0, 20, 0, time.UTC)
	for n := range maxSubjects {
		c.add(fmt.Sprint("first ", n), 10, now)
	}
	if len(c.exact) != maxSubjects {
		t.Errorf("%d subjects have their own count, want %d", len(c.exact), maxSubjects)
	}
	if rate := c.add("first 7", 10, now); rate.Calls != 2 {
		t.Errorf("the second of one of the first: %+v", rate)
	}
	for n := 1; n <= 10; n++ {
		if rate := c.add("one", 10, now); rate.Calls != n || rate.Exceeded() {
			t.Fatalf("number %d: %+v", n, rate)
		}
	}
	rate := c.add("one", 10, now)
	if want := now.Truncate(models.RateWindow).Add(models.RateWindow); !rate.Exceeded() || !rate.Reset.Equal(want) {
		t.Errorf("the eleventh: %+v, want one over the limit until %s", rate, want)
	}
	for n := range 100_000 {
		c.add(fmt.Sprint("network ", n), 10, now)
	}
	over := 0
	for n := range 100 {
		if c.add(fmt.Sprint("another ", n), 10, now).Exceeded() {
			over++
		}
	}
	if over > 1 {
		t.Errorf("after a request of each of 100,000 others, the first of %d in 100 exceeds its limit", over)
	}
	if rate := c.add("one", 10, now.Add(40*time.Second)); rate.Calls != 1 {
		t.Errorf("in the next minute: %+v", rate)
	}
}

// A clock that jumps and comes back during an exchange has begun the minute again.
func TestAClockThatJumpsDuringAnExchange(t *testing.T) {
	c := newMinuteCounts()
	now := time.Date(2026, 3, 2, 9, 0, 20, 0, time.UTC)
	c.add("one", 10, now)
	u := c.unstored(now)
	c.add("other", 10, now.Add(-time.Hour))
	c.add("other", 10, now)
	c.exchanged(u, now, now, []subjectCalls{{"one", 3}})
	if rate := c.rate("one", 10, now); rate.Calls != 0 {
		t.Errorf("the minute that began again has %d calls", rate.Calls)
	}
}
