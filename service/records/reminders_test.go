package records_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

func TestRemindersReachPeopleOnce(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx := t.Context()
	// bob is assigned twice, through the crew and by himself. In polar, pia has incoming work orders, ola does not.
	id := s.NewWorkOrder([]string{"crew", "bob", "polar", "erp"}, []string{"cat"})
	target := setTarget(s, id, 48*time.Hour)
	s.ClearEffects(id)
	remind := func(kind models.NoticeKind, about models.Time) {
		t.Helper()
		if applied, err := s.Records.Remind(ctx, id, servicetest.Reminder(kind, about)); err != nil || !applied {
			t.Errorf("%s: applied %v, error %v", kind, applied, err)
		}
	}
	expect := func(when, want string) {
		t.Helper()
		if got := s.NoticesOf(id); got != want {
			t.Errorf("%s: notified are %q, want %q", when, got, want)
		}
	}
	remind(models.NoticeDueSoon, *target)
	expect("a day before", "bob due_soon, dan due_soon, pia due_soon")
	s.Clock.Advance(time.Minute)
	remind(models.NoticeDueSoon, *target)
	expect("again", "bob due_soon, dan due_soon, pia due_soon")
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE about = $1 AND created_at = $2 AND mail = 'waiting'`,
		target, servicetest.Start); n != 3 {
		t.Errorf("%d notices have their subject and time", n)
	}

	// A new target date causes a new reminder for the assignees at that time.
	target = setTarget(s, id, 72*time.Hour)
	s.MustWrite(s.Records.UnassignWorkOrder(ctx, s.As("erp"), store.NoKey, id, s.ID("crew")))
	s.ClearEffects(id)
	remind(models.NoticeDueSoon, *target)
	expect("another date", "bob due_soon, pia due_soon")
	s.ClearEffects(id)
	s.Clock.Advance(72 * time.Hour)
	remind(models.NoticeDue, *target)
	expect("at the date", "bob due, pia due")

	complete(s, id)
	since := loaded(s, id).InReviewSince
	s.ClearEffects(id)
	remind(models.NoticeReviewWaits, *since)
	remind(models.NoticeReviewWaits, *since)
	expect("the review", "cat review_waiting")
	s.ClearEffects(id)
	remind(models.NoticeReviewOverdue, *since)
	remind(models.NoticeReviewOverdue, *since)
	expect("the overdue review, to the nearest managers", "ann review_overdue")
	s.Clock.Advance(time.Hour)
	s.MustWrite(s.Records.ReviewWorkOrder(ctx, s.As("cat"), store.NoKey, id, records.Review{Comment: "Loose."}))
	s.Clock.Advance(time.Hour)
	complete(s, id)
	s.ClearEffects(id)
	if applied, err := s.Records.Remind(ctx, id, servicetest.Reminder(models.NoticeReviewWaits, *since)); err != nil || applied {
		t.Errorf("the first review's reminder during the second: applied %v, error %v", applied, err)
	}
	remind(models.NoticeReviewWaits, *loaded(s, id).InReviewSince)
	expect("the second review", "cat review_waiting")

	// Assignees that are not people are not reminded.
	other := s.NewWorkOrder([]string{"erp"}, nil)
	about := setTarget(s, other, 48*time.Hour)
	s.ClearEffects(other)
	if applied, err := s.Records.Remind(ctx, other, servicetest.Reminder(models.NoticeDue, *about)); err != nil || !applied || s.NoticesOf(other) != "" {
		t.Errorf("applied %v, error %v, notified are %q", applied, err, s.NoticesOf(other))
	}
}

func TestRemindersAtTheSameTimeReachPeopleOnce(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"crew", "ann", "polar"}, nil)
	target := setTarget(s, id, 48*time.Hour)
	s.ClearEffects(id)
	// All of them wait for the row, in a process each, and begin together.
	gate := servicetest.Begin(t, s.Fixture)
	servicetest.ExecIn(t, gate, `SELECT FROM work_orders WHERE id = $1 FOR UPDATE`, id)
	const tries = 8
	var all sync.WaitGroup
	ctx := context.WithoutCancel(t.Context())
	for range tries {
		process := s.NewInstance()
		storetest.WaitForLocks(process.Store)
		all.Go(func() {
			if applied, err := process.Records.Remind(ctx, id, servicetest.Reminder(models.NoticeDueSoon, *target)); err != nil || !applied {
				t.Errorf("applied %v, error %v", applied, err)
			}
		})
	}
	servicetest.AwaitLocks(t, s.Fixture, tries)
	if err := gate.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if got, want := s.NoticesOf(id), "ann due_soon, bob due_soon, dan due_soon, pia due_soon"; got != want {
		t.Errorf("notified are %q, want %q", got, want)
	}
}

func TestReminderThatDoesNotApplyNotifiesNoOne(t *testing.T) {
	s := servicetest.NewHarness(t)
	tests := []struct {
		name  string
		kind  models.NoticeKind
		after func(id string) // what happens before the reminder
	}{
		{"the target date was moved", models.NoticeDue, func(id string) { setTarget(s, id, 50*time.Hour) }},
		{"it was taken away", models.NoticeDue, func(id string) { setTarget(s, id, 0) }},
		{"it is complete", models.NoticeDue, func(id string) {
			s.MustWrite(s.Records.UnassignWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, s.ID("cat")))
			complete(s, id)
		}},
		{"it was cancelled", models.NoticeDueSoon, func(id string) {
			s.MustWrite(s.Records.CancelWorkOrder(s.T.Context(), s.As("erp"), store.NoKey, id, nil))
		}},
		{"it is on hold", models.NoticeDue, func(id string) {
			s.MustWrite(s.Records.HoldWorkOrder(s.T.Context(), s.As("ann"), store.NoKey, id))
		}},
		{"the date is past and comes near no more", models.NoticeDueSoon, func(string) { s.Clock.Advance(48 * time.Hour) }},
		{"it was set less than a day before", models.NoticeDueSoon, func(id string) {
			setTarget(s, id, 0)
			s.Clock.Advance(30 * time.Hour)
			setTarget(s, id, 18*time.Hour)
		}},
		{"it is not in review", models.NoticeReviewWaits, func(string) {}},
		{"its review is not overdue", models.NoticeReviewOverdue, func(string) {}},
		{"no such reminder", models.NoticeCompleted, func(string) {}},
		{"it is gone", models.NoticeDue, func(id string) { s.Exec(`DELETE FROM work_orders WHERE id = $1`, id) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{"bob", "erp"}, []string{"cat"})
			target := setTarget(s, id, 48*time.Hour)
			tt.after(id)
			s.ClearEffects(id)
			applied, err := s.Records.Remind(s.T.Context(), id, servicetest.Reminder(tt.kind, *target))
			if told := s.NoticesOf(id); err != nil || applied || told != "" {
				t.Errorf("applied %v, error %v, notified are %q", applied, err, told)
			}
		})
	}
}
