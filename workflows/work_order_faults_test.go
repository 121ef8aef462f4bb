package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millwright/models"
)

func TestDatabaseOutageIsRetriedEveryMinute(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.setTargetDate("72h")
	const from, until = 72 * time.Hour, 73 * time.Hour
	h.down = func(at time.Duration) bool { return at >= from && at < until }
	h.write("80h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	if len(h.notices) != 2 || h.notices[1].kind != "due" || h.notices[1].at < until || h.notices[1].at > until+time.Minute {
		t.Errorf("reminders %v, want the second within a minute after %v", h.notices, until)
	}
	var tried []time.Duration
	for _, at := range h.queries {
		if h.down(at) {
			tried = append(tried, at)
		}
	}
	if want := durations("72h 72h1s 72h5s 72h21s 73h"); len(tried) < 60 || len(tried) > 65 || !slices.Equal(tried[:4], want[:4]) {
		t.Errorf("queries at %v, want them at %v and then every minute", tried, want[:4])
	}
	for _, s := range h.observer.steps {
		if s.options.RetryPolicy.MaximumAttempts != 0 || s.options.ScheduleToCloseTimeout < 30*24*time.Hour {
			t.Errorf("%s gives up after %d attempts or %v; an outage may last longer", s.name,
				s.options.RetryPolicy.MaximumAttempts, s.options.ScheduleToCloseTimeout)
		}
	}
	h.wantClosed("80h")
}

