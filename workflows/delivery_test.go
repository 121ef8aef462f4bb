package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/store"
)

// The retry schedule of api.md 6.9: attempts at 0, then 1m, 5m, 30m, 2h, 6h,
// 12h and 24h after the previous one.
const (
	wholeSchedule = "0s 1m 6m 36m 2h36m 8h36m 20h36m 44h36m"
	lastAttempt   = "44h36m"
	retentionEnds = "720h"
)

func TestFailingDeliveryIsShownThroughItsScheduleAndWaitsForAnOperator(t *testing.T) {
	h := newDeliveryHarness(t)
	h.run()
	h.wantAttempts(wholeSchedule)
	h.wantClosed(retentionEnds, models.DeliveryFailed)
	if len(h.checks) != 1 { // at the end of the retention
		t.Errorf("the row was read at %v although each attempt was reported", h.checks)
	}
}

func TestDeliveryClosesWhenAnAttemptSucceeds(t *testing.T) {
	tests := []struct{ number, times, closes string }{
		{"2", "0s 1m", "1m"},
		{"3", "0s 1m 6m", "6m"},
		{"8", wholeSchedule, lastAttempt},
	}
	for _, tt := range tests {
		t.Run("attempt "+tt.number, func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.accepts = func(number int) bool { return fmt.Sprint(number) == tt.number }
			h.run()
			h.wantAttempts(tt.times)
			h.wantClosed(tt.closes, models.DeliveryDelivered)
			if len(h.calls) != 1 {
				t.Errorf("%d activities, want only the load at the beginning", len(h.calls))
			}
		})
	}
}

// Operators redeliver by update or signal.
func TestRedeliver(t *testing.T) {
	for _, by := range []string{"update", "signal"} {
		redeliver := func(h *deliveryHarness, times string) {
			for at := range strings.FieldsSeq(times) {
				if by == "signal" {
					h.signal(SignalRedeliver, at)
				} else {
					h.update(at, SignalRedeliver, "{}")
				}
			}
		}
		t.Run(by+" while retrying attempts at once and continues the schedule", func(t *testing.T) {
			h := newDeliveryHarness(t)
			redeliver(h, "3m") // the third attempt, due at 6m
			h.run()
			h.wantAttempts("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
			h.wantClosed(retentionEnds, models.DeliveryFailed)
		})
		t.Run(by+" closes when the attempt succeeds", func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.accepts = func(number int) bool { return number == 3 }
			redeliver(h, "3m")
			h.run()
			h.wantAttempts("0s 1m 3m")
			h.wantClosed("3m", models.DeliveryDelivered)
		})
		t.Run(by+" after the last attempt delivers and closes", func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.accepts = func(number int) bool { return number == 9 }
			redeliver(h, "60h")
			h.run()
			h.wantAttempts(wholeSchedule + " 60h")
			h.wantClosed("60h", models.DeliveryDelivered)
		})
		t.Run(by+" fails after the whole schedule again and closes with the retention", func(t *testing.T) {
			h := newDeliveryHarness(t)
			redeliver(h, "60h")
			h.run()
			h.wantAttempts(wholeSchedule + " 60h 60h1m 60h6m 60h36m 62h36m 68h36m 80h36m 104h36m")
			h.wantClosed(retentionEnds, models.DeliveryFailed)
		})
	}
	t.Run("sent twice at the same moment attempts once", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.at("3m", func() {
			h.env.SignalWorkflowSkippingWorkflowTask(SignalRedeliver, nil)
			h.env.SignalWorkflow(SignalRedeliver, nil)
		})
		h.run()
		h.wantAttempts("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
	})
	t.Run("returns the state after the attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 10 }
		first, second := h.update("60h", SignalRedeliver, ""), h.update("60h0m30s", SignalRedeliver, "{}")
		h.run()
		next := models.TimeOf(began.Add(60*time.Hour + time.Minute))
		if got, _ := first.result.(DeliveryResult); got.Status != models.DeliveryRetrying || got.Attempts != 9 || got.LastResult != "503" || *got.NextAttemptAt != next {
			t.Errorf("the first returned %+v, %v", got, first.failed)
		}
		if got, _ := second.result.(DeliveryResult); got != (DeliveryResult{models.DeliveryDelivered, 10, "204", nil}) {
			t.Errorf("the second returned %+v, %v", got, second.failed)
		}
		h.wantClosed("60h0m30s", models.DeliveryDelivered)
	})
	t.Run("returns the state if no attempt is reported in time", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.mute = true
		got := h.update("3m", SignalRedeliver, "{}")
		h.run()
		if result, _ := got.result.(DeliveryResult); result.Status != models.DeliveryRetrying || got.at > 3*time.Minute+maxUpdate {
			t.Errorf("it returned %+v at %v", got.result, got.at)
		}
	})
	t.Run("by a write to the row and a wake does the same", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 9 }
		h.change("60h", func() {
			due := models.TimeOf(h.env.Now())
			h.row.Status, h.row.NextAttemptAt = models.DeliveryRetrying, &due
			h.planAttempt()
			h.env.SignalWorkflow(SignalWake, nil)
		})
		h.run()
		h.wantAttempts(wholeSchedule + " 60h")
		h.wantClosed("60h", models.DeliveryDelivered)
	})
}

