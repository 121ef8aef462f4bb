package workflows_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
	"millwright/workflows"
)

// recordedRecord is a work order or feedback of a recording.
type recordedRecord struct {
	// loads are the states that the loads return, in order; the last one repeats.
	loads []records.WorkOrderState
	// transitions are the loaded states' transitions.
	transitions []records.Transition
}

// next returns the state for the next load, with the transitions after the time.
func (s *recordedRecord) next(after models.Time) records.WorkOrderState {
	state := s.loads[0]
	if len(s.loads) > 1 {
		s.loads = s.loads[1:]
	}
	state.LoadedAt = *timeIn(0)
	from := ""
	if n := len(s.transitions); n > 0 {
		from = s.transitions[n-1].To
	}
	if to := string(state.Status); to != from {
		s.transitions = append(s.transitions, records.Transition{At: models.TimeOf(time.Now()), From: from, To: to, By: recordedPerson})
	}
	for _, t := range s.transitions {
		if t.At.Time.After(after.Time) {
			state.Transitions = append(state.Transitions, t)
		}
	}
	return state
}

const recordedPerson = "idn_01jd8q4v6cf5e8hbbfwj0zq3ts"

func workOrderState(id string, status models.WorkOrderStatus) records.WorkOrderState {
	return records.WorkOrderState{ID: id, OrganizationID: recordedOrganization, Dates: models.Dates{Status: status}}
}

// inTurn returns the states of a record with these statuses.
func inTurn[Status ~string](id string, statuses ...Status) (states []records.WorkOrderState) {
	for _, status := range statuses {
		states = append(states, workOrderState(id, models.WorkOrderStatus(status)))
	}
	return states
}

// withTargetDate returns a work order's state with the target date, which was set a while
// before, or just now if set is 0.
func withTargetDate(state records.WorkOrderState, target, set time.Duration) records.WorkOrderState {
	state.TargetDate, state.TargetSetAt = timeIn(target), timeIn(-set)
	return state
}

func timeIn(d time.Duration) *models.Time {
	at := models.TimeOf(time.Now().Add(d))
	return &at
}

// open adds a record, wakes its workflow, and wakes it again each time its history
// shows the next of the words.
func (r *recorder) open(ctx context.Context, target store.WakeTarget, workflowID string, loads []records.WorkOrderState, wakeAfter ...string) (string, error) {
	r.mu.Lock()
	r.records[target.ID] = &recordedRecord{loads: loads}
	r.mu.Unlock()
	target.OrganizationID = recordedOrganization
	err := r.wake(ctx, target)
	for _, words := range wakeAfter {
		err = errors.Join(err, r.signalAfter(ctx, workflowID, words, workflows.SignalWake))
	}
	return workflowID, err
}

func (r *recorder) openWorkOrder(ctx context.Context, id string, loads []records.WorkOrderState, wakeAfter ...string) (string, error) {
	return r.open(ctx, store.WakeTarget{Kind: store.TargetWorkOrder, ID: id}, workflows.WorkOrderID(id), loads, wakeAfter...)
}

func (r *recorder) openFeedback(ctx context.Context, id string, wakeAfter ...string) (string, error) {
	states := inTurn(id, models.FeedbackOpen, models.FeedbackResolved)
	return r.open(ctx, store.WakeTarget{Kind: store.TargetFeedback, ID: id}, workflows.FeedbackID(id), states, wakeAfter...)
}

// The recordings, one function each.

func playCompleted(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ua"
	return r.openWorkOrder(ctx, id, inTurn(id, models.StatusOpen, models.StatusComplete), "LoadWorkOrder")
}

func playTargetDateMoved(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ub"
	due := withTargetDate(workOrderState(id, models.StatusOpen), 3*time.Second, 0)
	return r.openWorkOrder(ctx, id, []records.WorkOrderState{
		withTargetDate(workOrderState(id, models.StatusOpen), 100*time.Hour, time.Hour),
		withTargetDate(workOrderState(id, models.StatusOpen), models.DueSoonBefore+2*time.Second, time.Hour),
		due, // after the first reminder it was brought forward
		due,
		workOrderState(id, models.StatusCancelled),
	}, "LoadWorkOrder timer", "RemindWorkOrder RemindWorkOrder")
}

