package models

// NoticeKind is the reason why a person is notified about a record (api.md 1.5: writes
// have the same effects as in the console).
type NoticeKind string

// The kinds of notice.
const (
	NoticeAssigned         NoticeKind = "work_order.assigned"           // as a worker
	NoticeConsulted        NoticeKind = "work_order.consulted"          // as a consultant
	NoticeUnassigned       NoticeKind = "work_order.unassigned"         // in either role
	NoticeReturned         NoticeKind = "work_order.returned"           // by a service company, to the workers
	NoticeStarted          NoticeKind = "work_order.started"            // by the first answer
	NoticeUpdated          NoticeKind = "work_order.updated"            // title, description, priority or target date
	NoticeCompleted        NoticeKind = "work_order.completed"          // by a worker, or by a consultant's approval
	NoticeReviewWanted     NoticeKind = "work_order.sent_to_inspection" // to the consultants
	NoticeInReview         NoticeKind = "work_order.in_review"          // to the creator
	NoticeSentBack         NoticeKind = "work_order.sent_back"          // by a consultant
	NoticeCancelled        NoticeKind = "work_order.cancelled"
	NoticeHeld             NoticeKind = "work_order.held"
	NoticeResumed          NoticeKind = "work_order.resumed"
	NoticeDueSoon          NoticeKind = "work_order.due_soon"       // a day before its target date
	NoticeDue              NoticeKind = "work_order.due"            // at its target date
	NoticeReviewWaits      NoticeKind = "work_order.review_waiting" // to the consultants
	NoticeReviewOverdue    NoticeKind = "work_order.review_overdue" // to the inventory managers
	NoticeNoOneCan         NoticeKind = "work_order.no_one_can"     // do it: to the inventory managers
	NoticeCommented        NoticeKind = "work_order.commented"
	NoticeFeedbackOpened   NoticeKind = "issue.created"
	NoticeFeedbackResolved NoticeKind = "issue.resolved"
	NoticeFeedbackComment  NoticeKind = "issue.commented"
	NoticeWebhookFailing   NoticeKind = "webhook.failing"    // for a day
	NoticeWebhookOff       NoticeKind = "webhook.turned_off" // after a final failure
)

// The kinds of notice about who may do what and how people sign in. Administrators get
// them, and the people concerned.
const (
	NoticeRoleChanged          NoticeKind = "person.role_changed"
	NoticeSignInAdded          NoticeKind = "person.sign_in_added" // a password, or an account of an OpenID provider
	NoticeSignInRemoved        NoticeKind = "person.sign_in_removed"
	NoticePasswordChanged      NoticeKind = "person.password_changed"
	NoticeEmailChanged         NoticeKind = "person.email_changed"
	NoticeSecretRenewed        NoticeKind = "integration.secret_renewed"
	NoticeOwnersChanged        NoticeKind = "integration.owners_changed"
	NoticeOwnerLost            NoticeKind = "integration.owner_lost"      // someone who may know its secret
	NoticeWebhookSecretRenewed NoticeKind = "webhook.secret_renewed"      // of an address
	NoticeTeamAccess           NoticeKind = "team.member_added"           // to a team with rights on nodes
	NoticeAccessChanged        NoticeKind = "organization.access_changed" // by a role's change, an import or an operator's command
	NoticeOpenIDRequired       NoticeKind = "organization.openid_required"
	NoticeOpenIDLifted         NoticeKind = "organization.openid_lifted"
)

// NoticeOperated tells the person as whom an operator of the service acted, about what the
// operator changed: a record, an identity or a webhook address.
const NoticeOperated NoticeKind = "operator.acted"

// AllNoticeKinds lists every kind of notice.
var AllNoticeKinds = []NoticeKind{
	NoticeAssigned, NoticeConsulted, NoticeUnassigned, NoticeReturned, NoticeStarted, NoticeUpdated, NoticeCompleted, NoticeReviewWanted, NoticeInReview, NoticeSentBack, NoticeCancelled,
	NoticeHeld, NoticeResumed, NoticeDueSoon, NoticeDue, NoticeReviewWaits, NoticeReviewOverdue, NoticeNoOneCan, NoticeCommented, NoticeFeedbackOpened,
	NoticeFeedbackResolved, NoticeFeedbackComment, NoticeWebhookFailing, NoticeWebhookOff,
	NoticeRoleChanged, NoticeSignInAdded, NoticeSignInRemoved, NoticePasswordChanged, NoticeEmailChanged,
	NoticeSecretRenewed, NoticeOwnersChanged, NoticeOwnerLost, NoticeWebhookSecretRenewed, NoticeTeamAccess,
	NoticeAccessChanged, NoticeOpenIDRequired, NoticeOpenIDLifted, NoticeOperated,
}
