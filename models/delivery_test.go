package models

import (
	"testing"
	"time"
)

func TestDefaultRetrySchedule(t *testing.T) {
	tests := []struct {
		name     string
		attempts int
		wait     time.Duration
		more     bool
	}{
		{"before the first attempt", 0, 0, false},
		{"after the first attempt", 1, time.Minute, true},
		{"after the second", 2, 5 * time.Minute, true},
		{"after the third", 3, 30 * time.Minute, true},
		{"after the fourth", 4, 2 * time.Hour, true},
		{"after the fifth", 5, 6 * time.Hour, true},
		{"after the sixth", 6, 12 * time.Hour, true},
		{"after the seventh", 7, 24 * time.Hour, true},
		{"after the eighth", 8, 0, false},
		{"after an operator's ninth", 9, 0, false},
		{"a negative number", -1, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if wait, more := DefaultRetrySchedule.After(tt.attempts); wait != tt.wait || more != tt.more {
				t.Errorf("After(%d) = %v, %v; want %v, %v", tt.attempts, wait, more, tt.wait, tt.more)
			}
		})
	}
	t.Run("an empty schedule never retries", func(t *testing.T) {
		if _, more := (RetrySchedule{}).After(1); more {
			t.Error("After returns another attempt")
		}
	})
}

func TestShouldTurnOff(t *testing.T) {
	const period = 3 * 24 * time.Hour
	now := time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	tests := []struct {
		name        string
		created     time.Duration // ago
		lastSuccess *time.Time
		off         bool
	}{
		{"a success an hour ago keeps it on", 365 * 24 * time.Hour, ago(time.Hour), false},
		{"a success just within the period keeps it on", 365 * 24 * time.Hour, ago(period - time.Millisecond), false},
		{"a success a period ago turns it off", 365 * 24 * time.Hour, ago(period), true},
		{"a success long ago turns it off", 365 * 24 * time.Hour, ago(30 * 24 * time.Hour), true},
		{"a new address without any success stays on", time.Hour, nil, false},
		{"an address without any success is on for the period", period - time.Millisecond, nil, false},
		{"an address without any success is off after the period", period, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if off := ShouldTurnOff(now, *ago(tt.created), tt.lastSuccess, period); off != tt.off {
				t.Errorf("turned off: %v, want %v", off, tt.off)
			}
		})
	}
}
