package client_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oapi-codegen/nullable"

	"millwright/api/apitest"
	"millwright/client"
)

// dial returns a client for the fixture's ERP.
func dial(t *testing.T, s *apitest.Server, scopes ...string) *client.ClientWithResponses {
	t.Helper()
	erp := s.Acme.Integrations["erp"]
	c, err := client.New(t.Context(), s.URL+"/v1/", erp.ClientID, erp.ClientSecret, scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// want returns the record of a response, and fails the test without one.
func want[T any](t *testing.T, err error, record *T, problem *client.Problem) *T {
	t.Helper()
	switch {
	case err != nil:
		t.Fatal(err)
	case problem != nil:
		t.Fatal(problem)
	case record == nil:
		t.Fatal("the response has neither a record nor a problem")
	}
	return record
}

// TestAWorkOrderFromCreationToCompletion makes the calls that most integrations make.
func TestAWorkOrderFromCreationToCompletion(t *testing.T) {
	s := apitest.New(t)
	c, ctx := dial(t, s), t.Context()
	target := time.Date(2026, time.March, 5, 12, 0, 0, 0, time.UTC)

	created, err := c.CreateWorkOrderWithResponse(ctx, &client.CreateWorkOrderParams{IdempotencyKey: new("7781-create")}, client.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace filter", Description: new("Pressure drop too high."),
		Priority: new(client.NewWorkOrderPriorityHigh), TargetDate: &target, FormID: new(s.ID("inspection")),
		Assignees: &[]string{s.ID("erp")}, ExternalID: new("ERP-7781"),
	})
	order := want(t, err, created.JSON201, created.ApplicationProblemJSONDefault)
	if order.Status.Code != client.WorkOrderStatusCodeOpen || order.TargetDate == nil || !order.TargetDate.Equal(target) || order.CompletedAt != nil {
		t.Errorf("the created work order is %+v", order)
	}

	read, err := c.GetWorkOrderWithResponse(ctx, order.ID, nil)
	if got := want(t, err, read.JSON200, read.ApplicationProblemJSONDefault); got.Title != "Replace filter" || got.ExternalID == nil || *got.ExternalID != "ERP-7781" {
		t.Errorf("the read work order is %+v", got)
	}
	etag := read.HTTPResponse.Header.Get("ETag")
	unchanged, err := c.GetWorkOrderWithResponse(ctx, order.ID, &client.GetWorkOrderParams{IfNoneMatch: &etag})
	if err != nil || unchanged.StatusCode() != http.StatusNotModified {
		t.Errorf("an unchanged work order gets %d (%v), want 304", unchanged.StatusCode(), err)
	}

	listed, err := c.ListWorkOrdersWithResponse(ctx, &client.ListWorkOrdersParams{
		Status: &[]client.ListWorkOrdersParamsStatus{client.ListWorkOrdersParamsStatusOpen, client.ListWorkOrdersParamsStatusInProgress}, Limit: new(int64(10)),
	})
	if page := want(t, err, listed.JSON200, listed.ApplicationProblemJSONDefault); len(page.Data) != 1 || page.Data[0].ID != order.ID || page.HasMore {
		t.Errorf("the page is %+v", page)
	}

	patched, err := c.UpdateWorkOrderWithResponse(ctx, order.ID, &client.UpdateWorkOrderParams{IfMatch: &etag}, client.WorkOrderPatch{
		Title: new("Replace both filters"), TargetDate: nullable.NewNullNullable[time.Time](),
	})
	changed := want(t, err, patched.JSON200, patched.ApplicationProblemJSONDefault)
	if changed.Title != "Replace both filters" || changed.TargetDate != nil || changed.Description == nil {
		t.Errorf("after the patch the work order is %+v, want a new title, no target date and the old description", changed)
	}

	completed, err := c.AnswerWorkOrderWithResponse(ctx, order.ID, nil, client.GivenAnswers{
		Answers: &[]client.GivenAnswer{
			{QuestionID: s.ID("q_state"), Value: s.ID("o_dirty")},
			{QuestionID: s.ID("q_parts"), Value: []string{s.ID("o_belt"), s.ID("o_filter")}},
			{QuestionID: s.ID("q_hours"), Value: 1250},
			{QuestionID: s.ID("q_pressure"), Value: 212.5},
		},
		Complete: new(true),
	})
	if done := want(t, err, completed.JSON200, completed.ApplicationProblemJSONDefault); done.Status.Code != client.WorkOrderStatusCodeComplete || done.CompletedAt == nil {
		t.Errorf("the completed work order is %+v", done)
	}
	answered, err := c.GetAnswersWithResponse(ctx, order.ID, nil)
	answers := want(t, err, answered.JSON200, answered.ApplicationProblemJSONDefault)
	if answers.Form == nil || answers.Form.Name != "Inspection" || len(answers.Questions) != 5 {
		t.Fatalf("the answers are %+v", answers)
	}
	if got := string(answers.Questions[3].Value); got != "212.5" {
		t.Errorf("the decimal is read as %s", got)
	}
}

func TestFeedback(t *testing.T) {
	s := apitest.New(t)
	c := dial(t, s)
	body := client.NewFeedback{InventoryID: s.ID("roof"), Subject: "The light flickers", ExternalID: new("DESK-19")}
	created, err := c.CreateIssueWithResponse(t.Context(), nil, body)
	feedback := want(t, err, created.JSON201, created.ApplicationProblemJSONDefault)
	if feedback.Status.Code != client.FeedbackStatusCodeOpen || feedback.ResolvedAt != nil {
		t.Errorf("the feedback is %+v", feedback)
	}
	read, err := c.GetIssueWithResponse(t.Context(), feedback.ID, nil)
	if got := want(t, err, read.JSON200, read.ApplicationProblemJSONDefault); got.Subject != body.Subject {
		t.Errorf("the read feedback is %+v", got)
	}
	again, err := c.CreateIssueWithResponse(t.Context(), nil, body)
	if err != nil {
		t.Fatal(err)
	}
	problem := again.ApplicationProblemJSONDefault
	if problem == nil || problem.Code != "external_id_taken" || again.StatusCode() != http.StatusConflict || !strings.HasPrefix(problem.Error(), "external_id_taken: ") {
		t.Errorf("the same external id again gets %d %v", again.StatusCode(), problem)
	}
}

func TestARejectedTokenIsReplaced(t *testing.T) {
	s := apitest.New(t)
	c := dial(t, s, "issues:write")
	first, err := c.GetMeWithResponse(t.Context(), nil)
	me := want(t, err, first.JSON200, first.ApplicationProblemJSONDefault)
	if me.IdentityID != s.ID("erp") || me.RateLimit.Limit != 1000 || len(me.Scopes) != 1 || me.Scopes[0] != client.IssuesWrite {
		t.Errorf("me is %+v, want the requested scope", me)
	}
	s.Exec(`UPDATE integrations SET token_epoch = token_epoch + 1 WHERE id = $1`, s.ID("erp"))
	created, err := c.CreateIssueWithResponse(t.Context(), nil, client.NewFeedback{InventoryID: s.ID("roof"), Subject: "Leak"})
	want(t, err, created.JSON201, created.ApplicationProblemJSONDefault)

	s.Exec(`UPDATE integrations SET enabled = false WHERE id = $1`, s.ID("erp"))
	if rejected, err := c.GetMeWithResponse(t.Context(), nil); err == nil {
		t.Errorf("an integration that is off gets %d", rejected.StatusCode())
	}
}
