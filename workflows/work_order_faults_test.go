package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"pgregory.net/rapid"

	"millwright/models"
)

func TestMailServerThatIsDownForAnHourHoldsUpTheMailAlone(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.mailDown = func(at time.Duration) bool { return at < time.Hour }
		d.aim("20m")
		d.write("10m", func() { d.tell("assigned", "wes"); d.workers = []string{"wim", "wes"} })
		d.write("30m", func() { d.move(models.StatusComplete); d.tell("completed", "mia") })
		d.run()
		if d.err != nil || d.marked {
			t.Fatalf("the workflow ended with %v, a look owed: %v", d.err, d.marked)
		}
		// Every change was seen when it happened, and the reminder made when it was due.
		if want := durations("0s 10m 20m 30m"); !slices.Equal(slices.Compact(slices.Clone(d.looks)), append(want, d.ended)) {
			t.Errorf("looked at %v, want it at %v and when the mail was sent", d.looks, want)
		}
		if !slices.ContainsFunc(d.seen.shown, func(s shown) bool {
			return s.at == 30*time.Minute && s.attributes["WorkOrderStatus"] == "complete"
		}) {
			t.Errorf("shown was %v, want it complete at 30m", d.seen.shown)
		}
		// The server is tried at once and then ever more seldom, at least every five minutes.
		if d.ended < time.Hour || d.ended > time.Hour+5*time.Minute {
			t.Errorf("the mail was sent at %v, want it within five minutes after the hour", d.ended)
		}
		if n := len(d.mailings); n < 12 || n > 30 {
			t.Errorf("the mail server was tried %d times in an hour", n)
		}
		if len(d.notices) != 5 {
			t.Errorf("%d notices, want the two of the assignments, two reminders and one of the completion", len(d.notices))
		}
		for _, l := range d.notices { // that none is mailed twice, MailNotices checks
			if !l.mailed || l.mailedAt != d.ended {
				t.Errorf("%s for %s: mailed %v at %v, want it at the end", l.kind, l.person, l.mailed, l.mailedAt)
			}
		}
	})
}

func TestNoticeThatComesWhileMailIsSentIsMailedAfterIt(t *testing.T) {
	inBothWays(t, newDesk, func(t *testing.T, d *desk) {
		d.write("1h", func() { d.move(models.StatusComplete); d.tell("completed", "mia") })
		d.duringMail = func(n int) {
			if n == 2 {
				d.mu.Lock()
				d.tell("assigned", "wes")
				d.marked = true
				d.mu.Unlock()
				d.env.SignalWorkflow(SignalWake, nil)
			}
		}
		d.run()
		d.told("0s assigned wim, 1h completed mia, 1h assigned wes")
		d.closed("1h")
		if len(d.mailings) != 3 {
			t.Errorf("%d mailings, want 3", len(d.mailings))
		}
	})
}

func TestDatabaseThatIsDownForAnHourIsTriedSeldom(t *testing.T) {
	d := newDesk(t)
	d.aim("72h")
	const from, until = 72 * time.Hour, 73 * time.Hour
	d.down = func(at time.Duration) bool { return at >= from && at < until }
	d.write("80h", func() { d.move(models.StatusComplete) })
	d.run()
	if len(d.notices) != 3 || d.notices[2].kind != "due" || d.notices[2].mailedAt < until || d.notices[2].mailedAt > until+time.Minute {
		t.Errorf("reminded at %v, want it within a minute after %v", d.notices[len(d.notices)-1].mailedAt, until)
	}
	var tried []time.Duration
	for _, at := range d.tries {
		if d.down(at) {
			tried = append(tried, at)
		}
	}
	if want := durations("72h 72h1s 72h5s 72h21s 73h"); len(tried) < 60 || len(tried) > 65 || !slices.Equal(tried[:4], want[:4]) {
		t.Errorf("the database was tried at %v: want it at %v and every minute from then on", tried, want[:4])
	}
	for _, s := range d.seen.steps {
		if s.options.RetryPolicy.MaximumAttempts != 0 || s.name != "MailNotices" && s.options.ScheduleToCloseTimeout < 30*24*time.Hour {
			t.Errorf("%s gives up after %d tries or %v; an outage may last longer", s.name,
				s.options.RetryPolicy.MaximumAttempts, s.options.ScheduleToCloseTimeout)
		}
	}
	d.closed("80h")
}

