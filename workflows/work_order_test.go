package workflows

import (
	"testing"

	"millwright/models"
)

func TestWorkOrderFromCreationToItsEnd(t *testing.T) {
	for _, end := range []models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled} {
		t.Run(string(end), func(t *testing.T) {
			inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
				h.write("2h", func() { h.setStatus(models.StatusInProgress) })
				h.write("5h", func() { h.setStatus(end) })
				h.run()
				h.wantClosed("5h")
			})
		})
	}
}

func TestTargetDateReminders(t *testing.T) {
	tests := []struct {
		name  string
		plan  func(h *recordHarness)
		want  string // the reminders
		until string
	}{
		{"a day before and at the target date", func(h *recordHarness) { h.setTargetDate("72h") }, "48h due_soon wim, 72h due wim", "100h"},
		{"a day before, just after the creation", func(h *recordHarness) { h.setTargetDate("24h1m") }, "1m due_soon wim, 24h1m due wim", "100h"},
		{"not a day before if set a day before", func(h *recordHarness) { h.setTargetDate("24h") }, "24h due wim", "100h"},
		{"not a day before if set less than a day before", func(h *recordHarness) { h.setTargetDate("10h") }, "10h due wim", "100h"},
		{"not of a date in the past", func(h *recordHarness) { h.setTargetDate("-10h") }, "", "100h"},
		{"not without a date", func(*recordHarness) {}, "", "100h"},
		{"not after completion", func(h *recordHarness) { h.setTargetDate("102h") }, "78h due_soon wim", "100h"},
		{"not when completed at that moment", func(h *recordHarness) { h.setTargetDate("100h") }, "76h due_soon wim", "100h"},
		{"postponed while the timer runs", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("10h", func() { h.setTargetDate("120h") })
		}, "96h due_soon wim, 120h due wim", "200h"},
		{"brought forward while the timer runs", func(h *recordHarness) {
			h.setTargetDate("120h")
			h.write("10h", func() { h.setTargetDate("60h") })
		}, "36h due_soon wim, 60h due wim", "200h"},
		{"brought forward to less than a day away", func(h *recordHarness) {
			h.setTargetDate("120h")
			h.write("10h", func() { h.setTargetDate("20h") })
		}, "20h due wim", "200h"},
		{"postponed between the two", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("50h", func() { h.setTargetDate("100h") })
		}, "48h due_soon wim, 76h due_soon wim, 100h due wim", "200h"},
		{"postponed and brought back in time", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("10h", func() { h.setTargetDate("120h") })
			h.write("20h", func() { h.setTargetDate("72h") })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"postponed and brought back too late for the first", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("10h", func() { h.setTargetDate("120h") })
			h.write("50h", func() { h.setTargetDate("72h") })
		}, "72h due wim", "200h"},
		{"postponed after it passed", func(h *recordHarness) {
			h.setTargetDate("30h")
			h.write("40h", func() { h.setTargetDate("90h") })
		}, "6h due_soon wim, 30h due wim, 66h due_soon wim, 90h due wim", "200h"},
		{"cleared", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("50h", func() { h.setTargetDate("") })
		}, "48h due_soon wim", "200h"},
		{"to the workers assigned by then", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.writeWithoutWake("60h", func() { h.workers = []string{"wes", "wut"} })
		}, "48h due_soon wim, 72h due wes, 72h due wut", "200h"},
		{"to no one if no person is assigned", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.workers = nil
		}, "", "200h"},
		{"in review too, since the work is open", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("60h", func() { h.setStatus(models.StatusSentToInspection) })
			h.write("80h", func() { h.setStatus(models.StatusBackFromInspection) })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"not on hold, but at the resumption", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("60h", func() { h.setStatus(models.StatusOnHold) })
			h.write("80h", func() { h.setStatus(models.StatusInProgress) })
		}, "48h due_soon wim, 80h due wim", "200h"},
		{"first reminder due on hold, resumed before the date", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("30h", func() { h.setStatus(models.StatusOnHold) })
			h.write("60h", func() { h.setStatus(models.StatusInProgress) })
		}, "60h due_soon wim, 72h due wim", "200h"},
		{"first reminder due on hold, resumed after the date", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("30h", func() { h.setStatus(models.StatusOnHold) })
			h.write("80h", func() { h.setStatus(models.StatusInProgress) })
		}, "80h due wim", "200h"},
		{"not again after a hold", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("50h", func() { h.setStatus(models.StatusOnHold) })
			h.write("60h", func() { h.setStatus(models.StatusInProgress) })
			h.write("80h", func() { h.setStatus(models.StatusOnHold) })
			h.write("90h", func() { h.setStatus(models.StatusInProgress) })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"cancelled while on hold", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.write("30h", func() { h.setStatus(models.StatusOnHold) })
		}, "", "200h"},
		{"put on hold just before, and the wake is lost", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.writeWithoutWake("71h59m59.999s", func() { h.setStatus(models.StatusOnHold) })
			h.write("80h", func() { h.setStatus(models.StatusInProgress) })
		}, "48h due_soon wim, 80h due wim", "200h"},
		{"postponed just before, and the wake is lost", func(h *recordHarness) {
			h.setTargetDate("72h")
			h.writeWithoutWake("71h59m59.999s", func() { h.setTargetDate("120h") })
		}, "48h due_soon wim, 96h due_soon wim, 120h due wim", "200h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
				tt.plan(h)
				h.write(tt.until, func() { h.setStatus(models.StatusComplete) })
				h.run()
				h.wantNotified(tt.want)
				h.wantClosed(tt.until)
			})
		})
	}
}

