package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/worker"
	"millwright/workflows"
)

// recordedRow is a delivery in the recorder, delivered by the attempt of the number.
type recordedRow struct {
	webhooks.DeliveryState
	delivered int
}

// recordedAddress is an address in the recorder.
type recordedAddress struct {
	state      webhooks.AddressState
	dispatched int
	// dispatch is what the first dispatch does, nil nothing.
	dispatch func(*recordedAddress)
}

const (
	recordedWebhook      = "whk_01jd8q4v6cf5e8hbbfwj0zq3tm"
	recordedIntegration  = "idn_01jd8q4v6cf5e8hbbfwj0zq3tn"
	recordedOrganization = "idn_01jd8q4v6cf5e8hbbfwj0zq3tp"
)

func playSweep(ctx context.Context, r *recorder) (string, error) {
	const id = "recorded-sweep"
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.SweepName, workflows.SweepRun{For: time.Second})
	return id, err
}

func playRetried(ctx context.Context, r *recorder) (string, error) {
	const id = "dlv_01jd8q4v6cf5e8hbbfwj0zq3ta"
	r.failing(id, 2)
	return workflows.DeliveryID(id), r.wakeFailing(ctx, id)
}

func playFailed(ctx context.Context, r *recorder) (string, error) {
	const id = "dlv_01jd8q4v6cf5e8hbbfwj0zq3tb"
	r.failing(id, 3)
	if err := r.wakeFailing(ctx, id); err != nil {
		return "", err
	}
	workflowID := workflows.DeliveryID(id)
	if err := r.awaitTimes(ctx, workflowID, activities.NameAttempt, 1); err != nil {
		return "", err
	}
	if err := r.sendUpdate(ctx, workflowID, "stop", "{}"); err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, "timer", 1); err != nil {
		return "", err
	}
	return workflowID, r.sendUpdate(ctx, workflowID, "redeliver", "{}")
}

func playCancelledDelivery(ctx context.Context, r *recorder) (string, error) {
	const id = "dlv_01jd8q4v6cf5e8hbbfwj0zq3tc"
	r.failing(id, 100)
	if err := r.wakeFailing(ctx, id); err != nil {
		return "", err
	}
	workflowID := workflows.DeliveryID(id)
	if err := r.awaitTimes(ctx, workflowID, activities.NameAttempt, 1); err != nil {
		return "", err
	}
	if err := r.client.CancelWorkflow(ctx, workflowID, ""); err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, "continued", 1); err != nil {
		return "", err
	}
	r.mu.Lock()
	r.rows[id].delivered = 0
	r.mu.Unlock()
	return workflowID, r.client.SignalWorkflow(ctx, workflowID, "", workflows.SignalRedeliver, nil)
}

func playAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3te"
	a := r.address(id)
	a.state.Due = true
	workflowID, err := r.openAddress(ctx, id)
	if err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, activities.NameLoadAddress, 2); err != nil {
		return "", err
	}
	return workflowID, r.deleteAddress(ctx, id)
}

func playOperatedAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tf"
	r.address(id)
	workflowID, err := r.openAddress(ctx, id)
	if err := errors.Join(err, r.await(ctx, workflowID, "LoadAddress")); err != nil {
		return "", err
	}
	for _, update := range [][2]string{{"disable", `{"reason": "maintenance"}`}, {"enable", `{"since": "2026-03-01T08:00:00Z"}`}} {
		if err := r.sendUpdate(ctx, workflowID, update[0], update[1]); err != nil {
			return "", err
		}
	}
	if err := r.awaitTimes(ctx, workflowID, activities.NameDispatchPending, 1); err != nil {
		return "", err
	}
	return workflowID, r.deleteAddress(ctx, id)
}

func playTestedAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tk"
	r.address(id)
	workflowID, err := r.openAddress(ctx, id)
	if err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, activities.NameLoadAddress, 1); err != nil {
		return "", err
	}
	for _, update := range [][2]string{{"test", "{}"}, {"trigger", `{"event_type": "work_order.created"}`}} {
		if err := r.sendUpdate(ctx, workflowID, update[0], update[1]); err != nil {
			return "", err
		}
	}
	return workflowID, r.deleteAddress(ctx, id)
}

func playCancelledAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tg"
	r.address(id)
	workflowID, err := r.openAddress(ctx, id)
	if err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, activities.NameLoadAddress, 1); err != nil {
		return "", err
	}
	if err := r.client.CancelWorkflow(ctx, workflowID, ""); err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, "continued", 1); err != nil {
		return "", err
	}
	return workflowID, r.deleteAddress(ctx, id)
}

func playTurnedOff(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3th"
	a := r.address(id)
	a.state.Due = true
	a.dispatch = func(a *recordedAddress) { a.state.ShutOffDue = true }
	workflowID, err := r.openAddress(ctx, id)
	if err != nil {
		return "", err
	}
	if err := r.awaitTimes(ctx, workflowID, activities.NameTurnOffAddress, 1); err != nil {
		return "", err
	}
	return workflowID, r.deleteAddress(ctx, id)
}

// after returns the time from now.
func after(d time.Duration) *models.Time {
	at := models.TimeOf(time.Now().Add(d))
	return &at
}

// failing adds a delivery whose first attempt failed, and which the attempt of the number delivers.
func (r *recorder) failing(id string, delivered int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[id] = &recordedRow{delivered: delivered, DeliveryState: webhooks.DeliveryState{
		DeliveryID: id, WebhookID: recordedWebhook, IntegrationID: recordedIntegration, OrganizationID: recordedOrganization,
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventID: "evt_01jd8q4v6cf5e8hbbfwj0zq3tr", Workflow: true,
		EventType: models.EventWorkOrderCreated, Status: models.DeliveryRetrying, Attempts: 1,
		Made:      []webhooks.AttemptMade{{Number: 1, At: *after(0), Result: "503"}},
		KeptUntil: *after(models.EventRetention),
	}}
}