// Operators stop by update, signal or cancellation.
func TestStop(t *testing.T) {
	for _, by := range []string{"update", "signal", "cancellation"} {
		stop := func(h *deliveryHarness, at string) {
			switch by {
			case "update":
				h.update(at, SignalStop, "{}")
			case "signal":
				h.signal(SignalStop, at)
			default:
				h.at(at, func() { h.env.CancelWorkflow() })
			}
		}
		t.Run(by+" stops at once and stays open", func(t *testing.T) {
			h := newDeliveryHarness(t)
			var after models.DeliveryStatus
			stop(h, "3m")
			h.change("3m1s", func() { after = h.row.Status })
			h.run()
			h.wantAttempts("0s 1m")
			if after != models.DeliveryFailed {
				t.Errorf("after stop the delivery is %s, want failed", after)
			}
			h.wantClosed(retentionEnds, models.DeliveryFailed)
		})
		t.Run(by+" can be undone by redeliver, which restarts the schedule", func(t *testing.T) {
			h := newDeliveryHarness(t)
			stop(h, "3m")
			h.signal(SignalRedeliver, "10m") // the third attempt
			h.accepts = func(number int) bool { return number == 4 }
			h.run()
			h.wantAttempts("0s 1m 10m 11m")
			h.wantClosed("11m", models.DeliveryDelivered)
		})
		t.Run(by+" after the last attempt has no effect", func(t *testing.T) {
			h := newDeliveryHarness(t)
			stop(h, "60h")
			h.run()
			h.wantAttempts(wholeSchedule)
			h.wantClosed(retentionEnds, models.DeliveryFailed)
		})
	}
	t.Run("can be requested by cancellation again in the next run", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.at("3m", func() { h.env.CancelWorkflow() })
		h.signal(SignalRedeliver, "10m")
		h.at("10m30s", func() { h.env.CancelWorkflow() })
		h.run()
		h.wantAttempts("0s 1m 10m")
		h.wantClosed(retentionEnds, models.DeliveryFailed)
		if h.runs != 3 {
			t.Errorf("%d runs, want a new one after each cancellation", h.runs)
		}
	})
}

func TestRejectedUpdatesOfADelivery(t *testing.T) {
	h := newDeliveryHarness(t)
	rejected := map[string]*update{}
	for at, input := range map[string]string{"1s": `{"now": "true"}`, "2s": `[]`, "3s": `"x"`} {
		for _, name := range []string{SignalRedeliver, SignalStop} {
			rejected[name+" "+input] = h.update(at, name, input)
		}
	}
	late, off := h.update("60h", SignalStop, "{}"), h.update("61h", SignalRedeliver, "{}")
	h.change("60h30m", func() { h.addressOff = true })
	h.run()
	for what, got := range rejected {
		if got.accepted || got.rejected == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if !late.accepted || late.failed == nil || !strings.Contains(late.failed.Error(), "The delivery is failed.") {
		t.Errorf("stopping a failed one: %+v", late)
	}
	if !off.accepted || off.failed == nil || !strings.Contains(off.failed.Error(), "turn it on first") {
		t.Errorf("redelivering to an address that is off: %+v", off)
	}
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

func TestAddressTurnedOff(t *testing.T) {
	hold := func(h *deliveryHarness) {
		h.addressOff = true
		h.row.Status, h.row.NextAttemptAt = models.DeliveryHeld, nil
	}
	t.Run("stays open until the delivery is released and delivered", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { hold(h); h.env.SignalWorkflow(SignalWake, nil) })
		h.change("50h", func() {
			h.addressOff = false
			h.row.Status = models.DeliveryPending
		})
		h.at("50h1s", func() {
			h.mu.Lock()
			due := models.TimeOf(h.env.Now())
			h.row.Status, h.row.NextAttemptAt = models.DeliveryRetrying, &due
			h.accepts = func(int) bool { return true }
			told := h.dispatch(due)
			h.mu.Unlock()
			h.env.SignalWorkflow(SignalAttempted, told)
		})
		h.run()
		h.wantAttempts("0s 1m 50h0m1s")
		h.wantClosed("50h0m1s", models.DeliveryDelivered)
		if last := h.observer.timers[len(h.observer.timers)-1]; !strings.HasPrefix(last.summary, "held") {
			t.Errorf("the last timer is %+v", last)
		}
	})
	t.Run("stays open until the end of the retention", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { h.addressOff = true })
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed(retentionEnds, models.DeliveryHeld)
	})
}

