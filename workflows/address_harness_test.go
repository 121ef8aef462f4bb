package workflows

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

// addressHarness runs the WebhookAddress workflow with fakes of its dispatches and of the
// address's row. The address is deleted after a day, unless a test does something else.
type addressHarness struct {
	harness
	// state is the address's row. Due is true if a dispatch has something to do; a dispatch
	// clears it unless it leaves more.
	state webhooks.AddressState
	// acts are the calls of other activities, with their arguments.
	acts  []string
	loads []time.Duration
	// dispatch is called for each DispatchPending, with its number from 1.
	dispatch func(number int) (activities.DispatchResult, error)

	dispatches []time.Duration
}

func newAddressHarness(t *testing.T, dispatch func(number int) (activities.DispatchResult, error)) *addressHarness {
	h := &addressHarness{harness: newHarness(t), dispatch: dispatch}
	h.state = webhooks.AddressState{WebhookID: webhookID, OrganizationID: organizationID, IntegrationID: integrationID, Enabled: true, Due: true}
	h.delete("24h")
	return h
}

// delete plans the deletion of the address.
func (h *addressHarness) delete(at string) {
	h.change(at, func() { h.state.WebhookID = "" })
	h.signal(SignalWake, at)
}

// become plans a change of the address's row, and a wake.
func (h *addressHarness) become(at string, change func(*webhooks.AddressState)) {
	h.change(at, func() { change(&h.state) })
	h.signal(SignalWake, at)
}

// run runs the workflow to the end of its first run.
func (h *addressHarness) run() error {
	h.runOnce(began,
		func(env *testsuite.TestWorkflowEnvironment) {
			var actual *activities.Addresses
			register(env, activities.NameDispatchPending, (*activities.Dispatcher)(nil).DispatchPending, h.DispatchPending)
			register(env, activities.NameLoadAddress, actual.LoadAddress, h.LoadAddress)
			register(env, activities.NameTurnOffAddress, actual.TurnOffIfUnsuccessful, h.TurnOffIfUnsuccessful)
			register(env, activities.NameWarnOfFailing, actual.WarnOfFailing, h.WarnOfFailing)
			register(env, activities.NameDisableAddress, actual.DisableAddress, h.DisableAddress)
			register(env, activities.NameEnableAddress, actual.EnableAddress, h.EnableAddress)
			register(env, activities.NameRedeliverSince, actual.RedeliverSince, h.RedeliverSince)
			register(env, activities.NameTestAddress, actual.TestAddress, h.TestAddress)
			register(env, activities.NameSendExample, actual.SendExample, h.SendExample)
		},
		func(env *testsuite.TestWorkflowEnvironment) {
			env.ExecuteWorkflow(WebhookAddress, webhookID, AddressRun{})
		})
	return h.err
}

// LoadAddress returns the row.
func (h *addressHarness) LoadAddress(_ context.Context, _ string) (webhooks.AddressState, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loads = append(h.loads, h.now())
	if len(h.loads) == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		return webhooks.AddressState{}, nil
	}
	state := h.state
	state.LoadedAt = models.TimeOf(h.env.Now())
	if state.WaitsUntil != nil && !state.WaitsUntil.Time.After(state.LoadedAt.Time) {
		state.Due = true
	}
	return state, nil
}

// act keeps a call of an activity, whose fake has the lock until it calls the function.
func (h *addressHarness) act(format string, args ...any) (unlock func()) {
	h.mu.Lock()
	h.acts = append(h.acts, fmt.Sprintf(h.now().Truncate(time.Millisecond).String()+" "+format, args...))
	return h.mu.Unlock
}

// TurnOffIfUnsuccessful turns the address off.
func (h *addressHarness) TurnOffIfUnsuccessful(context.Context, string) (bool, error) {
	defer h.act("turn off")()
	if len(h.acts) == 1 {
		return false, errors.New("the database is unreachable")
	}
	h.off("A delivery failed for good and none succeeded for 3 days.")
	return true, nil
}

func (h *addressHarness) off(reason string) {
	at := models.TimeOf(h.env.Now())
	h.state.Enabled, h.state.ShutOffDue, h.state.OffReason, h.state.OffAt, h.state.WaitsUntil = false, false, &reason, &at, nil
}

// WarnOfFailing warns people.
func (h *addressHarness) WarnOfFailing(context.Context, string) (bool, error) {
	defer h.act("warn")()
	at := models.TimeOf(h.env.Now())
	h.state.WarnedAt = &at
	return true, nil
}

// DisableAddress turns the address off.
func (h *addressHarness) DisableAddress(_ context.Context, _, reason string) error {
	defer h.act("disable %q", reason)()
	h.off(reason)
	return nil
}

// EnableAddress turns the address on.
func (h *addressHarness) EnableAddress(_ context.Context, _ string, since *models.Time) (webhooks.Released, error) {
	defer h.act("enable %v", since)()
	h.state.Enabled, h.state.FailingSince = true, nil
	return webhooks.Released{Due: 3}, nil
}

// RedeliverSince is rejected while the address is off.
func (h *addressHarness) RedeliverSince(_ context.Context, _ string, since models.Time) (webhooks.Released, error) {
	defer h.act("redeliver %v", since)()
	if !h.state.Enabled {
		return webhooks.Released{}, temporal.NewNonRetryableApplicationError("The address is off; turn it on first.", "validation_failed", nil)
	}
	return webhooks.Released{Due: 5, Expired: 2}, nil
}

// TestAddress returns a response.
func (h *addressHarness) TestAddress(_ context.Context, _, begunAs string) (activities.TestResult, error) {
	defer h.act("test begun as %s", begunAs)()
	return activities.TestResult{Status: 204, LatencyMS: 12}, nil
}

// SendExample returns a response.
func (h *addressHarness) SendExample(_ context.Context, _ string, kind models.EventType, begunAs string) (activities.TestResult, error) {
	defer h.act("send %s begun as %s", kind, begunAs)()
	return activities.TestResult{EventID: "evt_1", Status: 500, LatencyMS: 3}, nil
}

// DispatchPending makes the next dispatch.
func (h *addressHarness) DispatchPending(_ context.Context, id string) (activities.DispatchResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id != webhookID {
		h.t.Errorf("deliveries of %q are dispatched, want %q's", id, webhookID)
	}
	h.dispatches = append(h.dispatches, h.now())
	if len(h.dispatches) == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		h.state = webhooks.AddressState{}
	}
	result, err := h.dispatch(len(h.dispatches))
	if err == nil {
		h.state.Due = result.More
		h.state.WaitsUntil = nil
	}
	return result, err
}

// wake sends the workflow a number of wakes.
func (h *addressHarness) wake(times int) {
	for range times {
		h.env.SignalWorkflow(SignalWake, nil)
	}
}

// wantDispatches checks how many dispatches were made, and that the workflow ended
// without an error.
func (h *addressHarness) wantDispatches(dispatches int, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Errorf("the workflow ended with the error %v", err)
	}
	if len(h.dispatches) != dispatches {
		h.t.Errorf("%d dispatches, want %d", len(h.dispatches), dispatches)
	}
}

// wantContinued checks that the run ended by continuing as new, and the status that it passes.
func (h *addressHarness) wantContinued(err error, shown string) {
	h.t.Helper()
	var run AddressRun
	continuesAs(h.t, err, "WebhookAddress", webhookID, &run)
	if run.Shown != shown {
		h.t.Errorf("it passes %+v, want %s", run, shown)
	}
}
