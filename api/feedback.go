package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service"
)

// newFeedback is the body of POST /issues.
type newFeedback struct {
	InventoryID string  `json:"inventory_id" minLength:"1" maxLength:"64" doc:"The node the feedback concerns." example:"loc_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Subject     string  `json:"subject" minLength:"1" maxLength:"200" doc:"Subject." example:"The light flickers"`
	Description *string `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description." example:"In the corridor of the second floor."`
	ExternalID  *string `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; used once in the organization." example:"DESK-19"`
}

func (a *API) registerFeedback() {
	register(a, huma.Operation{
		OperationID: "create-issue", Method: http.MethodPost, Path: "/issues", Tags: []string{"Feedback"},
		Summary:       "Give feedback",
		Description:   "Needs the permission to create feedback on the node.",
		DefaultStatus: http.StatusCreated,
		Metadata:      map[string]any{scopeKey: models.ScopeIssuesWrite},
		Responses:     writes[models.FeedbackRecord](a, "201", "The feedback."),
		Errors:        append([]int{409}, createErrors...),
	}, func(ctx context.Context, in *struct {
		Idempotent
		Body newFeedback
	}) (*writeAnswer, error) {
		state := callOf(ctx)
		call, err := in.call(state)
		if err != nil {
			return nil, err
		}
		answer, err := a.service.CreateFeedback(ctx, state.caller.Actor, call, service.NewFeedback(in.Body))
		if err != nil {
			return nil, err
		}
		return written(answer, "/v1/issues"), nil
	})

	read := map[string]any{scopeKey: models.ScopeIssuesRead}
	register(a, huma.Operation{
		OperationID: "get-issue", Method: http.MethodGet, Path: "/issues/{id}", Tags: []string{"Feedback"},
		Summary: "Read feedback", Metadata: read,
		Responses: reads[models.FeedbackRecord](a, "The feedback."), Errors: readErrors,
	}, func(ctx context.Context, in *struct {
		Conditional
		ID string `path:"id" doc:"Feedback id." example:"iss_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	}) (*recordAnswer, error) {
		return in.answer(a.service.Feedback(ctx, callOf(ctx).caller.Actor, in.ID))
	})

	register(a, huma.Operation{
		OperationID: "list-issues", Method: http.MethodGet, Path: "/issues", Tags: []string{"Feedback"},
		Summary: "List feedback", Metadata: read,
		Responses: reads[service.Page[models.FeedbackRecord]](a, "A page of feedback."), Errors: listErrors,
	}, func(ctx context.Context, in *struct {
		Listed
		Status      []string `query:"status" enum:"open,resolved" doc:"Only these status codes, separated by commas."`
		InventoryID string   `query:"inventory_id" maxLength:"64" doc:"Only those of this node and everything below it."`
		ExternalID  string   `query:"external_id" maxLength:"200" doc:"Only the one with this reference of yours."`
	}) (*recordAnswer, error) {
		filter := service.FeedbackFilter{InventoryID: in.InventoryID, ExternalID: in.ExternalID}
		for _, code := range in.Status {
			filter.Statuses = append(filter.Statuses, models.FeedbackStatus(code))
		}
		return in.answer(a.service.FeedbackList(ctx, callOf(ctx).caller.Actor, filter, in.request()))
	})
}
