package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service"
)

func (a *API) registerWorkOrderChanges() {
	write := map[string]any{scopeKey: models.ScopeWorkOrdersWrite}
	changed := func() map[string]*huma.Response {
		return writes[models.WorkOrderRecord](a, "200", "The work order as it is now.")
	}
	register(a, huma.Operation{
		OperationID: "update-work-order", Method: http.MethodPatch, Path: "/work-orders/{id}", Tags: []string{"Work orders"},
		Summary: "Change a work order",
		Description: "Changes the fields that are sent and no others; null clears description, target_date and external_id. " +
			"Allowed while the work order is open, in progress or back from the consultant, with the permission to update work orders on its node.",
		Metadata: write, Responses: changed(), Errors: changeErrors,
	}, a.updateWorkOrder)

	register(a, huma.Operation{
		OperationID: "assign-work-order", Method: http.MethodPost, Path: "/work-orders/{id}/assignees", Tags: []string{"Work orders"},
		Summary: "Add workers and consultants",
		Description: "Needs the permission to forward. Identities must be connected to the node; a service company forwards its " +
			"customer's work order to its own people. Who has the role already keeps it.",
		DefaultStatus: http.StatusOK, Metadata: write, Responses: changed(), Errors: changeErrors,
	}, a.assignWorkOrder)

	register(a, huma.Operation{
		OperationID: "unassign-work-order", Method: http.MethodDelete, Path: "/work-orders/{id}/assignees/{identity_id}", Tags: []string{"Work orders"},
		Summary:       "Remove a worker or consultant",
		Description:   "Needs the permission to forward. A work order keeps at least one worker.",
		DefaultStatus: http.StatusOK, Metadata: write, Responses: changed(), Errors: changeErrors,
	}, a.unassignWorkOrder)

	register(a, huma.Operation{
		OperationID: "cancel-work-order", Method: http.MethodPost, Path: "/work-orders/{id}/cancel", Tags: []string{"Work orders"},
		Summary:       "Cancel a work order",
		Description:   "Needs the permission to delete work orders on the node. Works while the work order is neither complete nor cancelled.",
		DefaultStatus: http.StatusOK, Metadata: write, Responses: changed(), Errors: changeErrors,
	}, a.cancelWorkOrder)

	register(a, huma.Operation{
		OperationID: "answer-work-order", Method: http.MethodPost, Path: "/work-orders/{id}/answers", Tags: []string{"Work orders"},
		Summary: "Answer and complete a work order",
		Description: "The integration must be one of its workers. Unsent questions stay as they are, null clears an answer. With complete, " +
			"every required question must be answered; then the work order is complete, or goes to its consultants' review where it has any.",
		DefaultStatus: http.StatusOK, Metadata: write, Responses: changed(), Errors: changeErrors,
	}, a.answerWorkOrder)

	register(a, huma.Operation{
		OperationID: "get-answers", Method: http.MethodGet, Path: "/work-orders/{id}/answers", Tags: []string{"Work orders"},
		Summary:   "Read a work order's answers",
		Metadata:  map[string]any{scopeKey: models.ScopeFormsRead},
		Responses: reads[models.AnswersRecord](a, "The form's questions with their options and answers."),
		Errors:    readErrors,
	}, a.getAnswers)
}

// workOrderPatch is the body of PATCH /work-orders/{id}.
type workOrderPatch struct {
	Title       *string    `json:"title,omitempty" minLength:"1" maxLength:"200" doc:"Title." example:"Replace both filters"`
	Description *string    `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description; null clears it." example:"The spare is in store 2."`
	Priority    *string    `json:"priority,omitempty" enum:"none,low,medium,high" doc:"Priority." example:"high"`
	TargetDate  *time.Time `json:"target_date,omitempty" nullable:"true" doc:"When it should be done; null clears it." example:"2026-12-01T12:00:00Z"`
	ExternalID  *string    `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; null clears it." example:"ERP-7782"`
}

type updateWorkOrderInput struct {
	Changing
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body workOrderPatch
}