func TestDeliveryOfARecordThatIsNoLongerReadableIsSkipped(t *testing.T) {
	h := newDeliveryHarness(t)
	h.change("3m", func() { h.unreadable = true })
	h.run()
	h.wantAttempts("0s 1m")
	h.wantClosed("6m", models.DeliverySkipped)
}

func TestRemovedDeliveryClosesWithoutAnError(t *testing.T) {
	t.Run("before the workflow loaded it", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.gone = true
		h.run()
		h.wantAttempts("0s")
		h.wantClosed("0s", h.row.Status)
	})
	t.Run("while it waited for an attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { h.gone = true })
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed("6m15s", h.row.Status)
	})
	t.Run("while it waited for an operator", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("700h", func() { h.gone = true })
		got := h.update("701h", SignalRedeliver, "{}")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed("701h", h.row.Status)
		if result, _ := got.result.(DeliveryResult); result.Status != "gone" {
			t.Errorf("the update returned %+v, %v", got.result, got.failed)
		}
	})
}

func TestEndOfRetentionWhileRetryingCloses(t *testing.T) {
	h := newDeliveryHarness(t)
	h.row.KeptUntil = models.TimeOf(began.Add(10 * time.Minute))
	h.run()
	h.wantAttempts("0s 1m 6m")
	h.wantClosed("10m", models.DeliveryRetrying)
}

func TestWake(t *testing.T) {
	t.Run("reloads", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalWake, "3m 2h 30h")
		h.run()
		h.wantAttempts(wholeSchedule)
		for _, at := range durations("3m 2h 30h") {
			if !slices.Contains(h.loads, at) {
				t.Errorf("no load after the wake at %v; loads at %v", at, h.loads)
			}
		}
	})
	t.Run("repeated has no effect", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalWake, "1m 1m 1m 6m 6m 44h36m 44h36m")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("after the end closes again", func(t *testing.T) {
		for _, status := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliverySkipped} {
			h := newDeliveryHarness(t)
			h.row.Status, h.row.NextAttemptAt = status, nil
			h.run()
			h.wantAttempts("0s")
			h.wantClosed("0s", status)
		}
	})
	t.Run("that starts the workflow costs one load", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(int) bool { return true }
		h.run()
		if len(h.loads) != 1 {
			t.Errorf("loads at %v; want one", h.loads)
		}
	})
}

// The signal attempted is a hint: the timer ends once the attempt can no longer be under
// way, and the workflow reads the row.
func TestLostSignalsOfAttempts(t *testing.T) {
	t.Run("are found by the timer", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.mute = true
		h.accepts = func(number int) bool { return number == 3 }
		h.run()
		h.wantAttempts("0s 1m 6m")
		if want := durations("1m15s 6m15s"); !slices.Equal(h.checks, want) {
			t.Errorf("the row was read at %v, want %v", h.checks, want)
		}
		h.wantClosed("6m15s", models.DeliveryDelivered)
	})
	t.Run("or the address is woken", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.asleep = true
		h.accepts = func(number int) bool { return number == 2 }
		h.run()
		h.wantAttempts("0s 1m15s")
		h.wantClosed("1m15s", models.DeliveryDelivered)
	})
	t.Run("and again, less often each time", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.stuck = true
		h.change("5h", func() { h.stuck = false })
		h.accepts = func(int) bool { return true }
		h.run()
		if want := durations("1m15s 2m15s 4m15s 8m15s 16m15s 32m15s 1h4m15s 2h4m15s 3h4m15s 4h4m15s 5h4m15s"); !slices.Equal(h.checks, want) {
			t.Errorf("the address was woken at %v,\nwant %v", h.checks, want)
		}
		h.wantClosed("5h4m15s", models.DeliveryDelivered)
	})
	t.Run("one that is missing is loaded", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("30s", func() { h.mute = true })
		h.change("65s", func() { h.mute = false }) // before the timer ends
		h.change("66s", func() {
			h.env.SignalWorkflow(SignalAttempted, &store.AttemptSignal{Number: 1, Result: "503", Status: models.DeliveryRetrying})
			h.env.SignalWorkflow(SignalAttempted, &store.AttemptSignal{Number: 5, Result: "204", Status: models.DeliveryDelivered})
		})
		h.run()
		h.wantAttempts(wholeSchedule)
		if want := durations("0s 1m6s 44h36m"); !slices.Equal(h.loads, want) {
			t.Errorf("loads at %v, want %v", h.loads, want)
		}
	})
}
