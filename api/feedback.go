package api

import (
	"context"
	"net/http"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

func (a *API) feedbackOperations() []operation {
	feedback := feedbackExample()
	return []operation{
		{
			id: "create-issue", method: http.MethodPost, path: "/issues", tag: tagFeedback, scope: models.ScopeIssuesWrite, maxBody: models.MaxRecordBody,
			summary: "Give feedback",
			text:    "Requires the permission to create feedback on the node.",
			success: "The feedback.",
			handler: write[models.FeedbackRecord](http.StatusCreated, func(ctx context.Context, actor store.Actor, key store.Key, in *createFeedbackInput) (store.WriteResult, error) {
				return a.service.Records.CreateFeedback(ctx, actor, key, records.NewFeedback(in.Body))
			}),
			requests: map[string]any{"feedback": newFeedback{
				InventoryID: exampleLocation, Subject: feedback.Subject, Description: feedback.Description, ExternalID: feedback.ExternalID,
			}},
			responses: map[string]any{"created": feedback},
			errors:    []models.Code{models.CodeExternalIDTaken, models.CodePermissionDenied},
		},
		{
			id: "get-issue", method: http.MethodGet, path: "/issues/{id}", tag: tagFeedback, scope: models.ScopeIssuesRead,
			summary: "Read feedback",
			text:    "Returns one piece of feedback, as webhooks show it in `data.issue`.",
			success: "The feedback.",
			handler: readRecord[models.FeedbackRecord, feedbackInput](records.FeedbackReader), responses: map[string]any{"open": feedback, "resolved": resolvedExample()},
		},
		{
			id: "list-issues", method: http.MethodGet, path: "/issues", tag: tagFeedback, scope: models.ScopeIssuesRead,
			summary: "List feedback",
			text:    "Lists the feedback that the integration may read: newest first, or with changed_since in order of change.",
			success: "A page of feedback.",
			handler: read[lists.Page[models.FeedbackRecord]](a.listFeedback), responses: pages(feedback),
		},
	}
}

type createFeedbackInput struct {
	WriteInput
	Body newFeedback
}

// newFeedback is the body of POST /issues.
type newFeedback struct {
	InventoryID string  `json:"inventory_id" minLength:"1" maxLength:"64" doc:"The node that the feedback is about." example:"loc_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Subject     string  `json:"subject" minLength:"1" maxLength:"200" doc:"Subject." example:"The light flickers"`
	Description *string `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description." example:"In the corridor of the second floor."`
	ExternalID  *string `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; unique in the organization." example:"DESK-19"`
}

type feedbackInput struct {
	ReadInput
	ID string `path:"id" doc:"Feedback id." example:"iss_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

type listFeedbackInput struct {
	ListInput
	Status      []string `query:"status" enum:"open,resolved" doc:"Only feedback with these status codes, separated by commas."`
	InventoryID idParam  `query:"inventory_id" doc:"Only feedback about this node and the nodes below it."`
	ExternalID  string   `query:"external_id" minLength:"1" maxLength:"200" doc:"Only the feedback with this external_id."`
}

func (a *API) listFeedback(ctx context.Context, actor store.Actor, in *listFeedbackInput) ([]byte, error) {
	filter := records.FeedbackFilter{InventoryID: string(in.InventoryID), ExternalID: in.ExternalID}
	for _, code := range in.Status {
		filter.Statuses = append(filter.Statuses, models.FeedbackStatus(code))
	}
	return a.service.Records.FeedbackList(ctx, actor, filter, in.request())
}
