package models

import "time"

// RetrySchedule lists the waits after the failed attempts of a delivery (api.md
// 6.9). There is one attempt more than waits.
type RetrySchedule []time.Duration

// After returns the wait before the next attempt after the given number of failed
// attempts, and false if the schedule has no next one.
func (s RetrySchedule) After(attempts int) (time.Duration, bool) {
	if attempts < 1 || attempts > len(s) {
		return 0, false
	}
	return s[attempts-1], true
}
