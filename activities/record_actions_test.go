package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// said returns the record's status after an action, or its rejection.
func said[State any](acted activities.Acted[State], err error) string {
	if err == nil {
		return acted.Result.Status
	}
	return rejection(err)
}

// rejection describes the error of an operator's action: "CODE: sentence", or "again" and the
// error if another attempt may succeed.
func rejection(err error) string {
	rejected, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !rejected.NonRetryable() {
		return fmt.Sprint("again ", err)
	}
	return rejected.Type() + ": " + rejected.Message()
}

func TestOperatorsActOnRecords(t *testing.T) {
	h := newMailHarness(t)
	activity := &activities.Records{Service: h.Service, OperatorActions: true}
	id := h.assign(h.Actor("erp"), []string{"erp"}, []string{"cat"})
	updates := 0
	action := func(person, text string) activities.RecordAction {
		updates++
		return activities.RecordAction{RecordID: id, Update: "update", UpdateID: fmt.Sprint(updates), Person: h.ID(person), Text: text}
	}
	approve := action("cat", strings.Repeat("x", 1001))
	approve.Approve = true
	expect := func(what, got, want string) { t.Helper(); servicetest.Expect(t, what, got, want) }
	ctx := t.Context()
	h.Wakes.Take()
	held, err := activity.HoldWorkOrder(ctx, action("ann", ""), models.Time{})
	expect("hold", said(held, err), "on_hold")
	if n := len(held.State.Transitions); held.State.Status != models.StatusOnHold || n != 2 {
		t.Errorf("the state after the hold is %+v, want it with the creation and the hold", held.State)
	}
	for _, target := range h.Wakes.Take() {
		if target.ID == id {
			t.Error("the action wakes the workflow that acts")
		}
	}
	expect("dirty", servicetest.Value[string](h.Fixture, `SELECT count(*)::text FROM dirty_records WHERE record_id = $1`, id), "0")
	expect("hold again", said(activity.HoldWorkOrder(ctx, action("ann", ""), models.Time{})), `rule_violation: A work order with the status "On hold" does not allow this.`)
	expect("resume", said(activity.ResumeWorkOrder(ctx, action("ann", ""), models.Time{})), "open")
	if _, err := h.Records.AnswerWorkOrder(ctx, h.Actor("erp"), store.NoKey, id, nil, records.CompleteWork); err != nil {
		t.Fatal(err)
	}
	expect("too long a comment", said(activity.ReviewWorkOrder(ctx, approve, models.Time{})), "validation_failed: The comment has at most 1,000 characters.")
	expect("review as a stranger", said(activity.ReviewWorkOrder(ctx, action("zed", ""), models.Time{})), "not_found: The person may not read this record, or it does not exist.")
	expect("review as another organization", said(activity.ReviewWorkOrder(ctx, action("pia", ""), models.Time{})),
		"not_found: The record's organization has no person with the identity id "+h.ID("pia")+".")
	sendBack := action("cat", "The belt is loose.")
	expect("send back", said(activity.ReviewWorkOrder(ctx, sendBack, models.Time{})), "back_from_inspection")
	expect("send back, repeated", said(activity.ReviewWorkOrder(ctx, sendBack, models.Time{})), "back_from_inspection")
	expect("cancel", said(activity.CancelWorkOrder(ctx, action("ann", "Duplicate"), models.Time{})), "cancelled")
	expect("the reason", servicetest.Value[string](h.Fixture, `SELECT cancel_reason FROM work_orders WHERE id = $1`, id), "Duplicate")
	expect("the log", servicetest.Value[string](h.Fixture, `
		SELECT string_agg(actor_name || ' ' || action, ', ' ORDER BY id) FROM log_records WHERE record_id = $1 AND actor_name LIKE '%(operator)'`, id),
		"Ann Field (operator) work_order.held, Ann Field (operator) work_order.resumed, "+
			"Cat Rivers (operator) work_order.sent_back, Ann Field (operator) work_order.cancelled")

	created, err := h.Records.CreateFeedback(ctx, h.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
	if err != nil {
		t.Fatal(err)
	}
	id = created.RecordID
	expect("resolve without the permission", said(activity.ResolveFeedback(ctx, action("bob", ""), models.Time{})), "not_found: The person may not read this record, or it does not exist.")
	expect("resolve", said(activity.ResolveFeedback(ctx, action("ann", ""), models.Time{})), "resolved")
	expect("resolve again", said(activity.ResolveFeedback(ctx, action("ann", ""), models.Time{})), `rule_violation: Feedback with the status "Resolved" does not allow this.`)

	activity.OperatorActions = false
	expect("without the setting", said(activity.ResolveFeedback(ctx, action("ann", ""), models.Time{})),
		"permission_denied: Operators may not act on records here: the setting OPERATOR_ACTIONS of the worker is false.")
	activity.OperatorActions = true
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if got := said(activity.ResolveFeedback(ended, action("ann", ""), models.Time{})); !strings.HasPrefix(got, "again ") {
		t.Errorf("without a database: %q, want another attempt", got)
	}
}
