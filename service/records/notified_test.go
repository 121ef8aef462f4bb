package records_test

import (
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Writes of the API and the console notify the same people: the workers, the consultants and the creator, each once, whatever
// else they are, and not who acts (api.md 1.5).
func TestNoticesByOperation(t *testing.T) {
	s := servicetest.NewHarness(t)
	target, description, reference := models.TimeOf(s.Clock.Now().Add(48*time.Hour)), "All of them.", "PO 7"
	operates := func(who string, operation models.Operation) func(id string) error {
		return func(id string) error { return does(s, who, operation, id) }
	}
	patches := func(who string, patch records.WorkOrderPatch) func(id string) error {
		return func(id string) error { return updates(s, who, id, patch) }
	}
	comments := func(who string) func(id string) error {
		return func(id string) error {
			return s.Records.AddComment(t.Context(), s.As(who), store.NoKey, id, "Since when?")
		}
	}
	// after does something else first, of which people are notified, too.
	after := func(before, do func(id string) error) func(id string) error {
		return func(id string) error {
			servicetest.Must(t, before(id))
			s.ClearEffects(id)
			return do(id)
		}
	}
	unassigned := func(whom string) func(id string) error {
		return func(id string) error { return removes(s, "erp", id, whom) }
	}
	completed := operates("erp", models.OperationComplete)
	const everyone = "bob updated, cat updated, dan updated, eve updated"
	for _, test := range []struct {
		name string
		do   func(id string) error
		want string
	}{
		{"completed", after(unassigned("cat"), operates("bob", models.OperationComplete)), "dan completed, eve completed"},
		{"sent to the review", operates("bob", models.OperationComplete), "cat sent_to_inspection, eve in_review"},
		{"cancelled by the API", operates("erp", models.OperationCancel), "bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"cancelled by the manager", operates("ann", models.OperationCancel), "bob cancelled, cat cancelled, dan cancelled, eve cancelled"},
		{"on hold, by the team's member", operates("dan", models.OperationHold), "bob held, cat held, eve held"},
		{"assigned", func(id string) error { return assigns(s, "ann", id, []string{"robot", "polar"}, []string{"ann"}) }, "pia assigned"},
		{"unassigned", unassigned("crew"), "bob unassigned, dan unassigned"},
		{"a consultant unassigned", unassigned("cat"), "cat unassigned"},
		{"another title", patches("erp", records.WorkOrderPatch{Title: sent("Replace both")}), everyone},
		{"another description", patches("erp", records.WorkOrderPatch{Description: sent(&description)}), everyone},
		{"another priority", patches("erp", records.WorkOrderPatch{Priority: sent(models.PriorityHigh)}), everyone},
		{"another target date", patches("erp", records.WorkOrderPatch{TargetDate: sent(&target)}), everyone},
		{"another external id only", patches("erp", records.WorkOrderPatch{ExternalID: sent(&reference)}), ""},
		{"a comment of the consultant", comments("cat"), "bob commented, dan commented, eve commented"},
		{"assigned in a role and through a team in the other", after(unassigned("crew"), func(id string) error {
			return assigns(s, "ann", id, []string{"dan"}, []string{"crew"})
		}), "bob consulted, dan assigned"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{"bob", "crew", "erp"}, []string{"cat"})
			s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("eve"))
			s.ClearEffects(id)
			servicetest.Must(t, test.do(id))
			servicetest.Expect(t, "the notices", s.NoticesOf(id), test.want)
		})
	}
	for _, test := range []struct {
		name               string
		worker, consultant string
		do                 func(id string) error
		want               string
	}{
		{"the creator changes it", "bob", "cat", patches("ann", records.WorkOrderPatch{Title: sent("Replace both")}), "bob updated, cat updated"},
		{"the creator comments", "bob", "cat", comments("ann"), "bob commented, cat commented"},
		{"the creator works on it", "ann", "cat", comments("cat"), "ann commented"},
		{"the creator is to review it", "bob", "ann", completed, "ann sent_to_inspection"},
		{"the creator approves it", "bob", "ann", after(completed, operates("ann", models.OperationApprove)), "bob completed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := s.NewWorkOrder([]string{test.worker, "erp"}, []string{test.consultant})
			s.Exec(`UPDATE work_orders SET created_by = $2 WHERE id = $1`, id, s.ID("ann"))
			s.ClearEffects(id)
			servicetest.Must(t, test.do(id))
			servicetest.Expect(t, "the notices", s.NoticesOf(id), test.want)
		})
	}
}

// Those who are assigned to a work order that is complete or cancelled, or removed from it, have
// nothing to do: no one is notified (api.md 1.5). The history, the log and the events have it.
func TestNoOneIsNotifiedOfAssignmentsOnAClosedWorkOrder(t *testing.T) {
	s := servicetest.NewHarness(t)
	for _, status := range []models.WorkOrderStatus{models.StatusComplete, models.StatusCancelled} {
		for name, assign := range map[string]func(id string) error{
			"assign":   func(id string) error { return assigns(s, "erp", id, []string{"bob", "crew"}, []string{"dan"}) },
			"unassign": func(id string) error { return removes(s, "erp", id, "cat") },
			"replace": func(id string) error {
				return servicetest.ErrorOf(s.Records.ReplaceWorkers(t.Context(), s.As("erp"), store.NoKey, id, s.IDs("bob")))
			},
		} {
			t.Run(name+" "+string(status), func(t *testing.T) {
				id := s.WorkOrderIn(status)
				servicetest.Must(t, assign(id))
				servicetest.Expect(t, "the notices", s.NoticesOf(id), "")
				servicetest.Expect(t, "the Log Records", s.LogOf(id), "erp (API) work_order.assignees_changed")
				servicetest.Expect(t, "the events", s.EventsOf(id), "assignees_changed")
			})
		}
	}
}
