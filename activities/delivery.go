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
	// Instrumentation counts, logs and traces the attempts; nil does not.
	Instrumentation *Instrumentation
}

// LoadDelivery returns where the delivery stands; an empty state when it is gone.
func (a *Deliveries) LoadDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	state, err := a.Service.Delivery(ctx, id)
	if models.CodeOf(err) == models.CodeNotFound {
		return service.DeliveryState{}, nil
	}
	return state, err
}

// AttemptDelivery makes the next attempt if the delivery is still retrying,
// records it, and returns where the delivery stands then.
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
		recorded, err := a.Service.RecordAttempts(ctx, claim.Address.ID, []service.Attempt{attempt})
		if err != nil {
			return service.DeliveryState{}, err
		}
		if recorded.Off {
			a.Instrumentation.addressOff(ctx, claim.Address.ID)
		}
	}
	return a.LoadDelivery(ctx, id)
}

// RedeliverDelivery makes a failed or waiting delivery due and attempts it at once.
func (a *Deliveries) RedeliverDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	if _, err := a.Service.RequeueDelivery(ctx, id); err != nil {
		return service.DeliveryState{}, err
	}
	return a.AttemptDelivery(ctx, id)
}

// StopDelivery gives a waiting delivery up: it counts as failed until someone redelivers it.
func (a *Deliveries) StopDelivery(ctx context.Context, id string) (service.DeliveryState, error) {
	if err := a.Service.StopDelivery(ctx, id); err != nil {
		return service.DeliveryState{}, err
	}
	return a.LoadDelivery(ctx, id)
}
