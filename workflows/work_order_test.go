package workflows

import (
	"testing"
	"time"

	"millwright/models"
)

func TestWorkOrderFromCreationToItsEnd(t *testing.T) {
	for _, end := range []models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled} {
		t.Run(string(end), func(t *testing.T) {
			inBothWays(t, newDesk, func(t *testing.T, d *desk) {
				d.write("2h", func() { d.move(models.StatusInProgress) })
				d.write("5h", func() { d.move(end); d.tell("ended", "mia", "wim") })
				d.run()
				d.told("0s assigned wim, 5h ended mia, 5h ended wim")
				d.closed("5h")
			})
		})
	}
}

func TestTargetDateReminders(t *testing.T) {
	tests := []struct {
		name  string
		plan  func(d *desk)
		told  string // of reminders
		until string
	}{
		{"exactly a day before and at it", func(d *desk) { d.aim("72h") }, "48h due_soon wim, 72h due wim", "100h"},
		{"a day before, right after it was created", func(d *desk) { d.aim("24h1m") }, "1m due_soon wim, 24h1m due wim", "100h"},
		{"none a day before when it is set a day before", func(d *desk) { d.aim("24h") }, "24h due wim", "100h"},
		{"none a day before when it is set less than a day away", func(d *desk) { d.aim("10h") }, "10h due wim", "100h"},
		{"none for a date that was past when it was set", func(d *desk) { d.aim("-10h") }, "", "100h"},
		{"none without a date", func(*desk) {}, "", "100h"},
		{"none when it is complete before", func(d *desk) { d.aim("102h") }, "78h due_soon wim", "100h"},
		{"nor when it ends at that moment", func(d *desk) { d.aim("100h") }, "76h due_soon wim", "100h"},
		{"moved away while the timer runs", func(d *desk) {
			d.aim("72h")
			d.write("10h", func() { d.aim("120h") })
		}, "96h due_soon wim, 120h due wim", "200h"},
		{"moved near while the timer runs", func(d *desk) {
			d.aim("120h")
			d.write("10h", func() { d.aim("60h") })
		}, "36h due_soon wim, 60h due wim", "200h"},
		{"moved to less than a day away", func(d *desk) {
			d.aim("120h")
			d.write("10h", func() { d.aim("20h") })
		}, "20h due wim", "200h"},
		{"moved away between the two", func(d *desk) {
			d.aim("72h")
			d.write("50h", func() { d.aim("100h") })
		}, "48h due_soon wim, 76h due_soon wim, 100h due wim", "200h"},
		{"moved away and back in time", func(d *desk) {
			d.aim("72h")
			d.write("10h", func() { d.aim("120h") })
			d.write("20h", func() { d.aim("72h") })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"moved away and back too late for the first", func(d *desk) {
			d.aim("72h")
			d.write("10h", func() { d.aim("120h") })
			d.write("50h", func() { d.aim("72h") })
		}, "72h due wim", "200h"},
		{"moved after it had passed", func(d *desk) {
			d.aim("30h")
			d.write("40h", func() { d.aim("90h") })
		}, "6h due_soon wim, 30h due wim, 66h due_soon wim, 90h due wim", "200h"},
		{"taken away", func(d *desk) {
			d.aim("72h")
			d.write("50h", func() { d.aim("") })
		}, "48h due_soon wim", "200h"},
		{"to whoever is assigned by then", func(d *desk) {
			d.aim("72h")
			d.write("60h", func() { d.workers = []string{"wes", "wut"} })
		}, "48h due_soon wim, 72h due wes, 72h due wut", "200h"},
		{"to nobody when no person is assigned", func(d *desk) {
			d.aim("72h")
			d.workers = nil
		}, "", "200h"},
		{"in review too, as the work is open", func(d *desk) {
			d.aim("72h")
			d.write("60h", func() { d.move(models.StatusSentToInspection) })
			d.write("80h", func() { d.move(models.StatusBackFromInspection) })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"not on hold; what came due meanwhile when it is resumed", func(d *desk) {
			d.aim("72h")
			d.write("60h", func() { d.move(models.StatusOnHold) })
			d.write("80h", func() { d.move(models.StatusInProgress) })
		}, "48h due_soon wim, 80h due wim", "200h"},
		{"resumed before the date, of which the first reminder came due meanwhile", func(d *desk) {
			d.aim("72h")
			d.write("30h", func() { d.move(models.StatusOnHold) })
			d.write("60h", func() { d.move(models.StatusInProgress) })
		}, "60h due_soon wim, 72h due wim", "200h"},
		{"resumed after the date, when it is not coming near any more", func(d *desk) {
			d.aim("72h")
			d.write("30h", func() { d.move(models.StatusOnHold) })
			d.write("80h", func() { d.move(models.StatusInProgress) })
		}, "80h due wim", "200h"},
		{"reminded before it was put on hold, and not again", func(d *desk) {
			d.aim("72h")
			d.write("50h", func() { d.move(models.StatusOnHold) })
			d.write("60h", func() { d.move(models.StatusInProgress) })
			d.write("80h", func() { d.move(models.StatusOnHold) })
			d.write("90h", func() { d.move(models.StatusInProgress) })
		}, "48h due_soon wim, 72h due wim", "200h"},
		{"cancelled on hold", func(d *desk) {
			d.aim("72h")
			d.write("30h", func() { d.move(models.StatusOnHold) })
		}, "", "200h"},
		{"put on hold at the very moment, unheard", func(d *desk) {
			d.aim("72h")
			d.writeUnheard("71h59m59.999s", func() { d.move(models.StatusOnHold) })
			d.write("80h", func() { d.move(models.StatusInProgress) })
		}, "48h due_soon wim, 80h due wim", "200h"},
		{"moved at the very moment, unheard", func(d *desk) {
			d.aim("72h")
			d.writeUnheard("71h59m59.999s", func() { d.aim("120h") })
		}, "48h due_soon wim, 96h due_soon wim, 120h due wim", "200h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBothWays(t, newDesk, func(t *testing.T, d *desk) {
				tt.plan(d)
				d.write(tt.until, func() { d.move(models.StatusComplete) })
				d.run()
				told := "0s assigned wim"
				if tt.told != "" {
					told += ", " + tt.told
				}
				d.told(told)
				d.closed(tt.until)
			})
		})
	}
}

