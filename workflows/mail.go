package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// The pause after the mail server failed doubles within these bounds. Wakes do not shorten it.
const (
	minMailPause = 15 * time.Second
	maxMailPause = time.Minute
)

// mailHistoryLimit is the number of events after which Mail continues as new.
const mailHistoryLimit = 1000

// Mail sends what waits to be mailed to the people of an organization: a wake comes at once for a sign-in
// link, and ten seconds after a notice. It is open while mail waits. The rows have each mail's attempts, so
// a workflow that was terminated continues after the next wake or sweep.
func Mail(ctx workflow.Context, organizationID string) error {
	wakes := wakeChannel(ctx)
	for failures := 0; ; {
		drainSignals(wakes)
		result, err := sendMail(ctx, organizationID)
		if err != nil {
			return err
		}
		workflow.SetCurrentDetails(ctx, mailDetails(organizationID, result))
		if !result.ServerFailed {
			failures = 0
		}
		switch {
		case result.ServerFailed:
			pause := min(minMailPause<<min(failures, 10), maxMailPause)
			failures++
			if err := workflow.NewTimerWithOptions(ctx, pause, workflow.TimerOptions{Summary: "pause: the mail server failed"}).Get(ctx, nil); err != nil {
				return err
			}
		case result.NextAt != nil:
			if err := awaitMail(ctx, wakes, result.NextAt.Sub(workflow.Now(ctx))); err != nil {
				return err
			}
		case wakes.Len() == 0:
			return nil // a wake that comes now is not lost: the server rejects the end of the run
		}
		if workflow.GetInfo(ctx).GetCurrentHistoryLength() > mailHistoryLimit && wakes.Len() == 0 {
			return workflow.NewContinueAsNewError(ctx, Mail, organizationID)
		}
	}
}

// sendMail runs the activity until it succeeds.
func sendMail(ctx workflow.Context, organizationID string) (result activities.MailResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: activities.MaxMailRun,
		HeartbeatTimeout:    activities.SweepHeartbeatTimeout,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
		Summary:             "send what waits",
	})
	err = workflow.ExecuteActivity(ctx, activities.NameSendMail, organizationID).Get(ctx, &result)
	return result, err
}

// awaitMail waits for a wake, at most until the next attempt.
func awaitMail(ctx workflow.Context, wakes workflow.ReceiveChannel, wait time.Duration) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	var failed error
	selector := workflow.NewSelector(ctx)
	selector.AddFuture(workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "next attempt"}), func(f workflow.Future) { failed = f.Get(ctx, nil) })
	onSignal(selector, wakes, func() {})
	selector.Select(ctx)
	return failed
}

// mailDetails is what the Temporal UI shows of an organization's mail, in Markdown. It names no one.
func mailDetails(organizationID string, r activities.MailResult) string {
	if r.NextAt == nil {
		return "No mail waits for people of organization " + organizationID + "."
	}
	next := "at " + r.NextAt.String()
	if r.ServerFailed {
		next = "after a pause, since the mail server failed"
	}
	details := fmt.Sprintf("Mail waits for people of organization %s: %d, the oldest since %s, the next attempt %s.", organizationID, r.Waiting, r.Oldest, next)
	if r.Reason != "" {
		details += "\n\nThe last one was put off: " + r.Reason
	}
	return details + "\n\n`millwright mail list` names the recipients' ids, attempts and reasons."
}
