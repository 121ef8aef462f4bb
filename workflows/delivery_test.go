package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/models"
)

// The schedule of spec section 6: the mailbox's attempt at 0, then 1m, 5m, 30m,
// 2h, 6h, 12h and 24h after the one before.
const (
	wholeSchedule = "0s 1m 6m 36m 2h36m 8h36m 20h36m 44h36m"
	lastAttempt   = "44h36m"
	retentionEnds = "720h"
)

func TestDeliveryThatAlwaysFailsIsAttemptedEightTimesAndWaitsForAnOperator(t *testing.T) {
	s := newScene(t)
	var after models.DeliveryStatus
	s.change("44h37m", func() { after = s.row.Status })
	s.run()
	s.attempted(wholeSchedule)
	if after != models.DeliveryFailed {
		t.Errorf("after the last attempt the delivery is %s, want failed", after)
	}
	s.closed(retentionEnds, models.DeliveryFailed)
}

func TestDeliveryClosesWhenAnAttemptSucceeds(t *testing.T) {
	tests := []struct{ number, times, closes string }{
		{"2", "0s 1m", "1m"},
		{"3", "0s 1m 6m", "6m"},
		{"8", wholeSchedule, lastAttempt},
	}
	for _, tt := range tests {
		t.Run("attempt "+tt.number, func(t *testing.T) {
			s := newScene(t)
			s.accepts = func(number int) bool { return fmt.Sprint(number) == tt.number }
			s.run()
			s.attempted(tt.times)
			s.closed(tt.closes, models.DeliveryDelivered)
		})
	}
}

func TestRedeliverWhileRetrying(t *testing.T) {
	t.Run("attempts at once and goes on with the schedule", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalRedeliver, "3m") // the third attempt, due at 6m
		s.run()
		s.attempted("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
		s.closed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("closes when the attempt succeeds", func(t *testing.T) {
		s := newScene(t)
		s.accepts = func(number int) bool { return number == 3 }
		s.signal(SignalRedeliver, "3m")
		s.run()
		s.attempted("0s 1m 3m")
		s.closed("3m", models.DeliveryDelivered)
	})
	t.Run("sent twice at the same moment attempts once", func(t *testing.T) {
		s := newScene(t)
		s.at("3m", func() {
			s.env.SignalWorkflowSkippingWorkflowTask(SignalRedeliver, nil)
			s.env.SignalWorkflow(SignalRedeliver, nil)
		})
		s.run()
		s.attempted("0s 1m 3m 33m 2h33m 8h33m 20h33m 44h33m")
	})
	t.Run("during an attempt is heard after it", func(t *testing.T) {
		s := newScene(t)
		s.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalRedeliver, nil)
			}
		}
		s.accepts = func(number int) bool { return number == 3 }
		s.run()
		s.attempted("0s 1m 1m")
		s.closed("1m", models.DeliveryDelivered)
	})
}

func TestRedeliverAfterTheLastAttempt(t *testing.T) {
	t.Run("delivers and closes", func(t *testing.T) {
		s := newScene(t)
		s.accepts = func(number int) bool { return number == 9 }
		s.signal(SignalRedeliver, "60h")
		s.run()
		s.attempted(wholeSchedule + " 60h")
		s.closed("60h", models.DeliveryDelivered)
	})
	t.Run("fails again and goes on, now and again at an operator's word", func(t *testing.T) {
		s := newScene(t)
		s.accepts = func(number int) bool { return number == 11 }
		s.signal(SignalRedeliver, "60h 60h0m30s")
		s.run()
		s.attempted(wholeSchedule + " 60h 60h0m30s 60h5m30s")
		s.closed("60h5m30s", models.DeliveryDelivered)
	})
	t.Run("fails for good after the whole schedule again and closes with the retention", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalRedeliver, "60h")
		s.run()
		s.attempted(wholeSchedule + " 60h 60h1m 60h6m 60h36m 62h36m 68h36m 80h36m 104h36m")
		s.closed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("in the console, by the row and a poke, does the same", func(t *testing.T) {
		s := newScene(t)
		s.accepts = func(number int) bool { return number == 9 }
		s.change("60h", func() {
			due := models.TimeOf(s.env.Now())
			s.row.Status, s.row.NextAttemptAt = models.DeliveryRetrying, &due
			s.env.SignalWorkflow(SignalWake, nil)
		})
		s.run()
		s.attempted(wholeSchedule + " 60h")
		s.closed("60h", models.DeliveryDelivered)
	})
}

