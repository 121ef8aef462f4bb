package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/models"
)

// The retry schedule of spec section 6: attempts at 0, then 1m, 5m, 30m, 2h, 6h,
// 12h and 24h after the previous one.
const (
	wholeSchedule = "0s 1m 6m 36m 2h36m 8h36m 20h36m 44h36m"
	lastAttempt   = "44h36m"
	retentionEnds = "720h"
)

func TestFailingDeliveryIsAttemptedEightTimesAndWaitsForAnOperator(t *testing.T) {
	h := newDeliveryHarness(t)
	var after models.DeliveryStatus
	h.change("44h37m", func() { after = h.row.Status })
	h.run()
	h.wantAttempts(wholeSchedule)
	if after != models.DeliveryFailed {
		t.Errorf("after the last attempt the delivery is %s, want failed", after)
	}
	h.wantClosed(retentionEnds, models.DeliveryFailed)
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
		})
	}
}

func TestRedeliverWhileRetrying(t *testing.T) {
	t.Run("attempts at once and continues the schedule", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalRedeliver, "3m") // the third attempt, due at 6m
		h.run()
		h.wantAttempts("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("closes when the attempt succeeds", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 3 }
		h.signal(SignalRedeliver, "3m")
		h.run()
		h.wantAttempts("0s 1m 3m")
		h.wantClosed("3m", models.DeliveryDelivered)
	})
	t.Run("sent twice at the same moment attempts once", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.at("3m", func() {
			h.env.SignalWorkflowSkippingWorkflowTask(SignalRedeliver, nil)
			h.env.SignalWorkflow(SignalRedeliver, nil)
		})
		h.run()
		h.wantAttempts("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
	})
	t.Run("during an attempt is handled after it", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalRedeliver, nil)
			}
		}
		h.accepts = func(number int) bool { return number == 3 }
		h.run()
		h.wantAttempts("0s 1m 1m")
		h.wantClosed("1m", models.DeliveryDelivered)
	})
}

func TestRedeliverAfterTheLastAttempt(t *testing.T) {
	t.Run("delivers and closes", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 9 }
		h.signal(SignalRedeliver, "60h")
		h.run()
		h.wantAttempts(wholeSchedule + " 60h")
		h.wantClosed("60h", models.DeliveryDelivered)
	})
	t.Run("fails again and continues, sometimes at an operator's request", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 11 }
		h.signal(SignalRedeliver, "60h 60h0m30s")
		h.run()
		h.wantAttempts(wholeSchedule + " 60h 60h0m30s 60h5m30s")
		h.wantClosed("60h5m30s", models.DeliveryDelivered)
	})
	t.Run("fails after the whole schedule again and closes with the retention", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalRedeliver, "60h")
		h.run()
		h.wantAttempts(wholeSchedule + " 60h 60h1m 60h6m 60h36m 62h36m 68h36m 80h36m 104h36m")
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("by a write to the row and a wake does the same", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(number int) bool { return number == 9 }
		h.change("60h", func() {
			due := models.TimeOf(h.env.Now())
			h.row.Status, h.row.NextAttemptAt = models.DeliveryRetrying, &due
			h.env.SignalWorkflow(SignalWake, nil)
		})
		h.run()
		h.wantAttempts(wholeSchedule + " 60h")
		h.wantClosed("60h", models.DeliveryDelivered)
	})
}

