package activities

import (
	"context"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Deliveries are the activities of the Delivery workflow. It shows deliveries; the
// dispatchers of their addresses send them.
type Deliveries struct {
	Service *service.Service
	Waker   store.Waker
	// ResponseLimit limits the time of an attempt.
	ResponseLimit time.Duration
}

// LoadedDelivery is the state of a delivery, empty if it is gone. Histories store it.
type LoadedDelivery struct {
	webhooks.DeliveryState
	// ResponseLimit limits the time of an attempt.
	ResponseLimit time.Duration
}

// LoadDelivery returns the delivery's state, an empty one if it is gone.
func (a *Deliveries) LoadDelivery(ctx context.Context, id string) (LoadedDelivery, error) {
	state, err := a.Service.Webhooks.LoadDelivery(ctx, id)
	if models.CodeOf(err) == models.CodeNotFound {
		return LoadedDelivery{}, nil
	}
	return LoadedDelivery{state, a.ResponseLimit}, err
}

// CheckDelivery is LoadDelivery, and wakes the address of a delivery that is pending or
// whose next attempt is due, in case nothing else has.
func (a *Deliveries) CheckDelivery(ctx context.Context, id string) (LoadedDelivery, error) {
	state, err := a.LoadDelivery(ctx, id)
	due := state.Status == models.DeliveryPending ||
		state.NextAttemptAt != nil && !state.NextAttemptAt.Time.After(state.LoadedAt.Time)
	if err == nil && due {
		a.Waker.Wake(store.NewWakeTarget(state.OrganizationID, state.WebhookID))
	}
	return state, err
}

// RedeliverDelivery makes a failed, held or retrying delivery due and returns its new
// state. The dispatcher of its address attempts it.
func (a *Deliveries) RedeliverDelivery(ctx context.Context, id string) (LoadedDelivery, error) {
	if err := a.Service.Webhooks.RetryNow(ctx, id); err != nil && models.CodeOf(err) != models.CodeNotFound {
		return LoadedDelivery{}, rejection(err)
	}
	return a.LoadDelivery(ctx, id)
}

// StopDelivery marks a retrying delivery as failed until someone redelivers it,
// and returns its new state.
func (a *Deliveries) StopDelivery(ctx context.Context, id string) (LoadedDelivery, error) {
	if err := a.Service.Webhooks.StopDelivery(ctx, id); err != nil && models.CodeOf(err) != models.CodeNotFound {
		return LoadedDelivery{}, rejection(err)
	}
	return a.LoadDelivery(ctx, id)
}