func (a *API) updateWorkOrder(ctx context.Context, in *updateWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(state.body, &sent); err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "The body is not a JSON object.")
	}
	b := in.Body
	patch := service.WorkOrderPatch{
		Description: service.Sent[*string]{Value: b.Description, Set: sent["description"] != nil},
		ExternalID:  service.Sent[*string]{Value: b.ExternalID, Set: sent["external_id"] != nil},
		TargetDate:  service.Sent[*models.Time]{Value: timeOf(b.TargetDate), Set: sent["target_date"] != nil},
	}
	if b.Title != nil {
		patch.Title = service.Sent[string]{Value: *b.Title, Set: true}
	}
	if b.Priority != nil {
		patch.Priority = service.Sent[models.Priority]{Value: models.Priority(*b.Priority), Set: true}
	}
	return given(a.service.UpdateWorkOrder(ctx, state.caller.Actor, call, in.ID, patch))
}

// timeOf is the time as records hold it, nil for nil.
func timeOf(t *time.Time) *models.Time {
	if t == nil {
		return nil
	}
	at := models.TimeOf(*t)
	return &at
}

// assignment is the body of POST /work-orders/{id}/assignees.
type assignment struct {
	Assignees   []string `json:"assignees,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the workers to add."`
	Consultants []string `json:"consultants,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the consultants to add."`
}

type assignWorkOrderInput struct {
	Changing
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body assignment
}

func (a *API) assignWorkOrder(ctx context.Context, in *assignWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	return given(a.service.AssignWorkOrder(ctx, state.caller.Actor, call, in.ID, in.Body.Assignees, in.Body.Consultants))
}

type unassignWorkOrderInput struct {
	Changing
	ID         string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	IdentityID string `path:"identity_id" doc:"Identity id of the worker or consultant." example:"idn_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

func (a *API) unassignWorkOrder(ctx context.Context, in *unassignWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	return given(a.service.UnassignWorkOrder(ctx, state.caller.Actor, call, in.ID, in.IdentityID))
}

// cancellation is the body of POST /work-orders/{id}/cancel.
type cancellation struct {
	Reason *string `json:"reason,omitempty" nullable:"true" maxLength:"1000" doc:"Why, for people." example:"Duplicate of number 1041"`
}

type cancelWorkOrderInput struct {
	Changing
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body *cancellation
}

func (a *API) cancelWorkOrder(ctx context.Context, in *cancelWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	var reason *string
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return given(a.service.CancelWorkOrder(ctx, state.caller.Actor, call, in.ID, reason))
}

// givenAnswers is the body of POST /work-orders/{id}/answers.
type givenAnswers struct {
	Answers  []givenAnswer `json:"answers" maxItems:"500" nullable:"false" doc:"Answers to questions of the work order's form."`
	Complete bool          `json:"complete,omitempty" doc:"Whether the work order is also completed."`
}

type givenAnswer struct {
	QuestionID string `json:"question_id" maxLength:"64" doc:"The question." example:"qst_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Value      any    `json:"value" doc:"An option's id, a list of options' ids, an integer, a decimal number or a text, as the question's type says; null clears the answer."`
}

type answerWorkOrderInput struct {
	Changing
	ID   string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
	Body givenAnswers
}

func (a *API) answerWorkOrder(ctx context.Context, in *answerWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	// Decoded again from the body: numbers must keep their digits.
	var body givenAnswers
	decoder := json.NewDecoder(bytes.NewReader(state.body))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return nil, models.Errorf(models.CodeInvalidRequest, "The body is not JSON.")
	}
	answers := make([]service.GivenAnswer, len(body.Answers))
	for i, answer := range body.Answers {
		answers[i] = service.GivenAnswer(answer)
	}
	return given(a.service.AnswerWorkOrder(ctx, state.caller.Actor, call, in.ID, answers, body.Complete))
}

func (a *API) getAnswers(ctx context.Context, in *getWorkOrderInput) (*recordAnswer, error) {
	return in.answer(a.service.Answers(ctx, callOf(ctx).caller.Actor, in.ID))
}
