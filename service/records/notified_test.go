package records_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// createdBy creates a work order as a person, without its effects.
func createdBy(s *servicetest.Harness, creator string, workers, consultants []string) string {
	s.T.Helper()
	result, err := s.Records.CreateWorkOrder(s.T.Context(), s.As(creator), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace filter", Assignees: s.IDs(workers...), Consultants: s.IDs(consultants...),
	})
	id := s.MustWrite(result, err).ID
	s.ClearEffects(id)
	return id
}

// sent is a field of a PATCH.
func sent[T any](value T) records.Sent[T] { return records.Sent[T]{Value: value, Set: true} }

// The creator hears of every change, of comments, and of what becomes of a review, and of each
// once, whatever else she is (api.md 1.5; TestNoticesByOperation has the other changes).
func TestTheCreatorHears(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, key := t.Context(), store.NoKey
	target, description := models.TimeOf(s.Clock.Now().Add(48*time.Hour)), "All of them."
	patch := func(by string, patch records.WorkOrderPatch) func(id string) error {
		return func(id string) error {
			_, err := s.Records.UpdateWorkOrder(ctx, s.As(by), key, id, patch) //nolint:contextcheck // the fixture has its own
			return err
		}
	}
	complete := func(id string) error {
		_, err := s.Records.AnswerWorkOrder(ctx, s.As("erp"), key, id, nil, records.CompleteWork) //nolint:contextcheck // the fixture has its own
		return err
	}
	reviewed := func(by string, review records.Review) func(id string) error {
		return func(id string) error {
			if err := complete(id); err != nil {
				return err
			}
			s.ClearEffects(id)                                                  //nolint:contextcheck // the fixture has its own
			_, err := s.Records.ReviewWorkOrder(ctx, s.As(by), key, id, review) //nolint:contextcheck // the fixture has its own
			return err
		}
	}
	commented := func(by string) func(id string) error {
		return func(id string) error { return s.Records.AddComment(ctx, s.As(by), store.NoKey, id, "Since when?") } //nolint:contextcheck // the fixture has its own
	}
	for name, c := range map[string]struct {
		workers    []string
		consultant string
		do         func(id string) error
		want       string
	}{
		"the title is changed":       {[]string{"bob", "erp"}, "cat", patch("erp", records.WorkOrderPatch{Title: sent("Replace both")}), "ann updated, bob updated, cat updated"},
		"the description is changed": {[]string{"bob", "erp"}, "cat", patch("erp", records.WorkOrderPatch{Description: sent(&description)}), "ann updated, bob updated, cat updated"},
		"the priority is changed":    {[]string{"bob", "erp"}, "cat", patch("erp", records.WorkOrderPatch{Priority: sent(models.PriorityHigh)}), "ann updated, bob updated, cat updated"},
		"the target date is changed": {[]string{"bob", "erp"}, "cat", patch("erp", records.WorkOrderPatch{TargetDate: sent(&target)}), "ann updated, bob updated, cat updated"},
		"she changes it":             {[]string{"bob", "erp"}, "cat", patch("ann", records.WorkOrderPatch{Title: sent("Replace both")}), "bob updated, cat updated"},
		"a consultant comments":      {[]string{"bob", "erp"}, "cat", commented("cat"), "ann commented, bob commented"},
		"she comments":               {[]string{"bob", "erp"}, "cat", commented("ann"), "bob commented, cat commented"},
		"she works on it":            {[]string{"ann", "erp"}, "cat", commented("cat"), "ann commented"},
		"she is to review it":        {[]string{"bob", "erp"}, "ann", complete, "ann sent_to_inspection"},
		"it is sent back":            {[]string{"bob", "erp"}, "cat", reviewed("cat", records.Review{Comment: "Loose."}), "ann sent_back, bob sent_back"},
		"it is approved":             {[]string{"bob", "erp"}, "cat", reviewed("cat", records.Review{Approve: true}), "ann completed, bob completed"},
		"she approves it":            {[]string{"bob", "erp"}, "ann", reviewed("ann", records.Review{Approve: true}), "bob completed"},
	} {
		t.Run(name, func(t *testing.T) {
			id := createdBy(s, "ann", c.workers, []string{c.consultant})
			if err := c.do(id); err != nil {
				t.Fatal(err)
			}
			servicetest.Expect(t, "the notices", s.NoticesOf(id), c.want)
		})
	}
}

// Those who are assigned to a work order that is complete or cancelled, or removed from it, have
// nothing to do: no one is notified (api.md 1.5). The history, the log and the events have it.
func TestNoOneIsNotifiedOfAssignmentsOnAClosedWorkOrder(t *testing.T) {
	s := servicetest.NewHarness(t)
	ctx, erp, key := t.Context(), s.As("erp"), store.NoKey
	for _, status := range []models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled} {
		for name, assign := range map[string]func(id string) (store.WriteResult, error){
			"assign": func(id string) (store.WriteResult, error) {
				return s.Records.AssignWorkOrder(ctx, erp, key, id, s.IDs("bob", "crew"), s.IDs("dan"))
			},
			"unassign": func(id string) (store.WriteResult, error) {
				return s.Records.UnassignWorkOrder(ctx, erp, key, id, s.ID("cat"))
			},
			"replace": func(id string) (store.WriteResult, error) {
				return s.Records.ReplaceWorkers(ctx, erp, key, id, s.IDs("bob"))
			},
		} {
			t.Run(name+" "+string(status), func(t *testing.T) {
				id := s.WorkOrderIn(status)
				s.MustWrite(assign(id))
				servicetest.Expect(t, "the notices", s.NoticesOf(id), "")
				servicetest.Expect(t, "the Log Records", s.LogOf(id), "erp (API) work_order.assignees_changed")
				servicetest.Expect(t, "the events", s.EventsOf(id), "assignees_changed")
			})
		}
	}
}