func TestCancelledWorkflowOfARecordEnds(t *testing.T) {
	tests := []struct {
		name string
		make func(reporter) *desk
		plan func(d *desk)
	}{
		{"of a work order that waits for a poke", newDesk, func(*desk) {}},
		{"of a work order that waits for a date", newDesk, func(d *desk) { d.aim("72h") }},
		{"of feedback", newFeedbackDesk, func(*desk) {}},
		{"while mail waits for its server", newDesk, func(d *desk) { d.mailDown = func(time.Duration) bool { return true } }},
		{"while the database cannot be reached", newDesk, func(d *desk) { d.down = func(time.Duration) bool { return true } }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.make(t)
			tt.plan(d)
			d.planned = append(d.planned, plan{at: 3 * time.Hour, do: func() { d.env.CancelWorkflow() }})
			d.run()
			if !temporal.IsCanceledError(d.err) || d.ended != 3*time.Hour {
				t.Errorf("the workflow ended at %v with %v, want it cancelled at 3h", d.ended, d.err)
			}
		})
	}
}

func TestWhatAnOperatorSeesOfAWorkOrder(t *testing.T) {
	d := newDesk(t)
	d.aim("30h")
	d.advisers = []string{"cat"}
	d.write("1h", func() {}) // a poke for nothing
	d.write("10h", func() { d.move(models.StatusSentToInspection) })
	d.write("40h", func() { d.move(models.StatusComplete); d.tell("completed", "mia") })
	d.run()
	d.told("0s assigned wim, 6h due_soon wim, 30h due wim, 40h completed mia")

	check := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s\n\t%s,\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	var steps, timers, shown []string
	for _, s := range d.seen.steps {
		steps = append(steps, fmt.Sprintf("%v %s: %s", s.at, s.name, s.options.Summary))
	}
	check("activities", steps, []string{
		"0s LookAtWorkOrder: look where it stands",
		"0s MailNotices: tell people by e-mail",
		"1h0m0s LookAtWorkOrder: look where it stands",
		"6h0m0s RemindOfWorkOrder: remind of the target date, a day before",
		"6h0m0s MailNotices: tell people by e-mail",
		"10h0m0s LookAtWorkOrder: look where it stands",
		"30h0m0s RemindOfWorkOrder: remind of the target date",
		"30h0m0s MailNotices: tell people by e-mail",
		"40h0m0s LookAtWorkOrder: look where it stands",
		"40h0m0s MailNotices: tell people by e-mail",
	})
	for _, r := range d.seen.rests {
		timers = append(timers, fmt.Sprintf("%v %v: %s", r.at, r.wait, r.summary))
	}
	check("timers", timers, []string{
		"0s 6h0m0s: remind of the target date, a day before",
		"6h0m0s 24h0m0s: remind of the target date",
		"30h0m0s 28h0m0s: remind of the review that waits",
	})
	for _, s := range d.seen.shown {
		checkAttributes(t, s.attributes, map[string]string{
			"Organization": organizationID, "RecordId": recordID, "WorkOrderStatus": s.attributes["WorkOrderStatus"],
		})
		shown = append(shown, fmt.Sprintf("%v %s: %s", s.at, s.attributes["WorkOrderStatus"], strings.ReplaceAll(s.details, "\n", "|")))
	}
	const who = "||- work order " + recordID + "|- organization " + organizationID + "|"
	check("shown", shown, []string{
		"0s open: **open**" + who + "- target date 2026-03-03T15:00:00.000Z|" +
			"- next reminder at 2026-03-02T15:00:00.000Z, of the target date, a day before|",
		"10h0m0s sent_to_inspection: **sent_to_inspection**" + who + "- target date 2026-03-03T15:00:00.000Z|" +
			"- in review since 2026-03-02T19:00:00.000Z|- next reminder at 2026-03-03T15:00:00.000Z, of the target date|",
		"40h0m0s complete: **complete**" + who + "- target date 2026-03-03T15:00:00.000Z|",
	})
}

func TestFeedbackFromCreationToItsEnd(t *testing.T) {
	inBothWays(t, newFeedbackDesk, func(t *testing.T, d *desk) {
		d.mailDown = func(at time.Duration) bool { return at > 40*time.Hour && at < 41*time.Hour }
		d.write("30h", func() {}) // a poke for nothing
		d.write("40h30m", func() { d.status = string(models.FeedbackResolved); d.tell("resolved", "pam") })
		d.write("100h", func() { d.tell("opened", "max") })
		d.run()
		if len(d.notices) != 3 || d.notices[1].mailedAt < 41*time.Hour || d.notices[1].mailedAt > 41*time.Hour+5*time.Minute {
			t.Errorf("the resolution was mailed at %v", d.notices[1].mailedAt)
		}
		d.notices = slices.Delete(d.notices, 1, 2)
		d.told("0s opened mia, 100h opened max")
		d.closed("100h")
		if d.starts != 2 {
			t.Errorf("it was started %d times, want twice", d.starts)
		}
		checkAttributes(t, d.seen.shown[0].attributes, map[string]string{"Organization": organizationID, "RecordId": feedbackID})
		if details := d.seen.shown[0].details; details != "**open**\n\n- feedback "+feedbackID+"\n- organization "+organizationID+"\n" {
			t.Errorf("an operator reads %q", details)
		}
		if !d.alwaysNew && len(d.seen.shown) != d.starts {
			t.Errorf("it was shown %d times in %d starts, want once in each", len(d.seen.shown), d.starts)
		}
	})
}

