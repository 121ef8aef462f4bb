package records_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// A history is read in pages, the newest change first, with the names of the people in it.
func TestRecordHistoryInPages(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, ann := t.Context(), s.As("ann")
	id := s.NewWorkOrder([]string{"erp"}, nil)
	long := "A long text."
	s.MustWrite(s.Records.UpdateWorkOrder(ctx, s.As("erp"), store.NoKey, id, records.WorkOrderPatch{Description: records.Sent[*string]{Value: &long, Set: true}}))
	seen := s.MustWrite(s.Records.AssignWorkOrder(ctx, ann, store.NoKey, id, s.IDs("bob"), nil)).ChangedAt
	s.MustWrite(s.Records.UnassignWorkOrder(ctx, ann, store.NoKey, id, s.ID("erp")))
	s.MustWrite(s.Records.HoldWorkOrder(ctx, s.As("bob"), store.NoKey, id))

	var actions, actors []string
	for before := int64(0); ; {
		page, err := s.Records.HistoryPage(ctx, ann, id, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range page.Changes {
			actions, actors = append(actions, change.Action), append(actors, *change.ActorName)
			if change.Action == "work_order.assignees_changed" && page.Names[s.ID("erp")] != "ERP" {
				t.Errorf("the names are %v", page.Names)
			}
			if text := string(change.Changes["description"].To); change.Action == "work_order.updated" && text != "null" {
				t.Errorf("the description is %s", text)
			}
		}
		if before == 0 {
			since := page.Since(seen)
			if len(since) != 2 {
				t.Errorf("%d changes since the first assignment", len(since))
			}
		}
		if before = page.Next; before == 0 {
			break
		}
	}
	servicetest.Expect(t, "the changes", strings.Join(actions, " "), strings.Join([]string{"work_order.held", "work_order.assignees_changed", "work_order.assignees_changed", "work_order.updated", "work_order.created"}, " "))
	servicetest.Expect(t, "who made them", strings.Join(actors, " "), strings.Join([]string{"Bob Stone", "Ann Field", "Ann Field", "erp (API)", "erp (API)"}, " "))

	for who, want := range map[string]string{"rita": "ok", "zed": "not_found", "pia": "not_found"} {
		_, err := s.Records.HistoryPage(ctx, s.As(who), id, 0, 0)
		servicetest.Expect(t, who, servicetest.Outcome(err), want)
	}
	for _, unknown := range []string{"wo_00000000000000000000000000", "nonsense", s.ID("ahu1")} {
		_, err := s.Records.HistoryPage(ctx, ann, unknown, 0, 0)
		servicetest.Expect(t, unknown, servicetest.Outcome(err), string(models.CodeNotFound))
	}
	feedback := issue(s, "ann")
	page, err := s.Records.HistoryPage(ctx, ann, feedback, 0, 0)
	if err != nil || len(page.Changes) != 1 || page.Changes[0].Action != "issue.created" {
		t.Errorf("the history of feedback is %+v, %v", page, err)
	}
	// Without people:read no person is named.
	page, err = s.Records.HistoryPage(ctx, s.As("erp"), id, 0, 1)
	if err != nil || page.Changes[0].ActorName != nil || len(page.Names) != 0 {
		t.Errorf("for an integration: %+v, %v", page, err)
	}
}