func playReviewEscalated(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3uc"
	inReview := workOrderState(id, models.StatusSentToInspection)
	inReview.InReviewSince, inReview.Review = timeIn(0), models.ReviewPeriods{Reminder: 2 * time.Second, Escalation: 3 * time.Second}
	return r.openWorkOrder(ctx, id, []records.WorkOrderState{
		workOrderState(id, models.StatusInProgress),
		inReview, inReview, inReview, // before the reminder, after it, and after the escalation
		workOrderState(id, models.StatusComplete),
	}, "LoadWorkOrder", "RemindWorkOrder RemindWorkOrder")
}

func playUpdated(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3uf"
	states := inTurn(id, models.StatusInProgress, models.StatusOnHold, models.StatusInProgress, models.StatusCancelled)
	workflowID, err := r.openWorkOrder(ctx, id, states)
	person := members{"person": recordedPerson}
	return workflowID, errors.Join(err,
		r.update(ctx, workflowID, "LoadWorkOrder", workflows.UpdateHold, person, true),
		r.update(ctx, workflowID, "done", workflows.UpdateReview,
			members{"decision": "approve", "comment": "Well done.", "person": recordedPerson}, false),
		r.update(ctx, workflowID, "done done", workflows.UpdateResume, person, true),
		r.update(ctx, workflowID, "done done done", workflows.UpdateCancel,
			members{"reason": "Duplicate", "person": recordedPerson}, true),
	)
}

func playCancelRequested(ctx context.Context, r *recorder) (string, error) {
	const id = "wo_01jd8q4v6cf5e8hbbfwj0zq3ug"
	workflowID, err := r.openWorkOrder(ctx, id, inTurn(id, models.StatusOpen, models.StatusInProgress, models.StatusComplete))
	return workflowID, errors.Join(err,
		r.cancelAfter(ctx, workflowID, "LoadWorkOrder"),
		r.signalAfter(ctx, workflowID, "cancel", workflows.SignalWake),
		r.signalAfter(ctx, workflowID, "cancel LoadWorkOrder", workflows.SignalWake),
	)
}

// playContinues records the first run of a workflow that continues as new.
func playContinues(ctx context.Context, r *recorder) (string, error) {
	return r.continueAsNew(ctx, "wo_01jd8q4v6cf5e8hbbfwj0zq3uh")
}

// playContinued records the last.
func playContinued(ctx context.Context, r *recorder) (string, error) {
	workflowID, err := r.continueAsNew(ctx, "wo_01jd8q4v6cf5e8hbbfwj0zq3uj")
	if err != nil {
		return "", err
	}
	if err := r.client.GetWorkflow(ctx, workflowID, "").Get(ctx, nil); err != nil {
		return "", err
	}
	last, err := r.client.DescribeWorkflowExecution(ctx, workflowID, "")
	return workflowID + " " + last.GetWorkflowExecutionInfo().GetExecution().GetRunId(), err
}

// continueAsNew opens a work order, wakes its workflow until it has continued as new,
// and completes it.
func (r *recorder) continueAsNew(ctx context.Context, id string) (string, error) {
	target := store.WakeTarget{Kind: store.TargetWorkOrder, ID: id}
	workflowID := workflows.WorkOrderID(id)
	record := &recordedRecord{loads: inTurn(id, models.StatusOpen, models.StatusInProgress)}
	r.mu.Lock()
	r.records[id] = record
	r.mu.Unlock()
	for {
		if err := r.wake(ctx, target); err != nil {
			return "", err
		}
		found, err := r.client.DescribeWorkflowExecution(ctx, workflowID, "")
		if err != nil {
			return "", err
		}
		if found.GetWorkflowExecutionInfo().GetExecution().GetRunId() != r.firstRun(ctx, workflowID) {
			break
		}
		if err := r.await(ctx, workflowID, "LoadWorkOrder"); err != nil {
			return "", err
		}
	}
	r.mu.Lock()
	record.loads = inTurn(id, models.StatusComplete)
	r.mu.Unlock()
	return workflowID, r.wake(ctx, target)
}

