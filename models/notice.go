package models

// NoticeKind says why a person is notified about a record (spec section 1: writes have
// the same effects as in the app).
type NoticeKind string

// The kinds of notice.
const (
	NoticeAssigned         NoticeKind = "work_order.assigned"           // as a worker
	NoticeConsulted        NoticeKind = "work_order.consulted"          // as a consultant
	NoticeUnassigned       NoticeKind = "work_order.unassigned"         // in either role
	NoticeCompleted        NoticeKind = "work_order.completed"          // by a worker, or by a consultant's approval
	NoticeReviewWanted     NoticeKind = "work_order.sent_to_inspection" // to the consultants
	NoticeSentBack         NoticeKind = "work_order.sent_back"          // by a consultant
	NoticeCancelled        NoticeKind = "work_order.cancelled"
	NoticeHeld             NoticeKind = "work_order.held"
	NoticeResumed          NoticeKind = "work_order.resumed"
	NoticeDueSoon          NoticeKind = "work_order.due_soon"       // a day before its target date
	NoticeDue              NoticeKind = "work_order.due"            // at its target date
	NoticeReviewWaits      NoticeKind = "work_order.review_waiting" // to the consultants
	NoticeReviewOverdue    NoticeKind = "work_order.review_overdue" // to the inventory managers
	NoticeFeedbackOpened   NoticeKind = "issue.created"
	NoticeFeedbackResolved NoticeKind = "issue.resolved"
	NoticeWebhookFailing   NoticeKind = "webhook.failing"    // for a day
	NoticeWebhookOff       NoticeKind = "webhook.turned_off" // after a final failure
)

// AllNoticeKinds lists every kind of notice.
var AllNoticeKinds = []NoticeKind{
	NoticeAssigned, NoticeConsulted, NoticeUnassigned, NoticeCompleted, NoticeReviewWanted, NoticeSentBack, NoticeCancelled,
	NoticeHeld, NoticeResumed, NoticeDueSoon, NoticeDue, NoticeReviewWaits, NoticeReviewOverdue, NoticeFeedbackOpened,
	NoticeFeedbackResolved, NoticeWebhookFailing, NoticeWebhookOff,
}
