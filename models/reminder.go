package models

import "time"

// Clock reminds people of a work order a while before or after a moment in its life.
type Clock struct {
	// Kind is the notice that people get.
	Kind   NoticeKind
	Moment Moment
	// After is negative for a time before the moment.
	After time.Duration
}

// Moment is a moment in the life of a work order.
type Moment string

// The moments from which clocks run.
const (
	MomentTargetDate Moment = "target date"
	MomentReview     Moment = "in review since"
	MomentNoOneCan   Moment = "no one can since"
)

// Reminder is what a running clock causes: a notice that time causes, not a change.
type Reminder struct {
	Clock
	// About is the clock's moment.
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

// Reminder returns the reminder of the clock, false if the clock does not run. None runs
// while the work order is on hold, or when it is closed. A time that had passed when the
// target date was set gets no reminder, and a target date that has passed is no longer near.
func (d Dates) Reminder(c Clock, now Time) (r Reminder, runs bool) {
	phase := d.Status.Phase()
	moment := map[Moment]*Time{MomentTargetDate: d.TargetDate, MomentReview: d.InReviewSince, MomentNoOneCan: d.NoOneCanSince}[c.Moment]
	if moment == nil || phase == PhaseOnHold || phase == PhaseClosed {
		return r, false
	}
	r = Reminder{c, *moment, TimeOf(moment.Add(c.After))}
	switch c.Moment {
	case MomentTargetDate:
		passed := c.After < 0 && !now.Before(moment.Time)
		return r, !passed && (d.TargetSetAt == nil || r.At.Time.After(d.TargetSetAt.Time))
	case MomentReview:
		return r, phase == PhaseInReview
	default:
		return r, true
	}
}
