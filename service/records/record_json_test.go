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

// Responses show what the models of their records list: every field, in the same order, without spaces. The
// same record has the same bytes wherever it is read.
func TestRecordsAreEncodedLikeTheirModels(t *testing.T) {
	f := servicetest.New(t)
	ctx := t.Context()
	const odd = "Zoë's \"A\\B\" <&>\t\n\u2028€ 😀"
	f.Exec(`UPDATE inventory_nodes SET name = name || $1, external_id = CASE WHEN id = $2 THEN NULL ELSE $1 END`, odd, f.ID("ahu1"))
	f.Exec(`UPDATE identities SET name = name || $1`, odd)
	f.Exec(`UPDATE questions SET label = label || $1`, odd)
	f.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.create,feedback.read}' WHERE 'work_orders.create' = ANY (grants)`)
	erp, cat := f.Actor("erp"), servicetest.Person(t, f, "cat")
	text, form, at := odd, f.ID("inspection"), models.TimeOf(servicetest.Start)
	for _, erp.ShowPeople = range []bool{false, true} {
		for name, in := range map[string]records.NewWorkOrder{
			"least": {InventoryID: f.ID("ahu1"), Title: odd, Assignees: []string{f.ID("cat")}},
			"most": {
				InventoryID: f.ID("ahu1"), Title: odd, Description: &text, ExternalID: &text, FormID: &form, TargetDate: &at,
				Assignees: []string{f.ID("cat")}, Consultants: []string{f.ID("ann")},
			},
		} {
			t.Run(name, func(t *testing.T) {
				f.Clock.Advance(time.Second) // makes it the newest
				made, err := f.Records.CreateWorkOrder(ctx, erp, store.NoKey, in)
				servicetest.Must(t, err)
				checkEncoded[models.WorkOrderRecord](t, made.Body)
				single, err := f.Records.WorkOrder(ctx, erp, made.RecordID)
				checkSame(t, made.Body, single, err)
				page, err := f.Records.WorkOrders(ctx, erp, records.WorkOrderFilter{}, lists.ListRequest{Limit: 1})
				checkPage[models.WorkOrderRecord](t, page, single, err)
				if name == "most" {
					_, err = f.Records.CancelWorkOrder(ctx, erp, store.NoKey, made.RecordID, &text)
				} else {
					_, err = f.Records.AnswerWorkOrder(ctx, cat, store.NoKey, made.RecordID, nil, records.CompleteWork)
				}
				servicetest.Must(t, err)
				closed, err := f.Records.WorkOrder(ctx, erp, made.RecordID)
				servicetest.Must(t, err)
				record := checkEncoded[models.WorkOrderRecord](t, closed)
				page, err = f.Records.WorkOrders(ctx, erp, records.WorkOrderFilter{}, lists.ListRequest{Limit: 1})
				checkPage[models.WorkOrderRecord](t, page, closed, err)
				if name == "most" {
					record.CompletedAt = &at // a cancelled one is never completed
					checkComplete(t, record, erp.ShowPeople)
				}
			})
		}
		t.Run("feedback", func(t *testing.T) {
			f.Clock.Advance(time.Second)
			made, err := f.Records.CreateFeedback(ctx, erp, store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: odd, Description: &text})
			servicetest.Must(t, err)
			record := checkEncoded[models.FeedbackRecord](t, made.Body)
			record.ExternalID, record.ResolvedAt = &text, &at // that it does not have
			checkComplete(t, record, erp.ShowPeople)
			page, err := f.Records.FeedbackList(ctx, erp, records.FeedbackFilter{}, lists.ListRequest{Limit: 1})
			checkPage[models.FeedbackRecord](t, page, made.Body, err)
		})
	}
	single, err := f.Inventory.Form(ctx, erp, form)
	servicetest.Must(t, err)
	checkEncoded[models.FormRecord](t, single)
	var page []byte
	servicetest.Await(t, "no transaction of another test hides the form", func() bool {
		page, err = f.Inventory.Forms(ctx, erp, lists.ListRequest{Limit: 20, ChangedSince: "2020-01-01T00:00:00Z"})
		return err != nil || !bytes.Contains(page, []byte(`"data":[]`))
	})
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