func TestSignalThatArrivesAtTheEndIsHandled(t *testing.T) {
	for signal, more := range map[string]int{SignalWake: 1, SignalRedeliver: 1, SignalStop: 1, "": 0} {
		t.Run(signal, func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.during = func(env *testsuite.TestWorkflowEnvironment, _ int) {
				if signal != "" {
					env.SignalWorkflow(signal, nil)
				}
			}
			h.accepts = func(number int) bool { return number == 2 }
			h.run()
			h.wantClosed("1m", models.DeliveryDelivered)
			if len(h.calls) != 2+more {
				t.Errorf("%d activities, want a load, the attempt and %d more", len(h.calls), more)
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Run("stops at once and stays open", func(t *testing.T) {
		h := newDeliveryHarness(t)
		var after models.DeliveryStatus
		h.signal(SignalStop, "3m")
		h.change("3m1s", func() { after = h.row.Status })
		h.run()
		h.wantAttempts("0s 1m")
		if after != models.DeliveryFailed {
			t.Errorf("after stop the delivery is %s, want failed", after)
		}
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("can be undone by redeliver, which restarts the schedule", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalStop, "3m")
		h.signal(SignalRedeliver, "10m") // the third attempt
		h.accepts = func(number int) bool { return number == 4 }
		h.run()
		h.wantAttempts("0s 1m 10m 11m")
		h.wantClosed("11m", models.DeliveryDelivered)
	})
	t.Run("during an attempt is handled after it", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.during = func(env *testsuite.TestWorkflowEnvironment, _ int) { env.SignalWorkflow(SignalStop, nil) }
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("after the last attempt changes nothing", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalStop, "60h")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
}

func TestAddressTurnedOff(t *testing.T) {
	hold := func(h *deliveryHarness) {
		h.addressOff = true
		h.row.Status, h.row.NextAttemptAt = models.DeliveryHeld, nil
	}
	t.Run("closes when the next attempt is due, without making it", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { hold(h) })
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed("6m", models.DeliveryHeld)
	})
	t.Run("closes at a wake", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { hold(h) })
		h.signal(SignalWake, "4m")
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed("4m", models.DeliveryHeld)
	})
	t.Run("is noticed by the attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() { h.addressOff = true })
		h.run()
		h.wantAttempts("0s 1m")
		h.wantClosed("6m", models.DeliveryHeld)
	})
	t.Run("holds what an operator redelivers", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("60h", func() { h.addressOff = true })
		h.signal(SignalRedeliver, "61h")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed("61h", models.DeliveryHeld)
	})
	t.Run("by this delivery's final failure, stays open for redeliver", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("44h37m", func() { h.addressOff = true }) // a failed one is not held
		h.change("60h", func() { h.addressOff = false })
		h.signal(SignalRedeliver, "61h")
		h.accepts = func(number int) bool { return number == 9 }
		h.run()
		h.wantAttempts(wholeSchedule + " 61h")
		h.wantClosed("61h", models.DeliveryDelivered)
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
		h.wantClosed("6m", h.row.Status)
	})
	t.Run("while it waited for an operator", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("700h", func() { h.gone = true })
		h.signal(SignalRedeliver, "701h")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed("701h", h.row.Status)
	})
}

func TestEndOfRetentionWhileRetryingClosesWithoutAnAttempt(t *testing.T) {
	h := newDeliveryHarness(t)
	h.row.KeptUntil = models.TimeOf(began.Add(10 * time.Minute))
	h.signal(SignalWake, "11m")
	h.run()
	h.wantAttempts("0s 1m 6m")
	h.wantClosed("11m", models.DeliveryRetrying)
}

func TestWake(t *testing.T) {
	t.Run("reloads and does not attempt early", func(t *testing.T) {
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
	t.Run("repeated changes nothing", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.signal(SignalWake, "1m 1m 1m 6m 6m 44h36m 44h36m")
		h.run()
		h.wantAttempts(wholeSchedule)
		h.wantClosed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("uses the row's new time of the next attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("3m", func() {
			sooner := models.TimeOf(began.Add(4 * time.Minute))
			h.row.NextAttemptAt = &sooner
			h.env.SignalWorkflow(SignalWake, nil)
		})
		h.accepts = func(number int) bool { return number == 3 }
		h.run()
		h.wantAttempts("0s 1m 4m")
	})
	t.Run("after the end closes again without an attempt", func(t *testing.T) {
		for _, status := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliveryHeld, models.DeliverySkipped, models.DeliveryPending} {
			h := newDeliveryHarness(t)
			h.row.Status, h.row.NextAttemptAt = status, nil
			h.run()
			h.wantAttempts("0s")
			h.wantClosed("0s", status)
		}
	})
	t.Run("after the due time attempts at once", func(t *testing.T) {
		h := newDeliveryHarness(t)
		overdue := models.TimeOf(began.Add(-time.Hour))
		h.row.NextAttemptAt = &overdue
		h.accepts = func(int) bool { return true }
		h.run()
		h.wantAttempts("0s 0s")
		h.wantClosed("0s", models.DeliveryDelivered)
	})
	t.Run("that starts the workflow costs one load", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.accepts = func(int) bool { return true }
		h.run()
		if len(h.loads) != 1 {
			t.Errorf("%d loads before the attempt, at %v; want 1", len(h.loads), h.loads)
		}
	})
}