func TestReviewReminders(t *testing.T) {
	review := func(d *desk) { d.move(models.StatusSentToInspection); d.tell("review", d.advisers...) }
	back := func(d *desk) { d.move(models.StatusBackFromInspection); d.tell("sent_back", "wim") }
	approve := func(d *desk) { d.move(models.StatusComplete); d.tell("completed", "mia") }
	tests := []struct {
		name string
		plan func(d *desk)
		told string
		ends string
	}{
		{"exactly two days after it went into review, then approved", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("70h", func() { approve(d) })
		}, "10h review cat, 58h review_waiting cat, 70h completed mia", "70h"},
		{"none when it is approved before", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("57h59m", func() { approve(d) }) // the suite's clock is the wall's while an activity runs
		}, "10h review cat, 57h59m completed mia", "57h59m"},
		{"sent back in time, and a second review that waits", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("20h", func() { back(d) })
			d.write("30h", func() { review(d) })
			d.write("100h", func() { approve(d) })
		}, "10h review cat, 20h sent_back wim, 30h review cat, 78h review_waiting cat, 100h completed mia", "100h"},
		{"each review has its own", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("60h", func() { back(d) })
			d.write("70h", func() { review(d) })
			d.write("130h", func() { approve(d) })
		}, "10h review cat, 58h review_waiting cat, 60h sent_back wim, 70h review cat, 118h review_waiting cat, 130h completed mia", "130h"},
		{"sent back and into review again unheard", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.writeUnheard("20h", func() { d.move(models.StatusBackFromInspection) })
			d.writeUnheard("30h", func() { d.move(models.StatusSentToInspection) })
			d.write("100h", func() { approve(d) })
		}, "10h review cat, 78h review_waiting cat, 100h completed mia", "100h"},
		{"none when it is cancelled during review", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("20h", func() { d.move(models.StatusCancelled); d.tell("cancelled", "wim", "cat") })
		}, "10h review cat, 20h cancelled wim, 20h cancelled cat", "20h"},
		{"to whoever consults by then", func(d *desk) {
			d.write("10h", func() { review(d) })
			d.write("40h", func() { d.advisers = []string{"coe", "cyd"}; d.tell("consulted", "coe", "cyd") })
			d.write("70h", func() { approve(d) })
		}, "10h review cat, 40h consulted coe, 40h consulted cyd, 58h review_waiting coe, 58h review_waiting cyd, 70h completed mia", "70h"},
		{"beside those of the target date", func(d *desk) {
			d.aim("60h")
			d.write("12h", func() { review(d) })
			d.write("70h", func() { approve(d) })
		}, "12h review cat, 36h due_soon wim, 60h due wim, 60h review_waiting cat, 70h completed mia", "70h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBothWays(t, newDesk, func(t *testing.T, d *desk) {
				d.advisers = []string{"cat"}
				tt.plan(d)
				d.run()
				d.told("0s assigned wim, " + tt.told)
				d.closed(tt.ends)
			})
		})
	}
}

func TestPokeAfterTheEndStartsItAgain(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.write("1h", func() { d.move(models.StatusComplete); d.tell("completed", "mia") })
		d.write("30h", func() { d.tell("unassigned", "wim") })
		d.write("31h", func() { d.tell("assigned", "wes") })
		d.run()
		d.told("0s assigned wim, 1h completed mia, 30h unassigned wim, 31h assigned wes")
		d.closed("31h")
		if d.starts != 3 {
			t.Errorf("it was started %d times, want once and by each of the two pokes", d.starts)
		}
	})
}

func TestPokeDuringALookCausesAnother(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.write("1h", func() { d.move(models.StatusComplete) })
		last := false
		d.duringLook = func(int) {
			if d.status == string(models.StatusComplete) && !last {
				last = true
				d.mu.Lock()
				d.tell("assigned", "wes")
				d.marked = true
				d.mu.Unlock()
				d.env.SignalWorkflow(SignalWake, nil)
			}
		}
		d.run()
		d.told("0s assigned wim, 1h assigned wes")
		d.closed("1h")
	})
}

func TestLostPokeIsMadeGoodByAnother(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.aim("72h")
		d.writeUnheard("10h", func() { d.move(models.StatusCancelled); d.tell("cancelled", "wim") })
		d.planned = append(d.planned, plan{at: 11 * time.Hour, do: d.wake}) // the sweep's
		d.run()
		d.told("0s assigned wim, 11h cancelled wim")
		d.closed("11h")
	})
}

func TestReminderThatLostItsReasonUnheard(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.aim("72h")
		d.writeUnheard("40h", func() { d.move(models.StatusCancelled); d.tell("cancelled", "wim") })
		d.run()
		d.told("0s assigned wim, 48h cancelled wim") // seen when the alarm rings
		d.closed("48h")
	})
}

func TestWorkOrderThatIsGoneEnds(t *testing.T) {
	d := newDesk(t)
	d.aim("72h")
	d.write("10h", func() { d.gone = true })
	d.run()
	d.told("0s assigned wim")
	d.closed("10h")
}
