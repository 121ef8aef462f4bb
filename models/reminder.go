package models

import (
	"slices"
	"time"
)

// Reminder is a notice that time causes, not a change.
type Reminder struct {
	Kind NoticeKind
	// About is the target date, or the time since which the review has been waiting.
	About Time
	// At is when the reminder is due.
	At Time
}

// Is reports whether the reminder has this kind and is about this time.
func (r Reminder) Is(kind NoticeKind, about Time) bool {
	return r.Kind == kind && r.About.Equal(about.Time)
}

// Role returns the role of the people who are reminded, "" for the inventory managers.
func (r Reminder) Role() Role {
	switch r.Kind {
	case NoticeReviewWaits:
		return RoleConsultant
	case NoticeReviewOverdue, NoticeNoOneCan:
		return ""
	default:
		return RoleWorker
	}
}

// ReviewPeriods limit how long a review waits.
type ReviewPeriods struct {
	// Reminder is the time until its consultants are reminded, Escalation the time
	// until the inventory managers are notified. Both count from when the work order
	// went into review.
	Reminder, Escalation time.Duration
}

// Dates is what the reminders of a work order depend on.
type Dates struct {
	Status WorkOrderStatus
	// TargetDate may be nil; TargetSetAt is when it got its current value.
	TargetDate  *Time
	TargetSetAt *Time
	// InReviewSince is nil unless the work order is in review.
	InReviewSince *Time
	// NoOneCanSince is nil unless none of its workers, or in review of its consultants, can
	// act: when they were assigned, or it got its status.
	NoOneCanSince *Time `json:",omitempty"`
}

// Reminders returns the work order's reminders, past and future, earliest first.
// They depend on its phase:
//   - working, in review, back from review: to its workers, DueSoonBefore its target
//     date and at it;
//   - in review: to its consultants and then to the inventory managers, after the
//     periods;
//   - in all of these, if no one can do what comes next: to the inventory managers, at once.
//
// A work order on hold has no reminders; they come when it is resumed. A time
// that had passed when the target date was set gets no reminder, and a target date that
// has passed is no longer due soon.
func (d Dates) Reminders(now Time, review ReviewPeriods) []Reminder {
	var all []Reminder
	phase := d.Status.Phase()
	if d.TargetDate != nil && phase != PhaseOnHold && phase != PhaseClosed {
		target := *d.TargetDate
		soon := Reminder{NoticeDueSoon, target, Time{target.Add(-DueSoonBefore)}}
		if now.Before(target.Time) && d.wasAhead(soon.At) {
			all = append(all, soon)
		}
		if d.wasAhead(target) {
			all = append(all, Reminder{NoticeDue, target, target})
		}
	}
	if d.InReviewSince != nil && phase == PhaseInReview {
		since := *d.InReviewSince
		all = append(all,
			Reminder{NoticeReviewWaits, since, TimeOf(since.Add(review.Reminder))},
			Reminder{NoticeReviewOverdue, since, TimeOf(since.Add(review.Escalation))})
	}
	if d.NoOneCanSince != nil && phase != PhaseOnHold && phase != PhaseClosed {
		all = append(all, Reminder{NoticeNoOneCan, *d.NoOneCanSince, *d.NoOneCanSince})
	}
	slices.SortStableFunc(all, func(a, b Reminder) int { return a.At.Compare(b.At.Time) })
	return all
}

// wasAhead reports whether the moment was in the future when the target date was set.
func (d Dates) wasAhead(moment Time) bool {
	return d.TargetSetAt == nil || moment.Time.After(d.TargetSetAt.Time)
}
