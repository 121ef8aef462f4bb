package models

import "slices"

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

// Role returns the role of the people who are reminded.
func (r Reminder) Role() Role {
	if r.Kind == NoticeReviewWaits {
		return RoleConsultant
	}
	return RoleWorker
}

// Dates is what the reminders of a work order depend on.
type Dates struct {
	Status WorkOrderStatus
	// TargetDate may be nil; TargetSetAt is when it got its current value.
	TargetDate  *Time
	TargetSetAt *Time
	// InReviewSince is nil unless the work order is in review.
	InReviewSince *Time
}

// Reminders returns the work order's reminders, past and future, the earliest first:
//   - to its workers, DueSoonBefore its target date and at it, unless it is closed;
//   - to its consultants, ReviewWaitsAfter it went into review, while it is there.
//
// A work order on hold has no reminders; they come when it is resumed. A time
// that had passed when the target date was set gets no reminder, and a target date that
// has passed is no longer due soon.
func (d Dates) Reminders(now Time) []Reminder {
	var all []Reminder
	if d.TargetDate != nil && !d.Status.Closed() && d.Status != StatusOnHold {
		target := *d.TargetDate
		soon := Reminder{NoticeDueSoon, target, Time{target.Add(-DueSoonBefore)}}
		if now.Before(target.Time) && d.wasAhead(soon.At) {
			all = append(all, soon)
		}
		if d.wasAhead(target) {
			all = append(all, Reminder{NoticeDue, target, target})
		}
	}
	if d.Status == StatusSentToInspection && d.InReviewSince != nil {
		since := *d.InReviewSince
		all = append(all, Reminder{NoticeReviewWaits, since, Time{since.Add(ReviewWaitsAfter)}})
	}
	slices.SortStableFunc(all, func(a, b Reminder) int { return a.At.Compare(b.At.Time) })
	return all
}

// wasAhead reports whether the moment was in the future when the target date was set.
func (d Dates) wasAhead(moment Time) bool {
	return d.TargetSetAt == nil || moment.Time.After(d.TargetSetAt.Time)
}