func TestOperatorsSeeAWorkOrdersState(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.setTargetDate("30h")
	h.required = 5
	h.writeWithoutWake("2h", func() { h.answered = 3 }) // the reminder at 6h shows them
	h.write("1h", func() {})                            // a wake without a change
	h.write("10h", func() { h.setStatus(models.StatusSentToInspection) })
	h.write("40h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	h.wantNotified("6h due_soon, 30h due")

	check := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s\n\t%s,\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	var steps, timers, shown []string
	for _, s := range h.observer.steps {
		steps = append(steps, fmt.Sprintf("%v %s: %s", s.at, s.name, s.options.Summary))
	}
	check("activities", steps, []string{
		"0s LoadWorkOrder: load the record",
		"1h0m0s LoadWorkOrder: load the record",
		"6h0m0s RemindWorkOrder: remind: target date in a day",
		"10h0m0s LoadWorkOrder: load the record",
		"30h0m0s RemindWorkOrder: remind: target date reached",
		"40h0m0s LoadWorkOrder: load the record",
	})
	for _, r := range h.observer.timers {
		timers = append(timers, fmt.Sprintf("%v %v: %s", r.at, r.wait, r.summary))
	}
	check("timers", timers, []string{
		"0s 6h0m0s: next reminder: target date in a day",
		"6h0m0s 24h0m0s: next reminder: target date reached",
		"30h0m0s 28h0m0s: next reminder: review still waiting",
	})
	for _, s := range h.observer.shown {
		status, reminder := s.attributes["WorkOrderStatus"], s.attributes["NextReminderAt"]
		delete(s.attributes, "NextReminderAt") // unset at the end
		checkAttributes(t, s.attributes, map[string]string{
			"Organization": organizationID, "Integration": integrationID, "RecordId": recordID, "WorkOrderStatus": status,
		})
		shown = append(shown, fmt.Sprintf("%v %s until %s: %s", s.at, status, reminder, strings.ReplaceAll(s.details, "\n", "|")))
	}
	ids := func(answered int) string {
		return fmt.Sprintf("||- work order %s|- %s|- organization %s|- %d of 5 required questions answered|- target date 2026-03-03T15:00:00.000Z|",
			recordID, pageLink(consolePage), organizationID, answered)
	}
	const first = "|Transitions:||- 2026-03-02T09:00:00.000Z created → open, " + personID + "|"
	const second = first + "- 2026-03-02T19:00:00.000Z open → sent_to_inspection, " + personID + "|"
	const third = second + "- 2026-03-04T01:00:00.000Z sent_to_inspection → complete, " + personID + "|"
	const advice = "|Request Cancellation has no effect: use the update `cancel`.|"
	check("shown", shown, []string{
		"0s open until 6h0m0s: **open**, as of 2026-03-02T09:00:00.000Z" + ids(0) +
			"- next reminder at 2026-03-02T15:00:00.000Z: target date in a day|" + first + advice,
		"6h0m0s open until 30h0m0s: **open**, as of 2026-03-02T15:00:00.000Z" + ids(3) +
			"- next reminder at 2026-03-03T15:00:00.000Z: target date reached|" + first + advice,
		"10h0m0s sent_to_inspection until 30h0m0s: **sent_to_inspection**, as of 2026-03-02T19:00:00.000Z" + ids(3) +
			"- in review since 2026-03-02T19:00:00.000Z|- next reminder at 2026-03-03T15:00:00.000Z: target date reached|" + second + advice,
		"30h0m0s sent_to_inspection until 58h0m0s: **sent_to_inspection**, as of 2026-03-03T15:00:00.000Z" + ids(3) +
			"- in review since 2026-03-02T19:00:00.000Z|- next reminder at 2026-03-04T19:00:00.000Z: review still waiting|" + second + advice,
		"40h0m0s complete until : **complete**, as of 2026-03-04T01:00:00.000Z" + ids(3) + third,
	})
	h.wantMarkers("0s created → open, 10h0m0s open → sent_to_inspection, 40h0m0s sent_to_inspection → complete")
}

// Whatever people do: exactly the due reminders are sent, and the workflow ends with its
// work order.
func TestWorkOrderInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newWorkOrderHarness(t)
		h.alwaysContinueAsNew = rapid.Bool().Draw(t, "continues as new after every step")
		const end = 300
		expected := expectedReminders{review: -1}
		at := 0
		for range rapid.IntRange(0, 8).Draw(t, "number of actions") {
			if at += rapid.IntRange(1, 60).Draw(t, "hours later"); at >= end {
				break
			}
			when := time.Duration(at) * time.Hour
			switch action := rapid.SampledFrom([]string{"set date", "set date", "clear date", "set status", "set status", "wake"}).Draw(t, "action"); action {
			case "set date":
				target := when + time.Duration(rapid.IntRange(-10, 100).Draw(t, "target in hours"))*time.Hour + 30*time.Minute
				expected.advance(when, func() { expected.target, expected.targetSetAt = target, when })
				h.write(when.String(), func() { h.setTargetDate(target.String()) })
			case "clear date":
				expected.advance(when, func() { expected.target = 0 })
				h.write(when.String(), func() { h.setTargetDate("") })
			case "set status":
				status := rapid.SampledFrom([]models.WorkOrderStatus{
					models.StatusInProgress, models.StatusOnHold, models.StatusSentToInspection, models.StatusBackFromInspection,
				}).Draw(t, "status")
				expected.advance(when, func() {
					expected.onHold, expected.review = status == models.StatusOnHold, -1
					if status == models.StatusSentToInspection {
						expected.review = when
					}
				})
				h.write(when.String(), func() { h.setStatus(status) })
			case "wake":
				h.write(when.String(), func() {})
			}
		}
		expected.advance(end*time.Hour, func() {})
		h.write(fmt.Sprintf("%dh", end), func() { h.setStatus(models.StatusComplete) })
		h.run()

		h.wantClosed(fmt.Sprintf("%dh", end))
		var reminders []string
		for _, n := range h.notices {
			reminders = append(reminders, fmt.Sprintf("%s about %v", n.kind, n.about.Sub(began)))
		}
		if !slices.Equal(reminders, expected.reminders) {
			t.Fatalf("reminders\n\t%s,\nwant\n\t%s", strings.Join(reminders, "\n\t"), strings.Join(expected.reminders, "\n\t"))
		}
	})
}

// expectedReminders simulates a work order in steps of half an hour and collects
// the expected reminders, independently of models.Dates.Reminder.
type expectedReminders struct {
	now                 time.Duration
	target, targetSetAt time.Duration // 0 for no target
	review              time.Duration // in review since, -1 for not in review
	onHold              bool
	reminders           []string
}

// advance simulates the time until the change, then makes it.
func (f *expectedReminders) advance(until time.Duration, change func()) {
	for ; f.now < until; f.now += 30 * time.Minute {
		f.step()
	}
	change()
}

func (f *expectedReminders) step() {
	once := func(line string) {
		if !slices.Contains(f.reminders, line) {
			f.reminders = append(f.reminders, line)
		}
	}
	if f.target != 0 && !f.onHold {
		dayBefore := f.target - 24*time.Hour
		if dayBefore > f.targetSetAt && f.now >= dayBefore && f.now < f.target {
			once(fmt.Sprintf("due_soon about %v", f.target))
		}
		if f.target > f.targetSetAt && f.now >= f.target {
			once(fmt.Sprintf("due about %v", f.target))
		}
	}
	if f.review >= 0 && f.now >= f.review+48*time.Hour {
		once(fmt.Sprintf("review_waiting about %v", f.review))
	}
	if f.review >= 0 && f.now >= f.review+96*time.Hour {
		once(fmt.Sprintf("review_overdue about %v", f.review))
	}
}
