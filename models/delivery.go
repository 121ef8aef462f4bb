package models

import "time"

// RetrySchedule lists the waits between the attempts of a delivery.
type RetrySchedule []time.Duration

// After returns the wait before the next attempt when the given number of
// attempts (1 or more) has failed, and false when none is left.
func (s RetrySchedule) After(attempts int) (time.Duration, bool) {
	if attempts < 1 || attempts > len(s) {
		return 0, false
	}
	return s[attempts-1], true
}

// ShouldTurnOff decides whether an address is turned off when one of its deliveries
// failed for good (spec section 6, turning off): only when it has had no
// success for the period, counted from when it was made or last turned on.
func ShouldTurnOff(now, enabledSince time.Time, lastSuccess *time.Time, period time.Duration) bool {
	since := enabledSince
	if lastSuccess != nil && lastSuccess.After(since) {
		since = *lastSuccess
	}
	return now.Sub(since) >= period
}
