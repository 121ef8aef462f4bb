package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
)

// noticeMail sends the waiting notices about one record by e-mail while its
// workflow goes on: a mail server that is down delays mail and nothing else.
type noticeMail struct {
	recordID string
	future   workflow.Future
}

// start starts sending, unless it is running already.
func (m *noticeMail) start(ctx workflow.Context) {
	if m.future != nil {
		return
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 5 * time.Second, BackoffCoefficient: 2, MaximumInterval: 5 * time.Minute},
		Summary:             "send notices by e-mail",
	})
	m.future = workflow.ExecuteActivity(ctx, activities.NameMailNotices, m.recordID)
}

// running reports whether mail is being sent.
func (m *noticeMail) running() bool { return m.future != nil }

// addTo adds the end of the mail to the selector, if any is being sent; the
// activity's error goes to failed.
func (m *noticeMail) addTo(ctx workflow.Context, selector workflow.Selector, failed *error) {
	if m.future == nil {
		return
	}
	selector.AddFuture(m.future, func(f workflow.Future) {
		m.future = nil
		*failed = f.Get(ctx, nil)
	})
}
