package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// roundsBeforeNew bounds a mailbox's history: after so many rounds it continues as new.
const roundsBeforeNew = 100

// WebhookAddress is the mailbox of one webhook address. Each round is one
// activity that delivers what is pending and lingers while traffic flows; the
// mailbox ends when a round finds nothing more, nobody is being told about the
// address by e-mail, and no poke came meanwhile.
func WebhookAddress(ctx workflow.Context, webhookID string) error {
	pokes := workflow.GetSignalChannel(ctx, SignalWake)
	mail := &mailing{recordID: webhookID}
	for range roundsBeforeNew {
		drain(pokes)
		drained, err := drainMailbox(ctx, webhookID)
		if err != nil {
			return err
		}
		if drained.Notices {
			mail.begin(ctx)
		}
		if drained.More || pokes.Len() > 0 {
			continue
		}
		// A poke that arrives after this line makes the server refuse the
		// workflow's end and run it again, so it is not lost.
		if !mail.underWay() {
			return nil
		}
		// Then look again: the mail may have passed by what was added meanwhile.
		if err := mail.wait(ctx, pokes); err != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, WebhookAddress, webhookID)
}

// drain takes every waiting signal: one look at the database answers them all.
func drain(channel workflow.ReceiveChannel) {
	for channel.ReceiveAsync(nil) {
	}
}

func drainMailbox(ctx workflow.Context, webhookID string) (activities.DispatchResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxRound + time.Minute,
		HeartbeatTimeout:    activities.HeartbeatTimeout,
		// Workers that die one after another must not make the next one's takeover slower.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 4 * time.Second},
		Summary:     "deliver what is pending",
	})
	var drained activities.DispatchResult
	var mailbox *activities.Dispatcher
	err := workflow.ExecuteActivity(ctx, mailbox.DrainMailbox, webhookID).Get(ctx, &drained)
	return drained, err
}
