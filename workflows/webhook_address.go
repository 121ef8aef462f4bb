package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// dispatchesPerRun bounds the history of an address's workflow: after that many
// dispatches it continues as new.
const dispatchesPerRun = 100

// WebhookAddress sends the deliveries of one webhook address. Each DispatchPending
// activity sends what is pending and waits a while for more. The workflow ends
// when a dispatch leaves nothing pending, no e-mail about the address is being
// sent and no wake has arrived meanwhile.
func WebhookAddress(ctx workflow.Context, webhookID string) error {
	wakes := workflow.GetSignalChannel(ctx, SignalWake)
	mail := &noticeMail{recordID: webhookID}
	for range dispatchesPerRun {
		drainSignals(wakes)
		result, err := dispatchPending(ctx, webhookID)
		if err != nil {
			return err
		}
		if result.Notices {
			mail.start(ctx)
		}
		if result.More || wakes.Len() > 0 {
			continue
		}
		// A wake that arrives after this line is not lost: the server rejects the
		// workflow's end and runs its task again.
		if !mail.running() {
			return nil
		}
		// Dispatch once more after the mail: it may have missed newer notices.
		if err := mail.wait(ctx, wakes); err != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, WebhookAddress, webhookID)
}

// drainSignals discards every waiting signal: one load covers them all.
func drainSignals(channel workflow.ReceiveChannel) {
	for channel.ReceiveAsync(nil) {
	}
}

func dispatchPending(ctx workflow.Context, webhookID string) (result activities.DispatchResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxDispatchRun + time.Minute,
		HeartbeatTimeout:    activities.DispatchHeartbeatTimeout,
		// Retries stay frequent, so that after several dead workers the next takes over as fast.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 4 * time.Second},
		Summary:     "send pending deliveries",
	})
	err = workflow.ExecuteActivity(ctx, activities.NameDispatchPending, webhookID).Get(ctx, &result)
	return result, err
}
