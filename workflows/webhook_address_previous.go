package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// previousWebhookAddress replays runs of the previous release, which ended when nothing was
// pending. Their next step continues as new in this one. It goes when no such run is open:
// they took minutes.
func previousWebhookAddress(ctx workflow.Context, webhookID string) error {
	const dispatchesPerRun = 100
	wakes := workflow.GetSignalChannel(ctx, SignalWakePrevious)
	mail := &noticeMail{recordID: webhookID}
	for step := range dispatchesPerRun {
		if continuesInThisRelease(ctx, step) {
			break
		}
		drainSignals(wakes)
		result, err := dispatchPending(ctx, webhookID).result(ctx)
		if err != nil {
			return err
		}
		if result.Notices {
			mail.start(ctx)
		}
		if result.More || wakes.Len() > 0 {
			continue
		}
		if !mail.running() {
			return nil
		}
		if err := mail.wait(ctx, wakes); err != nil {
			return err
		}
	}
	return newAddressRun(ctx, webhookID, AddressRun{})
}

// continuesInThisRelease reports whether a run of the previous release has replayed what it
// did there. step numbers the places where that is asked.
func continuesInThisRelease(ctx workflow.Context, step int) bool {
	return workflow.GetVersion(ctx, fmt.Sprintf("one sender %d", step), workflow.DefaultVersion, 1) != workflow.DefaultVersion
}
