package servicetest

import (
	"time"

	"millwright/models"
)

// clocks are the clocks of a work order, as its workflow names them.
var clocks = []models.Clock{
	{Kind: models.NoticeDueSoon, Moment: models.MomentTargetDate, After: -models.DueSoonBefore},
	{Kind: models.NoticeDue, Moment: models.MomentTargetDate},
	{Kind: models.NoticeReviewWaits, Moment: models.MomentReview, After: models.DefaultReviewReminderAfter},
	{Kind: models.NoticeReviewOverdue, Moment: models.MomentReview, After: models.DefaultReviewEscalationAfter},
	{Kind: models.NoticeNoOneCan, Moment: models.MomentNoOneCan},
}

// Reminder returns the reminder of the kind, about the time.
func Reminder(kind models.NoticeKind, about models.Time) models.Reminder {
	for _, c := range clocks {
		if c.Kind == kind {
			return models.Reminder{Clock: c, About: about, At: models.TimeOf(about.Add(c.After))}
		}
	}
	return models.Reminder{Clock: models.Clock{Kind: kind}, About: about}
}

// Reminders returns the reminders of the clocks that run for a work order.
func Reminders(d models.Dates, now time.Time) (all []models.Reminder) {
	for _, c := range clocks {
		if r, runs := d.Reminder(c, models.TimeOf(now)); runs {
			all = append(all, r)
		}
	}
	return all
}
