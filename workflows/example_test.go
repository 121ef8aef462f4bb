package workflows

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
)

// Start here: a work order's life in Temporal's test suite, where days take no time. state is
// its row in Postgres. The other tests use a harness, which fakes more of the database.
func TestExampleWorkOrder(t *testing.T) {
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetStartTime(began)
	state, reminders := records.WorkOrderState{ID: recordID, Required: 2, Review: models.ReviewPeriods{Reminder: 48 * time.Hour, Escalation: 96 * time.Hour}}, ""
	write := func(status models.WorkOrderStatus) { // as the transaction of a call does
		now := models.TimeOf(env.Now())
		state.Transitions = append(state.Transitions, records.Transition{At: now, From: string(state.Status), To: string(status), By: personID})
		if state.Status, state.InReviewSince = status, nil; status == models.StatusSentToInspection {
			state.InReviewSince = &now
		}
	}
	type acted = activities.Acted[records.WorkOrderState]
	var actual *activities.Records // whose activities these are
	register(env, activities.NameLoadWorkOrder, actual.LoadWorkOrder, func(context.Context, string, models.Time) (records.WorkOrderState, error) { return state, nil })
	register(env, activities.NameReviewWorkOrder, actual.ReviewWorkOrder, func(context.Context, activities.RecordAction, models.Time) (acted, error) {
		write(models.StatusBackFromInspection)
		return acted{State: state}, nil
	})
	register(env, activities.NameRemindWorkOrder, actual.RemindWorkOrder, func(_ context.Context, _ string, due models.Reminder, _ models.Time) (activities.ReminderResult, error) {
		_, applies := state.Reminder(due.Clock, models.TimeOf(env.Now())) // the transaction checks again
		reminders += map[bool]string{true: string(due.Kind), false: ", then none: a wake was lost"}[applies]
		return activities.ReminderResult{Applied: applies, State: state}, nil
	})
	at := func(hour int, do func()) { env.RegisterDelayedCallback(do, time.Duration(hour)*time.Hour) }
	wake := func() { env.SignalWorkflow(SignalWake, nil) }
	write(models.StatusOpen)                                                           // the creation, whose wake starts the workflow
	at(1, func() { state.Answered = 2; write(models.StatusSentToInspection); wake() }) // answers, and the work is done
	at(60, func() {                                                                    // the consultants were reminded at 49; an operator sends it back by an update
		sendBack := json.RawMessage(`{"decision": "send_back", "comment": "", "person": "` + personID + `"}`)
		env.UpdateWorkflowNoRejection(UpdateReview, "1", t, sendBack)
	})
	at(70, func() { write(models.StatusSentToInspection); wake() })
	at(80, func() { write(models.StatusComplete) }) // the approval; its wake is lost
	env.ExecuteWorkflow(WorkOrder, recordID, []models.Reminder(nil), Carryover{})

	if took := env.Now().Sub(began); env.GetWorkflowError() != nil || took != (70+48)*time.Hour || reminders != "work_order.review_waiting, then none: a wake was lost" {
		t.Errorf("it ended after %v with %v, reminders %s", took, env.GetWorkflowError(), reminders)
	}
}