func playResolved(ctx context.Context, r *recorder) (string, error) {
	const id = "iss_01jd8q4v6cf5e8hbbfwj0zq3ue"
	return r.openFeedback(ctx, id, "LoadFeedback")
}

func playResolvedByUpdate(ctx context.Context, r *recorder) (string, error) {
	const id = "iss_01jd8q4v6cf5e8hbbfwj0zq3uk"
	workflowID, err := r.openFeedback(ctx, id)
	resolved := r.update(ctx, workflowID, "LoadFeedback", workflows.UpdateResolve, members{"person": recordedPerson}, true)
	return workflowID, errors.Join(err, resolved)
}

// The activities.

func (a *fakeActivities) LoadWorkOrder(_ context.Context, id string, after models.Time) (records.WorkOrderState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.records[id].next(after), nil
}

func (a *fakeActivities) RemindWorkOrder(ctx context.Context, id string, _ models.Reminder, after models.Time) (activities.ReminderResult, error) {
	state, err := a.LoadWorkOrder(ctx, id, after)
	return activities.ReminderResult{Applied: true, State: state}, err
}

func (a *fakeActivities) LoadFeedback(ctx context.Context, id string, after models.Time) (records.FeedbackState, error) {
	state, err := a.LoadWorkOrder(ctx, id, after)
	return records.FeedbackState{
		ID: state.ID, OrganizationID: state.OrganizationID, Status: models.FeedbackStatus(state.Status), Transitions: state.Transitions,
	}, err
}

// actOnWorkOrder succeeds with the next state.
func (a *fakeActivities) actOnWorkOrder(
	ctx context.Context, action activities.RecordAction, after models.Time,
) (acted activities.Acted[records.WorkOrderState], err error) {
	acted.State, err = a.LoadWorkOrder(ctx, action.RecordID, after)
	acted.Result = activities.RecordActionResult{ID: action.RecordID, Status: string(acted.State.Status), ChangedAt: *timeIn(0)}
	return acted, err
}

// ResolveFeedback succeeds with the next state.
func (a *fakeActivities) ResolveFeedback(
	ctx context.Context, action activities.RecordAction, after models.Time,
) (acted activities.Acted[records.FeedbackState], err error) {
	acted.State, err = a.LoadFeedback(ctx, action.RecordID, after)
	acted.Result = activities.RecordActionResult{ID: action.RecordID, Status: string(acted.State.Status), ChangedAt: *timeIn(0)}
	return acted, err
}

// ReviewWorkOrder rejects every review.
func (a *fakeActivities) ReviewWorkOrder(context.Context, activities.RecordAction, models.Time) (acted activities.Acted[records.WorkOrderState], err error) {
	return acted, temporal.NewNonRetryableApplicationError(
		`A work order with the status "On hold" does not allow this.`, string(models.CodeRuleViolation), nil)
}

// transition returns "→status" for the marker of a transition, "" for other markers.
func transition(event *history.HistoryEvent) string {
	var summary string
	if converter.GetDefaultDataConverter().FromPayload(event.GetUserMetadata().GetSummary(), &summary) != nil {
		return ""
	}
	_, to, _ := strings.Cut(summary, " → ")
	status, _, _ := strings.Cut(to, ",")
	return "→" + status
}

// localActivity returns the name of the local activity whose result the marker
// holds, "" for other markers.
func localActivity(marker *history.MarkerRecordedEventAttributes) string {
	var about struct{ ActivityType string }
	if marker.GetMarkerName() != "LocalActivity" ||
		converter.GetDefaultDataConverter().FromPayloads(marker.GetDetails()["data"], &about) != nil {
		return ""
	}
	return about.ActivityType
}
