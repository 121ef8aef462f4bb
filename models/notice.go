package models

// NoticeKind says why a person is told about a record (spec section 1: the same
// effects as the app).
type NoticeKind string

// The kinds of notice.
const (
	NoticeAssigned         NoticeKind = "work_order.assigned"           // as a worker
	NoticeConsulted        NoticeKind = "work_order.consulted"          // as a consultant
	NoticeUnassigned       NoticeKind = "work_order.unassigned"         // in either role
	NoticeCompleted        NoticeKind = "work_order.completed"          // by its workers or after review
	NoticeReviewWanted     NoticeKind = "work_order.sent_to_inspection" // the consultants have to look
	NoticeSentBack         NoticeKind = "work_order.sent_back"          // by a consultant
	NoticeCancelled        NoticeKind = "work_order.cancelled"
	NoticeHeld             NoticeKind = "work_order.held"
	NoticeResumed          NoticeKind = "work_order.resumed"
	NoticeDueSoon          NoticeKind = "work_order.due_soon"       // its target date is a day away
	NoticeDue              NoticeKind = "work_order.due"            // its target date is here
	NoticeReviewWaits      NoticeKind = "work_order.review_waiting" // for two days
	NoticeFeedbackOpened   NoticeKind = "issue.created"
	NoticeFeedbackResolved NoticeKind = "issue.resolved"
	NoticeWebhookFailing   NoticeKind = "webhook.failing"    // no attempt succeeded for a day
	NoticeWebhookOff       NoticeKind = "webhook.turned_off" // by its failures
)

// AllNoticeKinds lists every kind.
var AllNoticeKinds = []NoticeKind{
	NoticeAssigned, NoticeConsulted, NoticeUnassigned, NoticeCompleted, NoticeReviewWanted, NoticeSentBack, NoticeCancelled,
	NoticeHeld, NoticeResumed, NoticeDueSoon, NoticeDue, NoticeReviewWaits, NoticeFeedbackOpened, NoticeFeedbackResolved,
	NoticeWebhookFailing, NoticeWebhookOff,
}
