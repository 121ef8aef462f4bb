package models

// FeedbackStatus is a status of feedback (docs/contract.md, Records).
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

// Record returns the feedback as the API shows it, without its inventory node and people.
func (f Feedback) Record() FeedbackRecord {
	return FeedbackRecord{
		ID:             f.ID,
		OrganizationID: f.OrganizationID,
		InventoryID:    f.InventoryID,
		Subject:        f.Subject,
		Description:    f.Description,
		ExternalID:     f.ExternalID,
		Status:         Status{Code: string(f.Status), Name: f.Status.Name()},
		CreatedBy:      f.CreatedBy,
		CreatedAt:      f.CreatedAt,
		ChangedAt:      f.ChangedAt,
		ResolvedAt:     f.ResolvedAt,
	}
}
