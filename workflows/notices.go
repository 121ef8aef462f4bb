package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// mailing tells people by e-mail beside whatever else a workflow does: a mail
// server that is down holds up the mail, nothing else.
type mailing struct {
	recordID string
	future   workflow.Future
}

// begin has what waits mailed, unless that is under way.
func (m *mailing) begin(ctx workflow.Context) {
	if m.future != nil {
		return
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute},
		Summary:             "tell people by e-mail",
	})
	var notices *activities.Notices
	m.future = workflow.ExecuteActivity(ctx, notices.MailNotices, m.recordID)
}

// underWay reports whether mail is being sent.
func (m *mailing) underWay() bool { return m.future != nil }

// wait waits for the end of the mail or for a poke, which it leaves to be heard.
func (m *mailing) wait(ctx workflow.Context, pokes workflow.ReceiveChannel) error {
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(pokes, func(workflow.ReceiveChannel, bool) {})
	var err error
	m.listen(ctx, selector, &err)
	selector.Select(ctx)
	return err
}

// listen has the selector hear the end of the mail, if some is under way.
func (m *mailing) listen(ctx workflow.Context, selector workflow.Selector, failed *error) {
	if m.future == nil {
		return
	}
	selector.AddFuture(m.future, func(f workflow.Future) {
		m.future = nil
		*failed = f.Get(ctx, nil)
	})
}
