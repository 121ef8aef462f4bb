package activities_test

import (
	"testing"

	"millwright/activities"
	"millwright/models"
	"millwright/service/servicetest"
)

func TestRemindersReturnWhetherTheyAppliedAndTheNewState(t *testing.T) {
	h := newMailHarness(t)
	activity := &activities.Records{Service: h.Service}
	id := h.assign(h.Actor("erp"), []string{"bob"}, nil)
	target := h.setTarget(id)
	h.mail()
	state, err := activity.LoadWorkOrder(t.Context(), id, models.Time{})
	if err != nil || state.TargetDate == nil {
		t.Fatalf("state %+v, error %v", state, err)
	}
	after, err := activity.RemindWorkOrder(t.Context(), id, servicetest.Reminder(models.NoticeDueSoon, target), models.Time{})
	if err != nil || !after.Applied || after.State.ID != id {
		t.Errorf("after the reminder: %+v, error %v", after, err)
	}
	h.mail()
	h.wantMessages("bob assigned to you, changed", "bob due tomorrow")
	h.cancel(h.Actor("erp"), id, "")
	after, err = activity.RemindWorkOrder(t.Context(), id, servicetest.Reminder(models.NoticeDue, target), models.Time{})
	if err != nil || after.Applied || after.State.Status != models.StatusCancelled {
		t.Errorf("of a cancelled work order: %+v, error %v", after, err)
	}
	gone, err := activity.LoadWorkOrder(t.Context(), "wo_00000000000000000000000000", models.Time{})
	if err != nil || gone.ID != "" {
		t.Errorf("of a removed work order: %+v, error %v", gone, err)
	}
}
