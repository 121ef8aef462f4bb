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
		same := func(result store.WriteResult, err error) {
			t.Helper()
			servicetest.Must(t, err)
			id = result.RecordID
			get := h.Records.WorkOrder
			if models.IsID(id, models.PrefixFeedback) {
				get = h.Records.Feedback
			}
			shown, err := get(ctx, erp, id)
			servicetest.Must(t, err)
			if string(result.Body) != string(shown) {
				t.Errorf("people shown %t: the response is\n%s\nGET shows\n%s", people, result.Body, shown)
			}
		}
		description, reference, form, reason := "Öl & \"Filter\"\n", "PO-17", h.ID("inspection"), "not needed"
		target := models.TimeOf(time.Date(2026, 5, 1, 7, 0, 0, 1_999_999, time.UTC))
		same(h.Records.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"}))
		same(h.Records.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: "Replace filter", Description: &description, ExternalID: &reference, FormID: &form,
			Priority: models.PriorityHigh, TargetDate: &target, Assignees: h.IDs("erp", "crew", "polar"), Consultants: h.IDs("cat", "bob"),
		}))
		same(h.Records.UpdateWorkOrder(ctx, erp, store.ForCall("k", "PATCH", "/", []byte("body"), ""), id, records.WorkOrderPatch{
			Title: sent("Replace both"), Description: records.Sent[*string]{Set: true},
			TargetDate: records.Sent[*models.Time]{Set: true}, Priority: sent(models.PriorityLow),
		}))
		same(h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{
			Description: sent(&reason), TargetDate: sent(&target),
			ExternalID: records.Sent[*string]{Set: true},
		}))
		same(h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{}))
		same(h.Records.AssignWorkOrder(ctx, erp, store.NoKey, id, h.IDs("ann"), h.IDs("dan")))
		same(h.Records.UnassignWorkOrder(ctx, erp, store.NoKey, id, h.ID("bob")))
		same(h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, []records.GivenAnswer{
			{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, records.SaveAnswers))
		ann, cat := h.As("ann"), h.As("cat")
		ann.ShowPeople, cat.ShowPeople = people, people
		same(h.Records.HoldWorkOrder(ctx, ann, store.NoKey, id))
		same(h.Records.ResumeWorkOrder(ctx, ann, store.NoKey, id))
		same(h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, nil, records.CompleteWork))
		same(h.Records.ReviewWorkOrder(ctx, cat, store.NoKey, id, records.Review{Approve: true}))
		id = h.NewWorkOrder([]string{"erp"}, nil)
		same(h.Records.CancelWorkOrder(ctx, erp, store.NoKey, id, &reason))
		same(h.Records.CreateFeedback(ctx, erp, store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles", Description: &description}))
		same(h.Records.ResolveFeedback(ctx, ann, store.NoKey, id))
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
		servicetest.Expect(t, "the number", h.MustWrite(create(nil)).Number, want)
	}
}

// Neither an actor that may not create a work order nor a form with invalid fields takes a number.
func TestARejectedWorkOrderTakesNoNumber(t *testing.T) {
	h := servicetest.NewHarness(t)
	create := func(key string) int64 {
		call := store.ForCall(key, "POST", "/", []byte("body"), "")
		return h.MustWrite(h.Records.CreateWorkOrder(t.Context(), h.As("erp"), call, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"})).Number
	}
	before := create("key")
	servicetest.Expect(t, "the number of a repeated call", create("key"), before)
	for _, actor := range []string{"reader", "outsider"} {
		if creates(h, actor) == nil {
			t.Errorf("%s creates a work order", actor)
		}
	}
	h.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, h.Acme.OrganizationID)
	if creates(h, "erp") == nil {
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
	servicetest.Expect(t, "the next number", create("another"), before+1)
}
