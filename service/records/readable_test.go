package records_test

import (
	"fmt"
	"slices"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Records are named by ids, URLs, numbers, external ids and codes, to those who may read them.
func TestRecordsNamed(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	code := "T-1"
	order, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Number 1", ExternalID: &code, Assignees: []string{f.ID("polar")}})
	servicetest.Must(t, err)
	feedback, err := f.Records.CreateFeedback(t.Context(), f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("hq"), Subject: "1", ExternalID: &code})
	servicetest.Must(t, err)
	f.Exec(`UPDATE inventory_nodes SET external_id = $1 WHERE id = $2`, code, f.ID("annex"))
	number := servicetest.Value[int64](f, `SELECT number FROM work_orders`)
	for _, test := range []struct {
		who, text string
		want      []string
	}{
		{"ann", order.RecordID, []string{order.RecordID}},
		{"ann", "https://x.example/v1/work-orders/" + order.RecordID + "/comments", []string{order.RecordID}},
		{"ann", fmt.Sprint(number), []string{order.RecordID}},
		{"ann", fmt.Sprintf(" #%d ", number), []string{order.RecordID}},
		{"ann", fmt.Sprint(number + 1), nil},
		{"ann", code, []string{order.RecordID, feedback.RecordID, f.ID("annex")}},
		{"ann", "ｔ–1", []string{order.RecordID, feedback.RecordID, f.ID("annex")}},
		{"ann", "HQ", []string{f.ID("hq")}},
		{"ann", f.ID("bob"), []string{f.ID("bob")}},
		{"ann", "", nil},
		{"ann", "\xff", nil},
		{"eve", code, []string{f.ID("annex")}},
		{"pia", code, []string{order.RecordID}}, // a customer's, assigned to the service company
		{"pia", fmt.Sprint(number), []string{order.RecordID}},
		{"zed", code, nil},
		{"zed", order.RecordID, nil},
	} {
		named, err := f.Records.Named(t.Context(), servicetest.Person(t, f, test.who), test.text)
		servicetest.Must(t, err)
		got := servicetest.Each(named, func(one records.Readable) string { return one.ID })
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(test.want))) {
			t.Errorf("%q names %v to %s, want %v", test.text, got, test.who, test.want)
		}
	}
}
