package workflows

import (
	"strings"
	"testing"

	"millwright/models"
)

// Which reminders a date has is in the tests of models. These are about changes while a workflow waits.
func TestReminders(t *testing.T) {
	tests := []struct{ name, plan, want string }{
		{"a day before and at the target date", "0s date 72h, 100h complete", "48h due_soon, 72h due"},
		{"not after completion", "0s date 102h, 100h complete", "78h due_soon"},
		{"not when completed at that moment", "0s date 100h, 100h complete", "76h due_soon"},
		{"postponed while the timer runs", "0s date 72h, 10h date 120h, 200h complete", "96h due_soon, 120h due"},
		{"brought forward while the timer runs", "0s date 120h, 10h date 60h, 200h complete", "36h due_soon, 60h due"},
		{"postponed between the two", "0s date 72h, 50h date 100h, 200h complete", "48h due_soon, 76h due_soon, 100h due"},
		{"postponed and brought back in time", "0s date 72h, 10h date 120h, 20h date 72h, 200h complete", "48h due_soon, 72h due"},
		{"postponed and brought back too late for the first", "0s date 72h, 10h date 120h, 50h date 72h, 200h complete", "72h due"},
		{"cleared", "0s date 72h, 50h no date, 200h complete", "48h due_soon"},
		{"of the date in review too, since the work is open",
			"0s date 72h, 60h sent_to_inspection, 80h back_from_inspection, 200h complete", "48h due_soon, 72h due"},
		{"not on hold, but at the resumption", "0s date 72h, 60h on_hold, 80h in_progress, 200h complete", "48h due_soon, 80h due"},
		{"first one due on hold, resumed before the date", "0s date 72h, 30h on_hold, 60h in_progress, 200h complete", "60h due_soon, 72h due"},
		{"first one due on hold, resumed after the date", "0s date 72h, 30h on_hold, 80h in_progress, 200h complete", "80h due"},
		{"not again after a hold",
			"0s date 72h, 50h on_hold, 60h in_progress, 80h on_hold, 90h in_progress, 200h complete", "48h due_soon, 72h due"},
		{"put on hold just before, and the wake is lost",
			"0s date 72h, 71h59m59.999s on_hold without wake, 80h in_progress, 200h complete", "48h due_soon, 80h due"},
		{"postponed just before, and the wake is lost",
			"0s date 72h, 71h59m59.999s date 120h without wake, 200h complete", "48h due_soon, 96h due_soon, 120h due"},

		{"two days into the review, then approved", "10h sent_to_inspection, 70h complete", "58h review_waiting"},
		// Not 58h: while an activity runs, the simulated clock follows real time.
		{"not if approved before", "10h sent_to_inspection, 57h59m complete", ""},
		{"sent back in time, then a second review waits",
			"10h sent_to_inspection, 20h back_from_inspection, 30h sent_to_inspection, 100h complete", "78h review_waiting"},
		{"one for each review", "10h sent_to_inspection, 60h back_from_inspection, 70h sent_to_inspection, 130h complete",
			"58h review_waiting, 118h review_waiting"},
		{"sent back and into review again, and the wakes are lost",
			"10h sent_to_inspection, 20h back_from_inspection without wake, 30h sent_to_inspection without wake, 100h complete",
			"78h review_waiting"},
		{"then escalated", "10h sent_to_inspection, 200h complete", "58h review_waiting, 106h review_overdue"},
		{"not escalated if sent back before",
			"10h sent_to_inspection, 105h59m back_from_inspection, 110h sent_to_inspection, 150h complete", "58h review_waiting"},
		{"of the review in addition to the target date's", "0s date 60h, 12h sent_to_inspection, 70h complete",
			"36h due_soon, 60h due, 60h review_waiting"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
				h.plan(tt.plan)
				h.run()
				h.wantNotified(tt.want)
				writes := strings.Split(tt.plan, ", ")
				end, _, _ := strings.Cut(writes[len(writes)-1], " ")
				h.wantClosed(end)
			})
		})
	}
}

func TestWorkThatNoOneCanDo(t *testing.T) {
	for _, plan := range []string{"100h complete", "10h sent_to_inspection, 50h complete"} {
		h := newWorkOrderHarness(t)
		h.plan(plan)
		h.write("20h", func() { h.dates.NoOneCanSince = timeAt(h.now()) })
		h.run()
		h.wantNotified("20h no_one_can")
	}
}

func TestWakeDuringALoadCausesAnotherLoad(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.write("1h", func() { h.setStatus(models.StatusComplete) })
		last := false
		h.duringLoad = func(int) {
			if h.status == string(models.StatusComplete) && !last {
				last = true
				h.commit(func() {})
				h.env.SignalWorkflow(SignalWake, nil)
			}
		}
		h.run()
		h.wantClosed("1h")
	})
}

func TestWorkflowsOfRemovedRecordsEnd(t *testing.T) {
	for _, newHarness := range []func(reporter) *recordHarness{newWorkOrderHarness, newFeedbackHarness} {
		h := newHarness(t)
		h.write("10h", func() { h.gone = true })
		h.run()
		h.wantClosed("10h")
	}
}
