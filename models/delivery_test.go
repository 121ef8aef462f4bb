package models

import (
	"testing"
	"time"
)

func TestDefaultRetrySchedule(t *testing.T) {
	waits := []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}
	for i, want := range waits {
		if wait, more := DefaultRetrySchedule.After(i + 1); wait != want || !more {
			t.Errorf("after attempt %d: %v, %v; want another after %v", i+1, wait, more, want)
		}
	}
	for _, attempts := range []int{-1, 0, len(waits) + 1, len(waits) + 2} { // the last is an operator's
		if wait, more := DefaultRetrySchedule.After(attempts); wait != 0 || more {
			t.Errorf("after %d attempts: another after %v", attempts, wait)
		}
	}
	if _, more := (RetrySchedule{}).After(1); more {
		t.Error("an empty schedule retries")
	}
}
