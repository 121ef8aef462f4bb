package workflows

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/sdk/temporal"

	"millwright/activities"
)

func nothingMore(int) (activities.DispatchResult, error) {
	return activities.DispatchResult{Delivered: 1}, nil
}

func TestAddressWorkflowDispatchesOnceForTheWakeThatStartsItAndEnds(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.wantDispatches(1, h.run())
}

func TestAddressWorkflowContinuesWhileADispatchLeavesMore(t *testing.T) {
	h := newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
		return activities.DispatchResult{More: number < 4}, nil
	})
	h.wantDispatches(4, h.run())
}

func TestWakeDuringADispatchCausesAnother(t *testing.T) {
	t.Run("one wake, one dispatch", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				h.wake(1)
			}
			return activities.DispatchResult{}, nil
		})
		h.wantDispatches(2, h.run())
	})
	t.Run("many wakes, one dispatch", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				h.wake(100)
			}
			return activities.DispatchResult{}, nil
		})
		h.wantDispatches(2, h.run())
	})
	t.Run("in each of three dispatches", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number <= 3 {
				h.wake(2)
			}
			return activities.DispatchResult{}, nil
		})
		h.wantDispatches(4, h.run())
	})
	t.Run("even if the dispatch failed first", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				h.wake(1)
				return activities.DispatchResult{}, errors.New("the database is unreachable")
			}
			return activities.DispatchResult{}, nil
		})
		h.wantDispatches(3, h.run()) // the first, its retry, and the wake's
	})
}

func TestAddressWorkflowContinuesAsNewAfterManyDispatches(t *testing.T) {
	t.Run("with the same address", func(t *testing.T) {
		h := newAddressHarness(t, func(int) (activities.DispatchResult, error) { return activities.DispatchResult{More: true}, nil })
		err := h.run()
		h.wantDispatches(dispatchesPerRun, nil)
		checkContinuesAs(t, err, "WebhookAddress", webhookID)
	})
	t.Run("if a wake arrives during the last of them", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number == dispatchesPerRun {
				h.wake(1)
			}
			return activities.DispatchResult{More: number < dispatchesPerRun}, nil
		})
		err := h.run()
		h.wantDispatches(dispatchesPerRun, nil)
		checkContinuesAs(t, err, "WebhookAddress", webhookID)
	})
	t.Run("but not if the last of them leaves nothing", func(t *testing.T) {
		h := newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			return activities.DispatchResult{More: number < dispatchesPerRun}, nil
		})
		h.wantDispatches(dispatchesPerRun, h.run())
	})
}

func TestFailedDispatchIsRetriedUntilItSucceeds(t *testing.T) {
	h := newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
		if number <= 20 {
			return activities.DispatchResult{}, errors.New("the database is unreachable")
		}
		return activities.DispatchResult{Delivered: 3}, nil
	})
	h.wantDispatches(21, h.run())
	if want := durations("0s 1s 3s 7s 11s 15s 19s"); !slices.Equal(h.dispatches[:len(want)], want) {
		t.Errorf("dispatches at %v, want them at %v and then every 4s", h.dispatches[:len(want)], want)
	}
}

func TestCancelledAddressWorkflowEnds(t *testing.T) {
	h := newAddressHarness(t, func(int) (activities.DispatchResult, error) {
		return activities.DispatchResult{}, errors.New("the database is unreachable")
	})
	h.at("1h", func() { h.env.CancelWorkflow() })
	if err := h.run(); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, want it cancelled", err)
	}
}

func TestDispatchTimeouts(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.wantDispatches(1, h.run())
	options := h.observer.steps[0].options
	if options.StartToCloseTimeout <= activities.MaxDispatchRun {
		t.Errorf("a dispatch times out after %v and may work for %v", options.StartToCloseTimeout, activities.MaxDispatchRun)
	}
	if options.HeartbeatTimeout != activities.DispatchHeartbeatTimeout {
		t.Errorf("a dead worker's dispatch is retried after %v, want %v", options.HeartbeatTimeout, activities.DispatchHeartbeatTimeout)
	}
	if options.Summary != "send pending deliveries" {
		t.Errorf("the summary is %q", options.Summary)
	}
}
