package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// addressActivities are the activities of the WebhookAddress workflow, real and fake.
type addressActivities interface {
	DispatchPending(ctx context.Context, webhookID string) (activities.DispatchResult, error)
}

var (
	_, _ addressActivities = (*activities.Dispatcher)(nil), (*addressHarness)(nil)
	_    noticeActivities  = (*addressHarness)(nil)
)

// addressHarness runs the WebhookAddress workflow with fakes of its dispatches and
// of the mail about the address.
type addressHarness struct {
	harness
	// dispatch is called for each DispatchPending, with its number from 1.
	dispatch func(number int) (activities.DispatchResult, error)
	// mailDown says when the mail server is down; nil is never.
	mailDown func(at time.Duration) bool

	dispatches []time.Duration
	notices    int // waiting to be mailed
	mailings   []time.Duration
}

func newAddressHarness(t *testing.T, dispatch func(number int) (activities.DispatchResult, error)) *addressHarness {
	return &addressHarness{harness: newHarness(t), dispatch: dispatch}
}

// newNoticesHarness returns a harness with waiting notices about the address.
func newNoticesHarness(t *testing.T, notices int) *addressHarness {
	h := newAddressHarness(t, nil)
	h.notices = notices
	h.dispatch = func(int) (activities.DispatchResult, error) {
		return activities.DispatchResult{Delivered: 1, Notices: h.notices > 0}, nil
	}
	return h
}

// run runs the workflow to the end of its first run.
func (h *addressHarness) run() error {
	h.runOnce(began,
		func(env *testsuite.TestWorkflowEnvironment) {
			register(env, activities.NameDispatchPending, h.DispatchPending)
			register(env, activities.NameMailNotices, h.MailNotices)
		},
		func(env *testsuite.TestWorkflowEnvironment) { env.ExecuteWorkflow(WebhookAddress, webhookID) })
	return h.err
}

// DispatchPending makes the next dispatch.
func (h *addressHarness) DispatchPending(_ context.Context, id string) (activities.DispatchResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id != webhookID {
		h.t.Errorf("deliveries of %q are dispatched, want those of %q", id, webhookID)
	}
	h.dispatches = append(h.dispatches, h.now())
	if len(h.dispatches) == maxCalls {
		h.t.Errorf("the workflow loops at %v", h.now())
		h.env.CancelWorkflow()
	}
	return h.dispatch(len(h.dispatches))
}

// MailNotices sends the waiting notices, unless the mail server is down.
func (h *addressHarness) MailNotices(_ context.Context, id string) (activities.MailResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id != webhookID {
		h.t.Errorf("notices about %q are mailed, want %q", id, webhookID)
	}
	if h.mailDown != nil && h.mailDown(h.now()) {
		return activities.MailResult{}, errors.New("the mail server does not respond")
	}
	result := activities.MailResult{Sent: h.notices}
	h.notices = 0
	h.mailings = append(h.mailings, h.now())
	return result, nil
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
