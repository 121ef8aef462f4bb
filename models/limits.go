package models

import "time"

// The limits of api.md 8.1.
const (
	// TokenLifetime is the time for which an access token is valid.
	TokenLifetime = 3600 * time.Second
	// MaxWebhooks is the most webhook addresses an integration has.
	MaxWebhooks = 5
	// WebhookResponseTimeout limits the time that a receiver may take to respond, unless
	// WEBHOOK_RESPONSE_TIMEOUT is set.
	WebhookResponseTimeout = 10 * time.Second
	// SignatureTolerance is the maximum distance of a signature's time from the receiver's clock.
	SignatureTolerance = 5 * time.Minute
	// DeliveryAttempts is the number of attempts of DefaultRetrySchedule.
	DeliveryAttempts = 8
	// DefaultShutOffAfter is the time without a successful delivery after which a final
	// failure turns an address off, unless WEBHOOK_SHUTOFF_AFTER is set.
	DefaultShutOffAfter = 3 * 24 * time.Hour
	// EventRetention is the time for which events and their deliveries are kept.
	EventRetention = 30 * 24 * time.Hour
	// RateWindow is the window in which an integration's calls are counted: the
	// plan sets the number of calls per minute.
	RateWindow = time.Minute
)

// What a person sends in the console in a minute.
const (
	// FormsPerMinute limits forms. One over many records is one.
	FormsPerMinute = 60
	// CommentsPerMinute limits comments among them, each a notice to many.
	CommentsPerMinute = 20
)

// DefaultRetrySchedule is the delivery schedule of api.md 6.9, eight attempts in
// about two days, unless WEBHOOK_RETRY_SCHEDULE sets another.
var DefaultRetrySchedule = RetrySchedule{
	time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// Requests (api.md 4.10).
const (
	// MaxRecordBody is the size of the largest body that creates or changes a record,
	// MaxActionBody that of an assignment or cancellation, MaxAnswersBody that of answers,
	// in bytes.
	MaxRecordBody  = 160 << 10
	MaxActionBody  = 16 << 10
	MaxAnswersBody = 1 << 20
	// MaxCounted is where counts for people stop: "10,000 or more".
	MaxCounted = 10_000
	// MaxFieldErrors limits the invalid fields that an error names.
	MaxFieldErrors = 100
)

// Texts and lists of records, in characters and items (api.md 2.3, 2.9).
const (
	// MaxTitle bounds the title of a work order and the subject of feedback.
	MaxTitle = 200
	// MaxDescription bounds the descriptions of work orders and feedback.
	MaxDescription = 10_000
	// MaxExternalID bounds the caller's own reference.
	MaxExternalID = 200
	// MaxCancelReason bounds the reason for cancelling a work order.
	MaxCancelReason = 1_000
	// MaxReturnReason bounds the reason for returning a work order to the customer.
	MaxReturnReason = 1_000
	// MaxReviewComment bounds a consultant's comment on a review.
	MaxReviewComment = 1_000
	// MaxComment bounds a comment on a work order or feedback.
	MaxComment = 10_000
	// MaxAssignees bounds the assignees, and the consultants, named in one call.
	MaxAssignees = 100
	// MaxAnswers bounds the form answers of one call.
	MaxAnswers = 500
	// MaxChoices bounds, on average over the answers of one call, the options of a
	// multiple-choice answer.
	MaxChoices = 100
	// MaxAnswerText bounds the answer to a text question.
	MaxAnswerText = 10_000
	// MaxIntegerDigits bounds the answer to an integer question, so that it fits into 64 bits.
	MaxIntegerDigits = 18
	// MaxDecimalDigits bounds the answer to a decimal question on each side of the point.
	MaxDecimalDigits = 30
)

// Lists (api.md 4.13).
const (
	// DefaultPageSize is the size of a page when the call has no limit.
	DefaultPageSize = 50
	// MaxPageSize is the size of the largest page; greater limits are capped.
	MaxPageSize = 200
	// SyncTokenLifetime is the time for which a sync token can be used.
	SyncTokenLifetime = 30 * 24 * time.Hour
)

// Idempotency keys (api.md 4.17).
const (
	// MaxIdempotencyKey is the length of the longest key, in characters.
	MaxIdempotencyKey = 255
	// IdempotencyRetention is the time for which a key and its response are kept.
	IdempotencyRetention = 24 * time.Hour
)

// Webhooks (api.md 6.6, 6.10, 6.11).
const (
	// MaxClientSecretOverlap limits the time for which a client secret works after its renewal (api.md 5.11).
	MaxClientSecretOverlap = 72 * time.Hour
	// SecretOverlap is the time for which a signing secret stays valid after its renewal, whatever
	// follows. A third renewal within it is rejected.
	SecretOverlap = 24 * time.Hour
	// MaxKeptResponse limits the bytes of a receiver's response that an attempt keeps.
	MaxKeptResponse = 4 << 10
	// MaxOffReason bounds the reason for turning an address off, in characters.
	MaxOffReason = 1_000
	// WebhookWarningAfter is the time after which a failing address's owner and the
	// organization's administrators are warned.
	WebhookWarningAfter = 24 * time.Hour
)

// Integrations (docs/import.md).
const (
	// MaxName bounds the name of an integration or a person, in characters.
	MaxName = 200
	// MaxLabel bounds the label of a question or a choice, in characters.
	MaxLabel = 1000
	// MinClientSecret is the length of the shortest client secret an import file may give.
	MinClientSecret = 20
)

// Reminders about work orders.
const (
	// DueSoonBefore is the time between the workers' reminder and the target date.
	DueSoonBefore = 24 * time.Hour
	// DefaultReviewReminderAfter is the time after which the consultants of a waiting review
	// are reminded, DefaultReviewEscalationAfter after which the inventory managers are
	// notified.
	DefaultReviewReminderAfter   = 48 * time.Hour
	DefaultReviewEscalationAfter = 96 * time.Hour
)

// Signing in to the console.
const (
	// SessionIdle is the life of a session after its last request, SessionLifetime
	// after the sign-in.
	SessionIdle     = 12 * time.Hour
	SessionLifetime = 7 * 24 * time.Hour
	// RecentSignIn is the time for which a sign-in is recent: pages about secrets, roles and ways to sign
	// in take one. Each of their actions renews it, up to MaxRecentSignIn after the sign-in.
	RecentSignIn    = 15 * time.Minute
	MaxRecentSignIn = 2 * time.Hour
	// InvitationLifetime and ResetLifetime are the times for which a link can be used.
	InvitationLifetime = 7 * 24 * time.Hour
	ResetLifetime      = time.Hour
	// MinPassword and MaxPassword bound a password, in characters.
	MinPassword = 10
	MaxPassword = 200
	// FormKeyRetention is the time for which the key of a form that was sent is kept. No session in
	// which a form was shown lasts as long.
	FormKeyRetention = 8 * 24 * time.Hour
)