func TestFeedbackThatIsGoneEnds(t *testing.T) {
	d := newFeedbackDesk(t)
	d.write("10h", func() { d.gone = true })
	d.run()
	d.closed("10h")
}

// Whatever people do and whatever is down: every notice is mailed, each once,
// reminders come when they are due and no other, and the workflow ends with its
// work order.
func TestWorkOrderKeepsItsPromisesWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.advisers = []string{"cat"}
		d.alwaysNew = rapid.Bool().Draw(t, "continues as new after every step")
		mailDown := time.Duration(rapid.IntRange(0, 300).Draw(t, "mail down at hour")) * time.Hour
		d.mailDown = func(at time.Duration) bool { return at >= mailDown && at < mailDown+time.Hour }
		const end = 300
		expected := foresee{review: -1}
		at := 0
		for range rapid.IntRange(0, 8).Draw(t, "happenings") {
			if at += rapid.IntRange(1, 60).Draw(t, "hours later"); at >= end {
				break
			}
			when := time.Duration(at) * time.Hour
			switch what := rapid.SampledFrom([]string{"aim", "aim", "clear", "move", "move", "tell"}).Draw(t, "what"); what {
			case "aim":
				target := when + time.Duration(rapid.IntRange(-10, 100).Draw(t, "target in hours"))*time.Hour + 30*time.Minute
				expected.change(when, func() { expected.target, expected.aimedAt = target, when })
				d.write(when.String(), func() { d.aim(target.String()) })
			case "clear":
				expected.change(when, func() { expected.target = 0 })
				d.write(when.String(), func() { d.aim("") })
			case "move":
				status := rapid.SampledFrom([]models.WorkOrderStatus{
					models.StatusInProgress, models.StatusOnHold, models.StatusSentToInspection, models.StatusBackFromInspection,
				}).Draw(t, "status")
				expected.change(when, func() {
					expected.held, expected.review = status == models.StatusOnHold, -1
					if status == models.StatusSentToInspection {
						expected.review = when
					}
				})
				d.write(when.String(), func() { d.move(status) })
			case "tell":
				d.write(when.String(), func() { d.tell("assigned", "wes") })
			}
		}
		expected.change(end*time.Hour, func() {})
		d.write(fmt.Sprintf("%dh", end), func() { d.move(models.StatusComplete) })
		d.run()

		if d.err != nil || d.marked || d.ended < end*time.Hour || d.ended > end*time.Hour+time.Hour+5*time.Minute {
			t.Fatalf("the workflow ended at %v with %v, a look owed: %v", d.ended, d.err, d.marked)
		}
		var reminders []string
		for _, l := range d.notices {
			if !l.mailed {
				t.Errorf("%s was never mailed to %s", l.kind, l.person)
			}
			if !l.about.IsZero() {
				reminders = append(reminders, fmt.Sprintf("%s about %v", l.kind, l.about.Sub(began)))
			}
		}
		if !slices.Equal(reminders, expected.reminders) {
			t.Fatalf("reminders\n\t%s,\nwant\n\t%s", strings.Join(reminders, "\n\t"), strings.Join(expected.reminders, "\n\t"))
		}
	})
}

// foresee goes through what happens hour by hour and tells which reminders it
// expects, in words of its own.
type foresee struct {
	now             time.Duration
	target, aimedAt time.Duration // 0 for no target
	review          time.Duration // since when, or -1
	held            bool
	reminders       []string
}

// change lets the time pass until the change.
func (f *foresee) change(until time.Duration, change func()) {
	for ; f.now < until; f.now += 30 * time.Minute {
		f.pass()
	}
	change()
}

// pass is one moment.
func (f *foresee) pass() {
	once := func(line string) {
		if !slices.Contains(f.reminders, line) {
			f.reminders = append(f.reminders, line)
		}
	}
	if f.target != 0 && !f.held {
		dayBefore := f.target - 24*time.Hour
		if dayBefore > f.aimedAt && f.now >= dayBefore && f.now < f.target {
			once(fmt.Sprintf("due_soon about %v", f.target))
		}
		if f.target > f.aimedAt && f.now >= f.target {
			once(fmt.Sprintf("due about %v", f.target))
		}
	}
	if f.review >= 0 && f.now >= f.review+48*time.Hour {
		once(fmt.Sprintf("review_waiting about %v", f.review))
	}
}
