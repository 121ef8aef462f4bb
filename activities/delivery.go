package activities

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
	"millwright/webhook"
)

// Deliveries are the activities of the Delivery workflow.
type Deliveries struct {
	Service *service.Service
	Sender  Sender
	Waker   store.Waker
	Now     func() time.Time
	// Instrumentation counts, logs and traces the attempts; it may be nil.
	Instrumentation *Instrumentation
}

// Attempt makes the next attempt at a failing delivery and returns its state when it is delivered, skipped, held, failed
// or gone. Until then it fails, so that Temporal retries it: the error is named by the last attempt's result and says
// when the next one is due. Errors of the database are retried like any activity's and count as no attempt.
func (a *Deliveries) Attempt(ctx context.Context, id string) (webhooks.DeliveryState, error) {
	next, err := a.Service.Webhooks.NextRetry(ctx, id)
	switch {
	case models.CodeOf(err) == models.CodeNotFound:
		return webhooks.DeliveryState{}, nil
	case err != nil:
		return webhooks.DeliveryState{}, err
	case next.Wait > 0:
		return next.State, waitFor(next.State.LastResult(), next.Wait)
	case next.Delivery == nil:
		return next.State, nil
	}
	signer, err := webhook.NewSigner(next.Address.Secrets...)
	if err != nil {
		return webhooks.DeliveryState{}, err
	}
	// The end of the activity's time does not cut the request off: the receiver's answer counts.
	attempt := a.Instrumentation.send(context.WithoutCancel(ctx), a.Sender, signer, a.Now, next.Address, *next.Delivery)
	recorded, err := a.record(ctx, next.Address, attempt)
	if err != nil {
		return webhooks.DeliveryState{}, err
	}
	a.Instrumentation.failed(recorded.Failed)
	a.Waker.Wake(recorded.Woken...)
	if recorded.ShutOffDue || recorded.Delivered > 0 && next.Address.Failing { // which sends what waits
		a.Waker.Wake(store.NewWakeTarget(next.Address.OrganizationID, next.Address.ID))
	}
	switch after := recorded.After[0]; {
	case after.Next != nil:
		return next.State, waitFor(attempt.ResultCode(), after.Next.Sub(recorded.At.Time))
	case after.Status == models.DeliveryPending: // it was redelivered
		return next.State, waitFor(attempt.ResultCode(), webhooks.PendingCheck)
	}
	return a.LoadDelivery(ctx, id)
}

// A result that is not recorded is sent again, so recording is tried for recordLimit: very many attempts of one address
// may end at the same moment.
const (
	recordLimit = 20 * time.Second
	recordPause = 100 * time.Millisecond
)

// record records the attempt.
func (a *Deliveries) record(ctx context.Context, address webhooks.Address, attempt webhooks.Attempt) (webhooks.RecordResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	for {
		recorded, err := a.Service.Webhooks.RecordAttempts(ctx, address, []webhooks.Attempt{attempt})
		if err == nil {
			return recorded, nil
		}
		select {
		case <-time.After(recordPause):
		case <-ctx.Done():
			return recorded, err
		}
	}
}

// waitFor is the error with which Temporal retries an activity after a while. It is named by the last attempt's result.
// Benign ones are neither logged nor counted as failures: the receiver failed, not the worker.
func waitFor(result string, wait time.Duration) error {
	name := strings.ReplaceAll(result, "_", " ")
	if status, err := strconv.Atoi(result); err == nil {
		name = strings.TrimSpace(result + " " + http.StatusText(status))
	}
	return temporal.NewApplicationErrorWithOptions(name, result, temporal.ApplicationErrorOptions{
		NextRetryDelay: max(wait, time.Millisecond), Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// LoadDelivery returns the delivery's state, an empty one if it is gone.
func (a *Deliveries) LoadDelivery(ctx context.Context, id string) (webhooks.DeliveryState, error) {
	state, err := a.Service.Webhooks.LoadDelivery(ctx, id)
	if models.CodeOf(err) == models.CodeNotFound {
		return webhooks.DeliveryState{}, nil
	}
	return state, err
}

// RedeliverDelivery makes a failed or retrying delivery due, at the beginning of the retry schedule.
func (a *Deliveries) RedeliverDelivery(ctx context.Context, id string) error {
	return gone(a.Service.Webhooks.RetryNow(ctx, id))
}

// StopDelivery marks a retrying delivery as failed until someone redelivers it.
func (a *Deliveries) StopDelivery(ctx context.Context, id string) error {
	return gone(a.Service.Webhooks.StopDelivery(ctx, id))
}

// gone is the rejection of an operator's request, nil if the delivery is gone, which its workflow finds out.
func gone(err error) error {
	if models.CodeOf(err) == models.CodeNotFound {
		return nil
	}
	return rejection(err)
}
