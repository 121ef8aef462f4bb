package models

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReminders(t *testing.T) {
	noon := time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC)
	const none = -1e9
	// at returns the time that many hours after noon, nil for hours = none.
	at := func(hours float64) *Time {
		if hours == none {
			return nil
		}
		t := TimeOf(noon.Add(time.Duration(hours * float64(time.Hour))))
		return &t
	}
	clocks := []Clock{
		{NoticeDueSoon, MomentTargetDate, -DueSoonBefore}, {NoticeDue, MomentTargetDate, 0},
		{NoticeReviewWaits, MomentReview, DefaultReviewReminderAfter}, {NoticeReviewOverdue, MomentReview, DefaultReviewEscalationAfter},
		{NoticeNoOneCan, MomentNoOneCan, 0},
	}
	tests := []struct {
		name   string
		status WorkOrderStatus
		// target was set at set, the review started at review: all in hours after noon.
		target, set, review, now float64
		want                     string
	}{
		{"no target date, no review", StatusOpen, none, none, none, 0, ""},
		{"a day before the target date and at it", StatusOpen, 72, 0, none, 0, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"in progress", StatusInProgress, 72, 0, none, 0, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"sent back", StatusBackFromInspection, 72, 0, none, 0, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"in review", StatusSentToInspection, 72, 0, none, 0, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"on hold", StatusOnHold, 72, 0, none, 0, ""},
		{"complete", StatusComplete, 72, 0, none, 0, ""},
		{"cancelled", StatusCancelled, 72, 0, none, 0, ""},
		{"past reminders stay", StatusOpen, 72, 0, none, 71.9, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"a date that has come is no longer due soon", StatusOpen, 72, 0, none, 72, "work_order.due 72 at 72"},
		{"a date in the past", StatusOpen, 72, 0, none, 1000, "work_order.due 72 at 72"},
		{"set just over a day before", StatusOpen, 72, 47.9, none, 47.9, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"set milliseconds more than a day before", StatusOpen, 72, 47.9999997, none, 47.9999997, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"set exactly a day before", StatusOpen, 72, 48, none, 48, "work_order.due 72 at 72"},
		{"set less than a day before", StatusOpen, 72, 50, none, 50, "work_order.due 72 at 72"},
		{"set to the current time", StatusOpen, 72, 72, none, 72, ""},
		{"set to a time in the past", StatusOpen, 72, 80, none, 80, ""},
		{"set at an unknown time", StatusOpen, 72, none, none, 50, "work_order.due_soon 72 at 48, work_order.due 72 at 72"},
		{"two and four days after it went into review", StatusSentToInspection, none, none, 10, 10,
			"work_order.review_waiting 10 at 58, work_order.review_overdue 10 at 106"},
		{"much later", StatusSentToInspection, none, none, 10, 1000,
			"work_order.review_waiting 10 at 58, work_order.review_overdue 10 at 106"},
		{"in review since an unknown time", StatusSentToInspection, none, none, none, 100, ""},
		{"after the review", StatusBackFromInspection, none, none, 10, 100, ""},
		{"in review before the target date", StatusSentToInspection, 72, 0, 10, 20,
			"work_order.due_soon 72 at 48, work_order.due 72 at 72, work_order.review_waiting 10 at 58, work_order.review_overdue 10 at 106"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Dates{Status: tt.status, TargetDate: at(tt.target), TargetSetAt: at(tt.set), InReviewSince: at(tt.review)}
			var got []string
			for _, c := range clocks {
				r, runs := d.Reminder(c, *at(tt.now))
				if !runs {
					continue
				}
				got = append(got, fmt.Sprintf("%s %v at %v", r.Kind, r.About.Sub(noon).Hours(), r.At.Sub(noon).Hours()))
				if !slices.Contains(AllNoticeKinds, r.Kind) {
					t.Errorf("AllNoticeKinds lacks %s", r.Kind)
				}
				role := map[NoticeKind]Role{NoticeDueSoon: RoleWorker, NoticeDue: RoleWorker, NoticeReviewWaits: RoleConsultant, NoticeReviewOverdue: ""}[r.Kind]
				if r.Role() != role {
					t.Errorf("%s is for the role %q, want %q", r.Kind, r.Role(), role)
				}
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("reminders %q, want %q", text, tt.want)
			}
		})
	}
}

func TestReminderIs(t *testing.T) {
	noon := TimeOf(time.Date(2026, time.March, 31, 12, 0, 0, 0, time.UTC))
	r := Reminder{Clock: Clock{Kind: NoticeDue}, About: noon, At: noon}
	elsewhere := Time{noon.In(time.FixedZone("", 3600))}
	later := Time{noon.Add(time.Millisecond)}
	if !r.Is(NoticeDue, elsewhere) || r.Is(NoticeDueSoon, noon) || r.Is(NoticeDue, later) {
		t.Error("Is compares something other than the kind and the time")
	}
}
