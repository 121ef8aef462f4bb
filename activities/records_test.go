package activities_test

import (
	"testing"
	"time"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

func TestLooksSettleMailWhereThereIsNoMailServer(t *testing.T) {
	for _, mails := range []bool{true, false} {
		p := newPost(t)
		records := &activities.Records{Service: p.Service, Mails: mails}
		order := p.create(p.Actor("erp"), []string{"bob"}, nil)
		answer, err := p.CreateFeedback(t.Context(), p.Actor("erp"), service.Call{}, service.NewFeedback{InventoryID: p.ID("ahu1"), Subject: "It rattles"})
		if err != nil {
			t.Fatal(err)
		}
		state, err := records.LookAtWorkOrder(t.Context(), order)
		if err != nil || state.ID != order || state.Mail != mails {
			t.Errorf("with a mail server %v: the work order is %+v, error %v", mails, state, err)
		}
		feedback, err := records.LookAtFeedback(t.Context(), answer.RecordID)
		if err != nil || feedback.ID != answer.RecordID || feedback.Mail != mails {
			t.Errorf("with a mail server %v: the feedback is %+v, error %v", mails, feedback, err)
		}
		p.left(map[bool]string{true: "2 waiting", false: "2 inbox"}[mails])
	}
}

func TestRemindersSayWhetherTheyAppliedAndWhatThereIsThen(t *testing.T) {
	p := newPost(t)
	records := &activities.Records{Service: p.Service, Mails: true}
	id := p.create(p.Actor("erp"), []string{"bob"}, nil)
	target := models.TimeOf(p.Clock.Now().Add(48 * time.Hour))
	if _, err := p.UpdateWorkOrder(t.Context(), p.Actor("erp"), service.Call{}, id, service.WorkOrderPatch{
		TargetDate: service.Sent[*models.Time]{Value: &target, Set: true},
	}); err != nil {
		t.Fatal(err)
	}
	p.mailed(id)
	state, err := records.LookAtWorkOrder(t.Context(), id)
	if err != nil || state.Mail || len(state.Reminders) != 2 {
		t.Fatalf("state %+v, error %v", state, err)
	}
	after, err := records.RemindOfWorkOrder(t.Context(), id, state.Reminders[0])
	if err != nil || !after.Applied || !after.State.Mail || after.State.ID != id {
		t.Errorf("after the reminder: %+v, error %v", after, err)
	}
	p.mailed(id)
	p.came("bob assigned to you", "bob due tomorrow")
	p.cancel(p.Actor("erp"), id, "")
	after, err = records.RemindOfWorkOrder(t.Context(), id, state.Reminders[1])
	if err != nil || after.Applied || after.State.Status != models.StatusCancelled {
		t.Errorf("of what is cancelled: %+v, error %v", after, err)
	}
	gone, err := records.LookAtWorkOrder(t.Context(), "wo_00000000000000000000000000")
	if err != nil || gone.ID != "" {
		t.Errorf("of what is gone: %+v, error %v", gone, err)
	}
}
