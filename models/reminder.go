package models

import "slices"

// Reminder is a notice that nobody's change causes: something has waited, or
// comes near.
type Reminder struct {
	Kind NoticeKind
	// About is what it reminds of: the target date, or since when the review waits.
	About Time
	// At is when it is due.
	At Time
}

// Is reports whether the reminder is the one of this kind about this time.
func (r Reminder) Is(kind NoticeKind, about Time) bool {
	return r.Kind == kind && r.About.Equal(about.Time)
}

// Role is whose people are reminded.
func (r Reminder) Role() Role {
	if r.Kind == NoticeReviewWaits {
		return RoleConsultant
	}
	return RoleWorker
}

// Dates are what the reminders of a work order depend on.
type Dates struct {
	Status WorkOrderStatus
	// TargetDate is nil for none; TargetSetAt is when it was set to what it is.
	TargetDate  *Time
	TargetSetAt *Time
	// InReviewSince is nil unless the work order is in review.
	InReviewSince *Time
}

// Reminders returns what people are to be reminded of, and were or will be, the
// earliest first: a day before the target date and at it, while the work order
// is neither closed nor on hold, and two days after it went into review, while
// it is there. A work order on hold waits for its resumption: what comes due
// meanwhile is reminded of then. A moment that had come when the target date was
// set is not reminded of, nor is a target date as coming near once it is past.
func (d Dates) Reminders(now Time) []Reminder {
	var all []Reminder
	if d.TargetDate != nil && !d.Status.Closed() && d.Status != StatusOnHold {
		target := *d.TargetDate
		soon := Reminder{NoticeDueSoon, target, Time{target.Add(-DueSoonBefore)}}
		if now.Before(target.Time) && d.ahead(soon.At) {
			all = append(all, soon)
		}
		if d.ahead(target) {
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

// ahead reports whether the moment was to come when the target date was set.
func (d Dates) ahead(moment Time) bool {
	return d.TargetSetAt == nil || moment.Time.After(d.TargetSetAt.Time)
}
