package activities

import (
	"context"
	"time"

	"millwright/models"
	"millwright/service"
	"millwright/webhook"
)

// Deliveries are the activities of the Delivery workflow.
type Deliveries struct {
	Service *service.Service
	Sender  Sender
	Now     func() time.Time
	// Instrumentation counts, logs and traces the attempts; it may be nil.
	Instrumentation *Instrumentation
}

// LoadDelivery returns the delivery's state, an empty one if it is gone.
func (a *Deliveries) LoadDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	state, err := a.Service.Delivery(ctx, id)
	if models.CodeOf(err) == models.CodeNotFound {
		return service.DeliveryState{}, nil
	}
	return state, err
}

// AttemptDelivery makes and records the next attempt if the delivery is still
// retrying, and returns its new state.
func (a *Deliveries) AttemptDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	claim, err := a.Service.ClaimRetry(ctx, id)
	if err != nil {
		return service.DeliveryState{}, err
	}
	for _, d := range claim.Deliveries {
		signer, err := webhook.NewSigner(claim.Address.Secrets...)
		if err != nil {
			return service.DeliveryState{}, err
		}
		attempt := a.Instrumentation.send(ctx, a.Sender, signer, a.Now, claim.Address, d)
		if ctx.Err() != nil {
			return service.DeliveryState{}, ctx.Err() // cut off by us, not by the receiver
		}
		result, err := a.Service.RecordAttempts(ctx, claim.Address.ID, []service.Attempt{attempt})
		if err != nil {
			return service.DeliveryState{}, err
		}
		if result.Off {
			a.Instrumentation.addressTurnedOff(ctx, claim.Address.ID)
		}
	}
	return a.LoadDelivery(ctx, id)
}

// RedeliverDelivery makes a failed, held or retrying delivery due and attempts it
// now. It returns the delivery's new state.
func (a *Deliveries) RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	if _, err := a.Service.RequeueDelivery(ctx, id); err != nil {
		return service.DeliveryState{}, err
	}
	return a.AttemptDelivery(ctx, id)
}

// StopDelivery marks a retrying delivery as failed until someone redelivers it,
// and returns its new state.
func (a *Deliveries) StopDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	if err := a.Service.StopDelivery(ctx, id); err != nil {
		return service.DeliveryState{}, err
	}
	return a.LoadDelivery(ctx, id)
}
