package access

import (
	"strconv"
	"testing"
	"time"

	"millwright/models"
)

// The memory is bounded: windows that have ended make room for others.
func TestRememberedLimitsAreBounded(t *testing.T) {
	var e exceededLimits
	first := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	second := first.Add(models.RateWindow)
	for i := range maxExceeded {
		end := first
		if i%2 == 1 {
			end = second
		}
		e.remember(strconv.Itoa(i), Rate{Reset: end}, first.Add(-time.Second))
	}
	known := func(id string, now time.Time, want bool) {
		t.Helper()
		if _, ok := e.rate(id, now); ok != want || len(e.rates) > maxExceeded {
			t.Errorf("%s is known: %t, want %t; %d are", id, ok, want, len(e.rates))
		}
	}
	e.remember("one too many", Rate{Reset: first}, first.Add(-time.Second))
	known("one too many", first.Add(-time.Second), false)
	e.remember("later", Rate{Reset: second}, first)
	known("later", first, true)
	known("1", first, true)
	known("0", first, false)
	if len(e.rates) != maxExceeded/2+1 {
		t.Errorf("%d are remembered", len(e.rates))
	}
	known("1", first.Add(-time.Second), false) // the clock was set back
}
