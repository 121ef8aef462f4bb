package models

// FeedbackStatus is a status of feedback (api.md 3.1).
type FeedbackStatus string

// The statuses of feedback.
const (
	FeedbackOpen     FeedbackStatus = "open"
	FeedbackResolved FeedbackStatus = "resolved"
)

// FeedbackStatuses lists every status of feedback.
var FeedbackStatuses = []FeedbackStatus{FeedbackOpen, FeedbackResolved}

// Name returns the status in English, "" for an unknown one.
func (s FeedbackStatus) Name() string {
	switch s {
	case FeedbackOpen:
		return "Open"
	case FeedbackResolved:
		return "Resolved"
	}
	return ""
}