func TestASignalThatArrivesAtTheEndIsHeard(t *testing.T) {
	for signal, more := range map[string]int{SignalWake: 1, SignalRedeliver: 1, SignalStop: 1, "": 0} {
		t.Run(signal, func(t *testing.T) {
			s := newScene(t)
			s.during = func(env *testsuite.TestWorkflowEnvironment, _ int) {
				if signal != "" {
					env.SignalWorkflow(signal, nil)
				}
			}
			s.accepts = func(number int) bool { return number == 2 }
			s.run()
			s.closed("1m", models.DeliveryDelivered)
			if len(s.calls) != 2+more {
				t.Errorf("%d activities, want a look, the attempt and %d more", len(s.calls), more)
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Run("gives up at once and stays open", func(t *testing.T) {
		s := newScene(t)
		var after models.DeliveryStatus
		s.signal(SignalStop, "3m")
		s.change("3m1s", func() { after = s.row.Status })
		s.run()
		s.attempted("0s 1m")
		if after != models.DeliveryFailed {
			t.Errorf("after stop the delivery is %s, want failed", after)
		}
		s.closed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("can be taken back by redeliver, which begins the schedule again", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalStop, "3m")
		s.signal(SignalRedeliver, "10m") // the third attempt
		s.accepts = func(number int) bool { return number == 4 }
		s.run()
		s.attempted("0s 1m 10m 11m")
		s.closed("11m", models.DeliveryDelivered)
	})
	t.Run("during an attempt is heard after it", func(t *testing.T) {
		s := newScene(t)
		s.during = func(env *testsuite.TestWorkflowEnvironment, _ int) { env.SignalWorkflow(SignalStop, nil) }
		s.run()
		s.attempted("0s 1m")
		s.closed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("after the last attempt changes nothing", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalStop, "60h")
		s.run()
		s.attempted(wholeSchedule)
		s.closed(retentionEnds, models.DeliveryFailed)
	})
}

func TestAddressTurnedOff(t *testing.T) {
	hold := func(s *scene) {
		s.addressOff = true
		s.row.Status, s.row.NextAttemptAt = models.DeliveryHeld, nil
	}
	t.Run("closes at the next wake, without an attempt", func(t *testing.T) {
		s := newScene(t)
		s.change("3m", func() { hold(s) })
		s.run()
		s.attempted("0s 1m")
		s.closed("6m", models.DeliveryHeld)
	})
	t.Run("closes at a poke", func(t *testing.T) {
		s := newScene(t)
		s.change("3m", func() { hold(s) })
		s.signal(SignalWake, "4m")
		s.run()
		s.attempted("0s 1m")
		s.closed("4m", models.DeliveryHeld)
	})
	t.Run("is noticed by the attempt itself", func(t *testing.T) {
		s := newScene(t)
		s.change("3m", func() { s.addressOff = true })
		s.run()
		s.attempted("0s 1m")
		s.closed("6m", models.DeliveryHeld)
	})
	t.Run("holds what an operator redelivers", func(t *testing.T) {
		s := newScene(t)
		s.change("60h", func() { s.addressOff = true })
		s.signal(SignalRedeliver, "61h")
		s.run()
		s.attempted(wholeSchedule)
		s.closed("61h", models.DeliveryHeld)
	})
	t.Run("by the final failure of this delivery leaves it open for redeliver", func(t *testing.T) {
		s := newScene(t)
		s.change("44h37m", func() { s.addressOff = true }) // a failed one is not held
		s.change("60h", func() { s.addressOff = false })
		s.signal(SignalRedeliver, "61h")
		s.accepts = func(number int) bool { return number == 9 }
		s.run()
		s.attempted(wholeSchedule + " 61h")
		s.closed("61h", models.DeliveryDelivered)
	})
}

func TestDeliveryOfARecordThatIsNoLongerReadableIsSkipped(t *testing.T) {
	s := newScene(t)
	s.change("3m", func() { s.unreadable = true })
	s.run()
	s.attempted("0s 1m")
	s.closed("6m", models.DeliverySkipped)
}

func TestDeliveryThatIsGoneClosesWithoutAnError(t *testing.T) {
	t.Run("before the workflow looked", func(t *testing.T) {
		s := newScene(t)
		s.gone = true
		s.run()
		s.attempted("0s")
		s.closed("0s", s.row.Status)
	})
	t.Run("while it waited for an attempt", func(t *testing.T) {
		s := newScene(t)
		s.change("3m", func() { s.gone = true })
		s.run()
		s.attempted("0s 1m")
		s.closed("6m", s.row.Status)
	})
	t.Run("while it waited for an operator", func(t *testing.T) {
		s := newScene(t)
		s.change("700h", func() { s.gone = true })
		s.signal(SignalRedeliver, "701h")
		s.run()
		s.attempted(wholeSchedule)
		s.closed("701h", s.row.Status)
	})
}

func TestRetentionThatEndsWhileRetryingClosesWithoutAnAttempt(t *testing.T) {
	s := newScene(t)
	s.row.KeptUntil = models.TimeOf(began.Add(10 * time.Minute))
	s.signal(SignalWake, "11m")
	s.run()
	s.attempted("0s 1m 6m")
	s.closed("11m", models.DeliveryRetrying)
}

func TestPoke(t *testing.T) {
	t.Run("looks again and does not attempt early", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalWake, "3m 2h 30h")
		s.run()
		s.attempted(wholeSchedule)
		for _, at := range durations("3m 2h 30h") {
			if !slices.Contains(s.looks, at) {
				t.Errorf("the poke at %v was not followed by a look at the row; looks at %v", at, s.looks)
			}
		}
	})
	t.Run("doubled changes nothing", func(t *testing.T) {
		s := newScene(t)
		s.signal(SignalWake, "1m 1m 1m 6m 6m 44h36m 44h36m")
		s.run()
		s.attempted(wholeSchedule)
		s.closed(retentionEnds, models.DeliveryFailed)
	})
	t.Run("takes a changed time of the next attempt from the row", func(t *testing.T) {
		s := newScene(t)
		s.change("3m", func() {
			sooner := models.TimeOf(began.Add(4 * time.Minute))
			s.row.NextAttemptAt = &sooner
			s.env.SignalWorkflow(SignalWake, nil)
		})
		s.accepts = func(number int) bool { return number == 3 }
		s.run()
		s.attempted("0s 1m 4m")
	})
	t.Run("that comes after the end closes again without an attempt", func(t *testing.T) {
		for _, status := range []models.DeliveryStatus{models.DeliveryDelivered, models.DeliveryHeld, models.DeliverySkipped, models.DeliveryPending} {
			s := newScene(t)
			s.row.Status, s.row.NextAttemptAt = status, nil
			s.run()
			s.attempted("0s")
			s.closed("0s", status)
		}
	})
	t.Run("that comes late attempts what is overdue at once", func(t *testing.T) {
		s := newScene(t)
		overdue := models.TimeOf(began.Add(-time.Hour))
		s.row.NextAttemptAt = &overdue
		s.accepts = func(int) bool { return true }
		s.run()
		s.attempted("0s 0s")
		s.closed("0s", models.DeliveryDelivered)
	})
	t.Run("that starts the workflow costs one look", func(t *testing.T) {
		s := newScene(t)
		s.accepts = func(int) bool { return true }
		s.run()
		if len(s.looks) != 1 {
			t.Errorf("the row was looked at %d times before the attempt, at %v; want once", len(s.looks), s.looks)
		}
	})
}
