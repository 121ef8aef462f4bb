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