// wakeFailing starts the delivery's workflow as a dispatcher does.
func (r *recorder) wakeFailing(ctx context.Context, id string) error {
	waker := worker.NewWaker(ctx, r.client, slog.New(slog.DiscardHandler))
	waker.WakeFailing(store.FailingDelivery{
		DeliveryID: id, OrganizationID: recordedOrganization, IntegrationID: recordedIntegration, WebhookID: recordedWebhook,
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventType: models.EventWorkOrderCreated, LastResult: "503",
		Page: "https://millwright.example.com/console/go/" + id,
	})
	waker.Stop(ctx)
	return ctx.Err()
}

func (r *recorder) address(id string) *recordedAddress {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses[id] = &recordedAddress{state: webhooks.AddressState{
		WebhookID: id, OrganizationID: recordedOrganization, IntegrationID: recordedIntegration, Enabled: true,
	}}
	return r.addresses[id]
}

func (r *recorder) openAddress(ctx context.Context, id string) (workflowID string, err error) {
	return workflows.WebhookAddressID(id), r.wake(ctx, store.WakeTarget{Kind: store.TargetWebhook, ID: id})
}

// deleteAddress ends the address's workflow.
func (r *recorder) deleteAddress(ctx context.Context, id string) error {
	r.mu.Lock()
	r.addresses[id].state = webhooks.AddressState{}
	r.mu.Unlock()
	return r.client.SignalWorkflow(ctx, workflows.WebhookAddressID(id), "", workflows.SignalWake, nil)
}

func (r *recorder) sendUpdate(ctx context.Context, workflowID, name, input string) error {
	handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: name, Args: []any{json.RawMessage(input)}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

// awaitTimes waits until the first run's history shows the word that number of times.
func (r *recorder) awaitTimes(ctx context.Context, workflowID, word string, times int) error {
	events := r.client.GetWorkflowHistory(ctx, workflowID, "", true, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		if wordFor(event) == word {
			if times--; times == 0 {
				return nil
			}
		}
	}
	return nil
}

// firstRun returns the id of the first run of a workflow that may have continued as new.
func (r *recorder) firstRun(ctx context.Context, workflowID string) string {
	events := r.client.GetWorkflowHistory(ctx, workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return ""
	}
	event, err := events.Next()
	if err != nil {
		return ""
	}
	return event.GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId()
}

// Attempt is accepted with its number; before, Temporal retries it after a second.
func (a *fakeActivities) Attempt(_ context.Context, id string) (webhooks.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	row := a.rows[id]
	row.LoadedAt = *after(0)
	if row.Status != models.DeliveryRetrying {
		return row.DeliveryState, nil
	}
	if row.Attempts++; row.Attempts < row.delivered {
		return row.DeliveryState, temporal.NewApplicationErrorWithOptions("503 Service Unavailable", "503", temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
	}
	row.Status = models.DeliveryDelivered
	return row.DeliveryState, nil
}

func (a *fakeActivities) LoadDelivery(_ context.Context, id string) (webhooks.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.rows[id].DeliveryState, nil
}

func (a *fakeActivities) RedeliverDelivery(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows[id].Status = models.DeliveryRetrying
	return nil
}

func (a *fakeActivities) StopDelivery(_ context.Context, id string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rows[id].Status = models.DeliveryFailed
	return nil
}

func (a *fakeActivities) LoadAddress(_ context.Context, id string) (webhooks.AddressState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.addresses[id].state
	state.LoadedAt = *after(0)
	return state, nil
}

func (a *fakeActivities) DispatchPending(_ context.Context, id string) (activities.DispatchResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address := a.addresses[id]
	address.state.Due = false
	if address.dispatched++; address.dispatched == 1 && address.dispatch != nil {
		address.dispatch(address)
	}
	return activities.DispatchResult{Delivered: 2}, nil
}

func (a *fakeActivities) DisableAddress(_ context.Context, id, reason string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := &a.addresses[id].state
	state.Enabled, state.OffReason, state.OffAt = false, &reason, after(0)
	return nil
}

func (a *fakeActivities) EnableAddress(_ context.Context, id string, _ *models.Time) (webhooks.Released, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := &a.addresses[id].state
	state.Enabled, state.OffReason, state.OffAt, state.Due = true, nil, nil, true
	return webhooks.Released{Due: 3}, nil
}

func (a *fakeActivities) TurnOffIfUnsuccessful(ctx context.Context, id string) (bool, error) {
	err := a.DisableAddress(ctx, id, "A delivery failed for good and none succeeded for 3 days.")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addresses[id].state.ShutOffDue = false
	return true, err
}

func (a *fakeActivities) TestAddress(ctx context.Context, id, begunAs string) (activities.TestResult, error) {
	return a.SendExample(ctx, id, models.EventPing, begunAs)
}

func (a *fakeActivities) SendExample(context.Context, string, models.EventType, string) (activities.TestResult, error) {
	return activities.TestResult{EventID: "evt_01jd8q4v6cf5e8hbbfwj0zq3ts", Status: 204, LatencyMS: 12}, nil
}

func (a *fakeActivities) WakeMissing(context.Context) (int, error) { return 0, nil }

func (a *fakeActivities) SweepForAWhile(_ context.Context, duration time.Duration) (int, error) {
	time.Sleep(duration) //nolint:forbidigo // the run lasts as long
	return 3, nil
}
