package records_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The response to a write is the record as its GET shows it afterwards, although the
// write does not load what it has written.
func TestAWriteRespondsWithTheRecordAsItsGetShowsIt(t *testing.T) {
	for _, people := range []bool{false, true} {
		h := servicetest.NewHarness(t)
		erp, ctx := h.As("erp"), t.Context()
		erp.ShowPeople = people
		id := ""
		same := func(what string, result store.WriteResult, err error) {
			t.Helper()
			h.MustWrite(result, err)
			id = result.RecordID
			shown, err := h.Records.WorkOrder(ctx, erp, id)
			if err != nil {
				t.Fatal(err)
			}
			if string(result.Body) != string(shown) {
				t.Errorf("%s, people shown %t: the response is\n%s\nGET shows\n%s", what, people, result.Body, shown)
			}
		}
		description, reference, form, reason := "Öl & \"Filter\"\n", "PO-17", h.ID("inspection"), "not needed"
		target := models.TimeOf(time.Date(2026, 5, 1, 7, 0, 0, 1_999_999, time.UTC))
		result, err := h.Records.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})
		same("a creation for the managers", result, err)
		result, err = h.Records.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: "Replace filter", Description: &description, ExternalID: &reference, FormID: &form,
			Priority: models.PriorityHigh, TargetDate: &target, Assignees: h.IDs("erp", "crew", "polar"), Consultants: h.IDs("cat", "bob"),
		})
		same("a creation with everything", result, err)
		result, err = h.Records.UpdateWorkOrder(ctx, erp, store.ForCall("k", "PATCH", "/", []byte("body"), ""), id, records.WorkOrderPatch{
			Title: records.Sent[string]{Value: "Replace both", Set: true}, Description: records.Sent[*string]{Set: true},
			TargetDate: records.Sent[*models.Time]{Set: true}, Priority: records.Sent[models.Priority]{Value: models.PriorityLow, Set: true},
		})
		same("a change", result, err)
		result, err = h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{
			Description: records.Sent[*string]{Value: &reason, Set: true}, TargetDate: records.Sent[*models.Time]{Value: &target, Set: true},
			ExternalID: records.Sent[*string]{Set: true},
		})
		same("another change", result, err)
		result, err = h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{})
		same("no change", result, err)
		result, err = h.Records.AssignWorkOrder(ctx, erp, store.NoKey, id, h.IDs("ann"), h.IDs("dan"))
		same("an assignment", result, err)
		result, err = h.Records.UnassignWorkOrder(ctx, erp, store.NoKey, id, h.ID("bob"))
		same("its end", result, err)
		result, err = h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, []records.GivenAnswer{
			{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, records.SaveAnswers)
		same("answers", result, err)
		result, err = h.Records.HoldWorkOrder(ctx, h.As("ann"), store.NoKey, id)
		if people { // the console shows them
			same("a hold", result, err)
		}
		if result, err = h.Records.ResumeWorkOrder(ctx, h.As("ann"), store.NoKey, id); people {
			same("a resumption", result, err)
		}
		result, err = h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, nil, records.CompleteWork)
		same("a completion", result, err)
		if result, err = h.Records.ReviewWorkOrder(ctx, h.As("cat"), store.NoKey, id, records.Review{Approve: true}); people {
			same("an approval", result, err)
		}
		id = h.NewWorkOrder([]string{"erp"}, nil)
		result, err = h.Records.CancelWorkOrder(ctx, erp, store.NoKey, id, &reason)
		same("a cancellation", result, err)
		feedback := func(what string, result store.WriteResult, err error) string {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			shown, err := h.Records.Feedback(ctx, erp, result.RecordID)
			if err != nil || string(result.Body) != string(shown) {
				t.Errorf("%s, people shown %t: the response is\n%s\nGET shows\n%s, %v", what, people, result.Body, shown, err)
			}
			return result.RecordID
		}
		result, err = h.Records.CreateFeedback(ctx, erp, store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles", Description: &description})
		given := feedback("feedback", result, err)
		ann := h.As("ann")
		ann.ShowPeople = people
		result, err = h.Records.ResolveFeedback(ctx, ann, store.NoKey, given)
		feedback("a resolution", result, err)
	}
}

// A crash of Postgres takes back the numbers whose creations were not committed, and gives
// them again: a process must not remember them.
func TestNoNumberIsUsedTwiceAfterACrash(t *testing.T) {
	h := servicetest.NewHarness(t)
	create := func(form *string) (store.WriteResult, error) {
		return h.Records.CreateWorkOrder(t.Context(), h.As("erp"), store.NoKey,
			records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter", FormID: form})
	}
	before := h.MustWrite(create(nil)).Number
	unknown := "frm_01kjq7k5pge00a5z4cn7dzgdpj"
	if _, err := create(&unknown); err == nil {
		t.Fatal("a work order with an unknown form is created")
	}
	h.Exec(`SELECT setval(('work_order_numbers.' || quote_ident($1))::regclass, $2)`, h.Acme.OrganizationID, before)
	for want := before + 1; want <= before+3; want++ {
		if number := h.MustWrite(create(nil)).Number; number != want {
			t.Errorf("the number is %d, want %d", number, want)
		}
	}
}

// Neither an actor that may not create a work order nor a form with invalid fields takes a number.
func TestARejectedWorkOrderTakesNoNumber(t *testing.T) {
	h := servicetest.NewHarness(t)
	create := func(actor string) (store.WriteResult, error) {
		return h.Records.CreateWorkOrder(t.Context(), h.As(actor), store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})
	}
	key := store.ForCall("key", "POST", "/", []byte("body"), "")
	repeat := func() models.WorkOrderRecord {
		return h.MustWrite(h.Records.CreateWorkOrder(t.Context(), h.As("erp"), key, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"}))
	}
	before := repeat().Number
	if repeated := repeat().Number; repeated != before {
		t.Errorf("a repeated call has the number %d, want %d", repeated, before)
	}
	for _, actor := range []string{"reader", "outsider"} {
		if _, err := create(actor); err == nil {
			t.Errorf("%s creates a work order", actor)
		}
	}
	h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
	if _, err := create("erp"); err == nil {
		t.Error("a work order is created in a read-only organization")
	}
	h.Exec(`UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
	long := strings.Repeat("x", 10_001)
	for name, in := range map[string]records.NewWorkOrder{
		"no title":           {InventoryID: h.ID("ahu1"), Title: " "},
		"a long description": {InventoryID: h.ID("ahu1"), Title: "Replace filter", Description: &long},
		"no such priority":   {InventoryID: h.ID("ahu1"), Title: "Replace filter", Priority: "urgent"},
	} {
		if _, err := h.Records.CreateWorkOrder(t.Context(), h.As("erp"), store.NoKey, in); err == nil {
			t.Errorf("a work order with %s is created", name)
		}
	}
	if after := h.MustWrite(create("erp")).Number; after != before+1 {
		t.Errorf("the next number is %d, want %d", after, before+1)
	}
}
