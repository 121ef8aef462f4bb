package main

import (
	"context"
	"errors"
	"testing"

	"millwright/service/servicetest"
)

// A server that is asked to stop succeeds. A command that is interrupted does not.
func TestInterruption(t *testing.T) {
	h := newHarness(t)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := untilStopped(stopped, context.Canceled); err != nil {
		t.Errorf("a stopped server: %v", err)
	}
	for _, err := range []error{errors.New("failed"), context.DeadlineExceeded} {
		if untilStopped(stopped, err) == nil {
			t.Errorf("a server that failed with %v while it was stopped succeeds", err)
		}
	}
	if untilStopped(t.Context(), context.Canceled) == nil {
		t.Error("a server that ended by itself succeeds")
	}
	if _, err := runWith(stopped, "integrations", "turn-off", h.ID("reader")); err == nil {
		t.Error("an interrupted command succeeds")
	}
	if enabled := servicetest.Value[bool](h.Fixture, `SELECT enabled FROM integrations WHERE id = $1`, h.ID("reader")); !enabled {
		t.Error("an interrupted command turned the integration off")
	}
}
