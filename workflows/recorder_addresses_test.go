package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/upkeep"
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
	return r.start(ctx, "recorded-sweep", workflows.SweepName, workflows.SweepRun{For: time.Second})
}

func playRetried(ctx context.Context, r *recorder) (string, error) {
	return r.openDelivery(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3ta", 2)
}

func playFailed(ctx context.Context, r *recorder) (string, error) {
	workflowID, err := r.openDelivery(ctx, "dlv_01jd8q4v6cf5e8hbbfwj0zq3tb", 3)
	return workflowID, errors.Join(err,
		r.update(ctx, workflowID, "Attempt", "stop", members{}, true),
		r.update(ctx, workflowID, "timer", "redeliver", members{}, true))
}

func playCancelledDelivery(ctx context.Context, r *recorder) (string, error) {
	const id = "dlv_01jd8q4v6cf5e8hbbfwj0zq3tc"
	workflowID, err := r.openDelivery(ctx, id, 100)
	err = errors.Join(err, r.cancelAfter(ctx, workflowID, "Attempt"), r.await(ctx, workflowID, "continued"))
	r.mu.Lock()
	r.rows[id].delivered = 0
	r.mu.Unlock()
	return workflowID, errors.Join(err, r.client.SignalWorkflow(ctx, workflowID, "", workflows.SignalRedeliver, nil))
}

func playAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3te"
	workflowID, err := r.openAddress(ctx, id, webhooks.AddressState{Due: true}, nil)
	return workflowID, errors.Join(err, r.deleteAddressAfter(ctx, id, "LoadAddress LoadAddress"))
}

func playOperatedAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tf"
	workflowID, err := r.openAddress(ctx, id, webhooks.AddressState{}, nil)
	return workflowID, errors.Join(err,
		r.update(ctx, workflowID, "LoadAddress", "disable", members{"reason": "maintenance"}, true),
		r.update(ctx, workflowID, "", "enable", members{"since": "2026-03-01T08:00:00Z"}, true),
		r.deleteAddressAfter(ctx, id, "DispatchPending"))
}

func playTestedAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tk"
	workflowID, err := r.openAddress(ctx, id, webhooks.AddressState{}, nil)
	return workflowID, errors.Join(err,
		r.update(ctx, workflowID, "LoadAddress", "test", members{}, true),
		r.update(ctx, workflowID, "", "trigger", members{"event_type": "work_order.created"}, true),
		r.deleteAddressAfter(ctx, id, ""))
}

func playCancelledAddress(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3tg"
	workflowID, err := r.openAddress(ctx, id, webhooks.AddressState{}, nil)
	return workflowID, errors.Join(err, r.cancelAfter(ctx, workflowID, "LoadAddress"), r.deleteAddressAfter(ctx, id, "continued"))
}

func playTurnedOff(ctx context.Context, r *recorder) (string, error) {
	const id = "whk_01jd8q4v6cf5e8hbbfwj0zq3th"
	workflowID, err := r.openAddress(ctx, id, webhooks.AddressState{Due: true}, func(a *recordedAddress) { a.state.ShutOffDue = true })
	return workflowID, errors.Join(err, r.deleteAddressAfter(ctx, id, "TurnOffIfUnsuccessful"))
}

// openDelivery adds a delivery whose first attempt failed, and which the attempt of the number
// delivers. It starts the delivery's workflow as a dispatcher does.
func (r *recorder) openDelivery(ctx context.Context, id string, delivered int) (workflowID string, err error) {
	r.mu.Lock()
	r.rows[id] = &recordedRow{delivered: delivered, DeliveryState: webhooks.DeliveryState{
		DeliveryID: id, WebhookID: recordedWebhook, IntegrationID: recordedIntegration, OrganizationID: recordedOrganization,
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventID: "evt_01jd8q4v6cf5e8hbbfwj0zq3tr", Workflow: true,
		EventType: models.EventWorkOrderCreated, Status: models.DeliveryRetrying, Attempts: 1,
		Made:      []webhooks.AttemptMade{{Number: 1, At: *timeIn(0), Result: "503"}},
		KeptUntil: *timeIn(models.EventRetention),
	}}
	r.mu.Unlock()
	waker := worker.NewWaker(ctx, r.client, slog.New(slog.DiscardHandler))
	waker.WakeFailing(store.FailingDelivery{
		DeliveryID: id, OrganizationID: recordedOrganization, IntegrationID: recordedIntegration, WebhookID: recordedWebhook,
		RecordID: "wo_01jd8q4v6cf5e8hbbfwj0zq3tq", EventType: models.EventWorkOrderCreated, LastResult: "503",
		Page: "https://millwright.example.com/console/go/" + id,
	})
	waker.Stop(ctx)
	return workflows.DeliveryID(id), ctx.Err()
}

// openAddress adds an address, whose first dispatch does something, and wakes its workflow.
func (r *recorder) openAddress(
	ctx context.Context, id string, state webhooks.AddressState, dispatch func(*recordedAddress),
) (workflowID string, err error) {
	state.WebhookID, state.OrganizationID, state.IntegrationID, state.Enabled = id, recordedOrganization, recordedIntegration, true
	r.mu.Lock()
	r.addresses[id] = &recordedAddress{state: state, dispatch: dispatch}
	r.mu.Unlock()
	return workflows.WebhookAddressID(id), r.wake(ctx, store.WakeTarget{Kind: store.TargetWebhook, ID: id})
}

// deleteAddressAfter ends the address's workflow once its history shows the words.
func (r *recorder) deleteAddressAfter(ctx context.Context, id, words string) error {
	err := r.await(ctx, workflows.WebhookAddressID(id), words)
	r.mu.Lock()
	r.addresses[id].state = webhooks.AddressState{}
	r.mu.Unlock()
	return errors.Join(err, r.client.SignalWorkflow(ctx, workflows.WebhookAddressID(id), "", workflows.SignalWake, nil))
}

// Attempt is accepted with its number; before, Temporal retries it after a second.
func (a *fakeActivities) Attempt(_ context.Context, id string) (webhooks.DeliveryState, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	row := a.rows[id]
	row.LoadedAt = *timeIn(0)
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
	state.LoadedAt = *timeIn(0)
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
	state.Enabled, state.OffReason, state.OffAt = false, &reason, timeIn(0)
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

func playHousekeeping(ctx context.Context, r *recorder) (string, error) {
	return r.start(ctx, "recorded-housekeeping", workflows.HousekeepingName, workflows.HousekeepingRun{For: time.Second})
}

func (a *fakeActivities) HousekeepForAWhile(_ context.Context, duration time.Duration) (upkeep.RemovalResult, error) {
	time.Sleep(duration) //nolint:forbidigo // the run lasts as long
	return upkeep.RemovalResult{RevokedTokens: 2}, nil
}
