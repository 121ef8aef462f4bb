package records_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/storetest"
)

// reminds gives a reminder, which must apply.
func reminds(s *servicetest.Harness, id string, kind models.NoticeKind, about models.Time) {
	s.T.Helper()
	if applied, err := s.Records.Remind(s.T.Context(), id, servicetest.Reminder(kind, about)); err != nil || !applied {
		s.T.Errorf("%s: applied %v, error %v", kind, applied, err)
	}
}

func TestRemindersReachPeopleOnce(t *testing.T) {
	s := servicetest.NewHarness(t)
	// bob is assigned twice, through the crew and by himself. In polar, pia has incoming work orders, ola does not.
	id := s.NewWorkOrder([]string{"crew", "bob", "polar", "erp"}, []string{"cat"})
	target := setTarget(s, id, 48*time.Hour)
	s.ClearEffects(id)
	reminds(s, id, models.NoticeDueSoon, *target)
	servicetest.Expect(t, "a day before", s.NoticesOf(id), "bob due_soon, dan due_soon, pia due_soon")
	s.Clock.Advance(time.Minute)
	reminds(s, id, models.NoticeDueSoon, *target)
	servicetest.Expect(t, "again", s.NoticesOf(id), "bob due_soon, dan due_soon, pia due_soon")
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE about = $1 AND created_at = $2 AND mail = 'waiting'`,
		target, servicetest.Start); n != 3 {
		t.Errorf("%d notices have their subject and time", n)
	}

	// A new target date causes a new reminder for the assignees at that time.
	target = setTarget(s, id, 72*time.Hour)
	servicetest.Must(t, removes(s, "erp", id, "crew"))
	s.ClearEffects(id)
	reminds(s, id, models.NoticeDueSoon, *target)
	servicetest.Expect(t, "another date", s.NoticesOf(id), "bob due_soon, pia due_soon")
	s.ClearEffects(id)
	s.Clock.Advance(72 * time.Hour)
	reminds(s, id, models.NoticeDue, *target)
	servicetest.Expect(t, "at the date", s.NoticesOf(id), "bob due, pia due")

	servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
	since := loaded(s, id).InReviewSince
	s.ClearEffects(id)
	reminds(s, id, models.NoticeReviewWaits, *since)
	reminds(s, id, models.NoticeReviewWaits, *since)
	servicetest.Expect(t, "the review", s.NoticesOf(id), "cat review_waiting")
	s.ClearEffects(id)
	reminds(s, id, models.NoticeReviewOverdue, *since)
	reminds(s, id, models.NoticeReviewOverdue, *since)
	servicetest.Expect(t, "the overdue review, to the nearest managers", s.NoticesOf(id), "ann review_overdue")
	s.Clock.Advance(time.Hour)
	servicetest.Must(t, does(s, "cat", models.OperationSendBack, id))
	s.Clock.Advance(time.Hour)
	servicetest.Must(t, does(s, "erp", models.OperationComplete, id))
	s.ClearEffects(id)
	if applied, err := s.Records.Remind(t.Context(), id, servicetest.Reminder(models.NoticeReviewWaits, *since)); err != nil || applied {
		t.Errorf("the first review's reminder during the second: applied %v, error %v", applied, err)
	}
	reminds(s, id, models.NoticeReviewWaits, *loaded(s, id).InReviewSince)
	servicetest.Expect(t, "the second review", s.NoticesOf(id), "cat review_waiting")

	// Assignees that are not people are not reminded.
	other := s.NewWorkOrder([]string{"erp"}, nil)
	about := setTarget(s, other, 48*time.Hour)
	s.ClearEffects(other)
	reminds(s, other, models.NoticeDue, *about)
	servicetest.Expect(t, "an integration", s.NoticesOf(other), "")
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
	servicetest.Must(t, gate.Rollback(ctx))
	all.Wait()
	servicetest.Expect(t, "notified", s.NoticesOf(id), "ann due_soon, bob due_soon, dan due_soon, pia due_soon")
}

func TestReminderThatDoesNotApplyNotifiesNoOne(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, tt := range []struct {
		name  string
		kind  models.NoticeKind
		after func(id string) // what happens before the reminder
	}{
		{"the target date was moved", models.NoticeDue, func(id string) { setTarget(s, id, 50*time.Hour) }},
		{"it was taken away", models.NoticeDue, func(id string) { setTarget(s, id, 0) }},
		{"it is complete", models.NoticeDue, func(id string) {
			servicetest.Must(t, removes(s, "erp", id, "cat"), does(s, "erp", models.OperationComplete, id))
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
	} {
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