func TestReviewReminders(t *testing.T) {
	review := func(h *recordHarness) { h.setStatus(models.StatusSentToInspection) }
	back := func(h *recordHarness) { h.setStatus(models.StatusBackFromInspection) }
	approve := func(h *recordHarness) { h.setStatus(models.StatusComplete) }
	tests := []struct {
		name string
		plan func(h *recordHarness)
		want string
		ends string
	}{
		{"two days into the review, then approved", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("70h", func() { approve(h) })
		}, "58h review_waiting cat", "70h"},
		{"not if approved before", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("57h59m", func() { approve(h) }) // not 58h: while an activity runs, the simulated clock follows real time
		}, "", "57h59m"},
		{"sent back in time, then a second review waits", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("20h", func() { back(h) })
			h.write("30h", func() { review(h) })
			h.write("100h", func() { approve(h) })
		}, "78h review_waiting cat", "100h"},
		{"one for each review", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("60h", func() { back(h) })
			h.write("70h", func() { review(h) })
			h.write("130h", func() { approve(h) })
		}, "58h review_waiting cat, 118h review_waiting cat", "130h"},
		{"sent back and into review again, and the wakes are lost", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.writeWithoutWake("20h", func() { h.setStatus(models.StatusBackFromInspection) })
			h.writeWithoutWake("30h", func() { h.setStatus(models.StatusSentToInspection) })
			h.write("100h", func() { approve(h) })
		}, "78h review_waiting cat", "100h"},
		{"then escalated to the inventory managers", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("200h", func() { approve(h) })
		}, "58h review_waiting cat, 106h review_overdue max", "200h"},
		{"not escalated if sent back before", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("105h59m", func() { back(h) })
			h.write("110h", func() { review(h) })
			h.write("150h", func() { approve(h) })
		}, "58h review_waiting cat", "150h"},
		{"to the managers of that time", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.writeWithoutWake("60h", func() { h.managers = []string{"mel", "moe"} })
			h.write("110h", func() { approve(h) })
		}, "58h review_waiting cat, 106h review_overdue mel, 106h review_overdue moe", "110h"},
		{"not if cancelled during the review", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.write("20h", func() { h.setStatus(models.StatusCancelled) })
		}, "", "20h"},
		{"to the consultants of that time", func(h *recordHarness) {
			h.write("10h", func() { review(h) })
			h.writeWithoutWake("40h", func() { h.consultants = []string{"coe", "cyd"} })
			h.write("70h", func() { approve(h) })
		}, "58h review_waiting coe, 58h review_waiting cyd", "70h"},
		{"in addition to the target date's", func(h *recordHarness) {
			h.setTargetDate("60h")
			h.write("12h", func() { review(h) })
			h.write("70h", func() { approve(h) })
		}, "36h due_soon wim, 60h due wim, 60h review_waiting cat", "70h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
				h.consultants = []string{"cat"}
				tt.plan(h)
				h.run()
				h.wantNotified(tt.want)
				h.wantClosed(tt.ends)
			})
		})
	}
}

func TestWakeAfterTheEndStartsTheWorkflowAgain(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.write("1h", func() { h.setStatus(models.StatusComplete) })
		h.write("30h", func() {})
		h.write("31h", func() {})
		h.run()
		h.wantClosed("31h")
		if h.starts != 3 {
			t.Errorf("%d starts, want one and one for each of the two wakes", h.starts)
		}
	})
}

func TestWakeDuringALoadCausesAnotherLoad(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.write("1h", func() { h.setStatus(models.StatusComplete) })
		last := false
		h.duringLoad = func(int) {
			if h.status == string(models.StatusComplete) && !last {
				last = true
				h.mu.Lock()
				h.dirty = true
				h.mu.Unlock()
				h.env.SignalWorkflow(SignalWake, nil)
			}
		}
		h.run()
		h.wantClosed("1h")
	})
}

func TestSweepMakesUpForALostWake(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.setTargetDate("72h")
		h.writeWithoutWake("10h", func() { h.setStatus(models.StatusCancelled) })
		h.at("11h", h.wake) // the sweep's
		h.run()
		h.wantClosed("11h")
	})
}

func TestReminderThatNoLongerAppliesIsNotSent(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.setTargetDate("72h")
		h.writeWithoutWake("40h", func() { h.setStatus(models.StatusCancelled) })
		h.run()
		h.wantNotified("")
		h.wantClosed("48h") // noticed when the timer fires
	})
}

func TestWorkflowOfARemovedWorkOrderEnds(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.setTargetDate("72h")
	h.write("10h", func() { h.gone = true })
	h.run()
	h.wantNotified("")
	h.wantClosed("10h")
}
