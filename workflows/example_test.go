package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock" //nolint:depguard // Temporal's OnActivity matches arguments with it
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Start here: how to test a workflow with Temporal's test suite. The clock is
// simulated, so a timer of two days takes no time. The other tests use a harness,
// which keeps a fake database between the activities.
func TestExample(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(began)

	// Mock the activities: the first attempt has failed.
	inAMinute := models.TimeOf(began.Add(time.Minute))
	retrying := activities.LoadedDelivery{DeliveryState: webhooks.DeliveryState{
		DeliveryID: deliveryID, Status: models.DeliveryRetrying, Attempts: 1, NextAttemptAt: &inAMinute,
		KeptUntil: models.TimeOf(began.Add(models.EventRetention)), LoadedAt: models.TimeOf(began),
	}}
	(&activities.Deliveries{}).Register(env)
	env.OnActivity(activities.NameLoadDelivery, mock.Anything, deliveryID).Return(retrying, nil).Once()

	// Plan what happens while the workflow runs, then run it to its end: the dispatcher
	// reports that the second attempt succeeded.
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(SignalAttempted, store.AttemptSignal{Number: 2, Result: "204", Status: models.DeliveryDelivered, RecordedAt: inAMinute})
	}, time.Minute)
	env.ExecuteWorkflow(Delivery, deliveryID, DeliveryRun{})

	if err := env.GetWorkflowError(); err != nil {
		t.Errorf("the workflow failed: %v", err)
	}
	if took := env.Now().Sub(began); took != time.Minute {
		t.Errorf("the workflow took %v, want a minute", took)
	}
	env.AssertExpectations(t)
}
