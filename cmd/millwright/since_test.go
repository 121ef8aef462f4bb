package main

import (
	"testing"
	"time"
)

// Commands read the times that the API reads (api.md 2.7), and durations.
func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-03-01T08:00:00Z": "2026-03-01T08:00:00Z", "2026-03-01T08:00:00+02:00": "2026-03-01T06:00:00Z", "2026-03-01T23:59:00+23:59": "2026-03-01T00:00:00Z",
		"36h": "2026-03-01T00:00:00Z", "0s": "2026-03-02T12:00:00Z",
		"2026-03-01T08:00:00+24:00": "", "2026-03-01T08:00:00-23:60": "", "2026-03-01": "", "yesterday": "", "-1h": "", "": "",
	} {
		at, err := parseSince(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q is read as %s", text, at)
			}
			continue
		}
		if err != nil || at.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q is read as %s, error %v; want %s", text, at, err, want)
		}
	}
}
