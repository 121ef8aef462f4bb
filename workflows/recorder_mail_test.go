package workflows_test

import (
	"context"
	"time"

	"millwright/activities"
	"millwright/service/store"
	"millwright/workflows"
)

func playMail(ctx context.Context, r *recorder) (string, error) {
	workflowID := workflows.MailID(recordedOrganization)
	if err := r.wake(ctx, store.MailTarget(store.TargetLinks, recordedOrganization)); err != nil {
		return "", err
	}
	return workflowID, r.signalAfter(ctx, workflowID, "SendMail timer SendMail timer", workflows.SignalWake)
}

// SendMail leaves mail for a second and then for an hour, fails at the mail server, and sends the rest.
func (a *fakeActivities) SendMail(context.Context, string) (activities.MailResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mailRuns++
	switch a.mailRuns {
	case 1:
		return activities.MailResult{Sent: 2, PutOff: 1, Waiting: 1, Oldest: timeIn(0), NextAt: timeIn(time.Second), Reason: recordedReason}, nil
	case 2:
		return activities.MailResult{PutOff: 1, Waiting: 1, Oldest: timeIn(0), NextAt: timeIn(time.Hour), Reason: recordedReason}, nil
	case 3:
		return activities.MailResult{PutOff: 1, Waiting: 2, Oldest: timeIn(0), NextAt: timeIn(time.Second), ServerFailed: true, Reason: "The mail server refused the connection."}, nil
	default:
		return activities.MailResult{Sent: 2}, nil
	}
}

const recordedReason = "The mail server did not accept the recipient for now (452)."
