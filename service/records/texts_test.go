package records_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// What people enter in the console is checked as the API's schema checks a body.
func TestTextsOfRecordsAreChecked(t *testing.T) {
	s := servicetest.NewHarness(t)
	id := s.NewWorkOrder([]string{"bob"}, nil)
	long, control := strings.Repeat("ä", 10_001), "bell\a"
	title, most := strings.Repeat("ä", 200), strings.Repeat("ä", 10_000)
	for _, test := range []struct {
		name                         string
		title, description, external string
		priority                     models.Priority
		want                         string
	}{
		{"the longest", title, most, title, "high", "ok"},
		{"all too long", title + "x", long, title + "x", "urgent", "/title too_long, /description too_long, /external_id too_long, /priority value"},
		{"no title", " ", "x", "x", "none", "/title blank"},
		{"control characters", control, control, control, "none", "/title value, /description value, /external_id value"},
		{"not UTF-8", "\xff", "x", "x", "none", "/title value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Records.CreateWorkOrder(t.Context(), s.As("ann"), store.NoKey, records.NewWorkOrder{
				InventoryID: s.ID("ahu1"), Title: test.title, Description: &test.description, ExternalID: &test.external, Priority: test.priority,
			})
			servicetest.Expect(t, "create", servicetest.Fields(err), test.want)
			_, err = s.Records.UpdateWorkOrder(t.Context(), s.As("ann"), store.NoKey, id, records.WorkOrderPatch{
				Title: records.Sent[string]{Value: test.title, Set: true}, Priority: records.Sent[models.Priority]{Value: test.priority, Set: true},
				Description: records.Sent[*string]{Value: &test.description, Set: true}, ExternalID: records.Sent[*string]{Value: &test.external, Set: true},
			})
			got := strings.Split(servicetest.Fields(err), ", ")
			for _, field := range strings.Split(test.want, ", ") {
				if !strings.Contains(strings.Join(got, ", "), field) {
					t.Errorf("update: %v, want %s", got, test.want)
				}
			}
			_, err = s.Records.CreateFeedback(t.Context(), s.As("ann"), store.NoKey, records.NewFeedback{
				InventoryID: s.ID("ahu1"), Subject: test.title, Description: &test.description, ExternalID: &test.external,
			})
			want := strings.Replace(strings.ReplaceAll(test.want, "/title", "/subject"), ", /priority value", "", 1)
			servicetest.Expect(t, "feedback", servicetest.Fields(err), want)
		})
	}
}
