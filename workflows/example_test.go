package workflows

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/webhooks"
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
	register(env, activities.NameLoadWorkOrder, func(context.Context, string, models.Time) (records.WorkOrderState, error) { return state, nil })
	register(env, activities.NameReviewWorkOrder, func(context.Context, activities.RecordAction, models.Time) (acted, error) {
		write(models.StatusBackFromInspection)
		return acted{State: state}, nil
	})
	register(env, activities.NameRemindWorkOrder, func(_ context.Context, _ string, due models.Reminder, _ models.Time) (activities.ReminderResult, error) {
		_, applies := state.Reminder(due.Clock, models.TimeOf(env.Now())) // the transaction checks again
		reminders += map[bool]string{true: string(due.Kind), false: ", then none: a wake was lost"}[applies]
		return activities.ReminderResult{Applied: applies, State: state}, nil
	})
	at := func(hour int, do func()) { env.RegisterDelayedCallback(do, time.Duration(hour)*time.Hour) }
	wake := func() { env.SignalWorkflow(SignalWake, nil) }
	write(models.StatusOpen)                                                           // the creation, whose wake starts the workflow
	at(1, func() { state.Answered = 2; write(models.StatusSentToInspection); wake() }) // answers, and the work is done
	at(60, func() {                                                                    // the consultants were reminded at 49; an operator sends it back by an update
		env.UpdateWorkflow(UpdateReview, "1", &callbacks{func(string) {}}, input(`{"decision": "send_back", "comment": "", "person": %q}`, personID))
	})
	at(70, func() { write(models.StatusSentToInspection); wake() })
	at(80, func() { write(models.StatusComplete) }) // the approval; its wake is lost
	env.ExecuteWorkflow(WorkOrder, recordID, []models.Reminder(nil), Carryover{})

	if took := env.Now().Sub(began); env.GetWorkflowError() != nil || took != (70+48)*time.Hour || reminders != "work_order.review_waiting, then none: a wake was lost" {
		t.Errorf("it ended after %v with %v, reminders %s", took, env.GetWorkflowError(), reminders)
	}
}

// A failing delivery's life: eight attempts, which Temporal makes by retrying one activity, then a redelivery and a stop
// by an operator. It fails for good each time.
func TestExampleDelivery(t *testing.T) {
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetStartTime(began)
	_ = env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(AttributeDeliveryStatus.ValueSet("retrying")))
	state := webhooks.DeliveryState{DeliveryID: deliveryID, Status: models.DeliveryRetrying, Workflow: true, Attempts: 1, KeptUntil: models.TimeOf(began.Add(models.EventRetention))}
	var attempts []time.Duration
	due := began.Add(time.Minute) // after the first attempt, which the address made
	register(env, activities.NameAttempt, func(context.Context, string) (webhooks.DeliveryState, error) {
		state.LoadedAt = models.TimeOf(env.Now())
		if wait := due.Sub(env.Now()); state.Status == models.DeliveryRetrying && wait <= 0 { // POST, and 503
			attempts = append(attempts, env.Now().Sub(began).Truncate(time.Second))
			state.Attempts++
			wait, more := models.DefaultRetrySchedule.After(state.Attempts - state.AttemptsBefore)
			if due = env.Now().Add(wait); !more {
				state.Status = models.DeliveryFailed
			}
		}
		if state.Status == models.DeliveryRetrying {
			return state, temporal.NewApplicationErrorWithOptions("503 Service Unavailable", "503", temporal.ApplicationErrorOptions{NextRetryDelay: due.Sub(env.Now())})
		}
		return state, nil
	})
	register(env, activities.NameRedeliverDelivery, func(context.Context, string) error {
		state.Status, state.AttemptsBefore, due = models.DeliveryRetrying, state.Attempts, env.Now()
		return nil
	})
	register(env, activities.NameStopDelivery, func(context.Context, string) error { state.Status = models.DeliveryFailed; return nil })
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalRedeliver, nil) }, 50*time.Hour)
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalStop, nil) }, 50*time.Hour+10*time.Minute)
	env.ExecuteWorkflow(Delivery, deliveryID, webhookID)

	want := durations("1m 6m 36m 2h36m 8h36m 20h36m 44h36m 50h 50h1m 50h6m")
	if took := env.Now().Sub(began).Truncate(time.Second); env.GetWorkflowError() != nil || took != models.EventRetention || !slices.Equal(attempts, want) {
		t.Errorf("it ended after %v with %v, attempts at %v", took, env.GetWorkflowError(), attempts)
	}
}
