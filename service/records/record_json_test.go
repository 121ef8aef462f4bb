package records_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

const odd = "Zoë's \"A\\B\" <&>\t\n\u2028€ 😀"

// Responses show what the models of their records list: every field, in the same order, without spaces. The same record has
// the same bytes wherever it is read: in the response to a write, though that does not load what it has written, in its GET,
// and first in its list.
func TestRecordsAreEncodedLikeTheirModels(t *testing.T) {
	for _, people := range []bool{false, true} {
		h := servicetest.NewHarness(t)
		h.Exec(`UPDATE inventory_nodes SET name = name || $1, external_id = CASE WHEN id = $2 THEN NULL ELSE $1 END`, odd, h.ID("ahu1"))
		h.Exec(`UPDATE identities SET name = name || $1`, odd)
		erp, ctx := h.As("erp"), t.Context()
		erp.ShowPeople = people
		id, newest := "", lists.ListRequest{Limit: 1}
		order := func(result store.WriteResult, err error) (record models.WorkOrderRecord) {
			t.Helper()
			servicetest.Must(t, err)
			id = result.RecordID
			shown, err := h.Records.WorkOrder(ctx, erp, id)
			checkSame(t, shown, result.Body, err)
			page, err := h.Records.WorkOrders(ctx, erp, records.WorkOrderFilter{}, newest)
			checkPage[models.WorkOrderRecord](t, page, shown, err)
			h.Clock.Advance(time.Second) // the next one is the newest
			return checkEncoded[models.WorkOrderRecord](t, shown)
		}
		feedback := func(result store.WriteResult, err error) (record models.FeedbackRecord) {
			t.Helper()
			servicetest.Must(t, err)
			id = result.RecordID
			shown, err := h.Records.Feedback(ctx, erp, id)
			checkSame(t, shown, result.Body, err)
			page, err := h.Records.FeedbackList(ctx, erp, records.FeedbackFilter{}, newest)
			checkPage[models.FeedbackRecord](t, page, shown, err)
			return checkEncoded[models.FeedbackRecord](t, shown)
		}
		description, reference, form, target := odd, odd, h.ID("inspection"), models.TimeOf(time.Date(2026, 5, 1, 7, 0, 0, 1_999_999, time.UTC))
		order(h.Records.CreateWorkOrder(ctx, erp, store.NoKey, records.NewWorkOrder{InventoryID: h.ID("ahu1"), Title: "Replace filter"}))
		most := records.NewWorkOrder{
			InventoryID: h.ID("ahu1"), Title: odd, Description: &description, ExternalID: &reference, FormID: &form,
			Priority: models.PriorityHigh, TargetDate: &target, Assignees: h.IDs("erp", "crew", "polar"), Consultants: h.IDs("cat", "bob"),
		}
		order(h.Records.CreateWorkOrder(ctx, erp, store.NoKey, most))
		order(h.Records.UpdateWorkOrder(ctx, erp, store.ForCall("k", "PATCH", "/", []byte("body"), ""), id, records.WorkOrderPatch{
			Title: sent("Replace both"), Description: records.Sent[*string]{Set: true},
			TargetDate: records.Sent[*models.Time]{Set: true}, Priority: sent(models.PriorityLow),
		}))
		order(h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{
			Description: sent(&description), TargetDate: sent(&target), ExternalID: records.Sent[*string]{Set: true},
		}))
		order(h.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{}))
		order(h.Records.AssignWorkOrder(ctx, erp, store.NoKey, id, h.IDs("ann"), h.IDs("dan")))
		order(h.Records.UnassignWorkOrder(ctx, erp, store.NoKey, id, h.ID("bob")))
		order(h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, []records.GivenAnswer{
			{QuestionID: h.ID("q_state"), Value: h.ID("o_ok")}, {QuestionID: h.ID("q_hours"), Value: json.Number("7")}}, records.SaveAnswers))
		ann, cat := h.As("ann"), h.As("cat")
		ann.ShowPeople, cat.ShowPeople = people, people
		order(h.Records.HoldWorkOrder(ctx, ann, store.NoKey, id))
		order(h.Records.ResumeWorkOrder(ctx, ann, store.NoKey, id))
		order(h.Records.AnswerWorkOrder(ctx, erp, store.NoKey, id, nil, records.CompleteWork))
		approved := order(h.Records.ReviewWorkOrder(ctx, cat, store.NoKey, id, records.Review{Approve: true}))
		order(h.Records.CreateWorkOrder(ctx, erp, store.NoKey, most))
		cancelled := order(h.Records.CancelWorkOrder(ctx, erp, store.NoKey, id, &description))
		cancelled.CompletedAt = approved.CompletedAt // which it does not have
		checkComplete(t, cancelled, people)
		feedback(h.Records.CreateFeedback(ctx, erp, store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: odd, Description: &description, ExternalID: &reference}))
		checkComplete(t, feedback(h.Records.ResolveFeedback(ctx, ann, store.NoKey, id)), people)
	}
}

func TestAFormIsEncodedLikeItsModel(t *testing.T) {
	f := servicetest.New(t)
	f.Exec(`UPDATE questions SET label = label || $1`, odd)
	single, err := f.Inventory.Form(t.Context(), f.Actor("erp"), f.ID("inspection"))
	servicetest.Must(t, err)
	checkEncoded[models.FormRecord](t, single)
	f.WaitForOpenTransactions()
	page, err := f.Inventory.Forms(t.Context(), f.Actor("erp"), lists.ListRequest{Limit: 20, ChangedSince: "2020-01-01T00:00:00Z"})
	checkPage[models.FormRecord](t, page, single, err)
}

// checkEncoded reports an error unless the body is what encoding/json writes for the
// record that it decodes to.
func checkEncoded[Record any](t *testing.T, body []byte) Record {
	t.Helper()
	var record Record
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&record); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	want, err := store.Encode(record)
	checkSame(t, want, body, err)
	return record
}

// checkComplete reports every field of the record that is not set.
func checkComplete(t *testing.T, record any, showsPeople bool) {
	t.Helper()
	for field, value := range reflect.ValueOf(record).Fields() {
		if value.IsZero() && (showsPeople || field.Name != "People") {
			t.Errorf("the record lacks %s: %+v", field.Name, record)
		}
	}
}

func checkPage[Record any](t *testing.T, page, first []byte, err error) {
	t.Helper()
	servicetest.Must(t, err)
	records := checkEncoded[lists.Page[Record]](t, page)
	if len(records.Data) == 0 || !reflect.DeepEqual(records.Data[0], checkEncoded[Record](t, first)) {
		t.Errorf("the page does not begin with %s: %s", first, page)
	}
}

func checkSame(t *testing.T, want, got []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}
