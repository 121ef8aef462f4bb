package api

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Probes that strangers send ask the servers behind the API once a second.
func TestReadinessIsAskedOnceASecond(t *testing.T) {
	var r readiness
	asked, broken := 0, errors.New("broken")
	ask := func() error {
		return r.ask(t.Context(), func(context.Context) error {
			asked++
			return broken
		})
	}
	for range 3 {
		if err := ask(); !errors.Is(err, broken) {
			t.Errorf("the answer is %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times in a second", asked)
	}
	r.at = time.Now().Add(-readyFor)
	_ = ask()
	if asked != 2 {
		t.Errorf("asked %d times after a second", asked)
	}
}
