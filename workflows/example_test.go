package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock" //nolint:depguard // Temporal's OnActivity matches arguments with it
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
)

// Start here: how to test a workflow with Temporal's test suite. The clock is
// simulated, so a timer of two days takes no time. The other tests use a harness,
// which keeps a fake database between the activities.
func TestExample(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(began)

	// Mock the activities: the first attempt has failed, the second succeeds.
	inAMinute := models.TimeOf(began.Add(time.Minute))
	retrying := service.DeliveryState{
		DeliveryID: deliveryID, Status: models.DeliveryRetrying, Attempts: 1, NextAttemptAt: &inAMinute,
		KeptUntil: models.TimeOf(began.Add(models.EventRetention)),
	}
	delivered := retrying
	delivered.Status, delivered.Attempts, delivered.NextAttemptAt = models.DeliveryDelivered, 2, nil
	(&activities.Deliveries{}).Register(env)
	env.OnActivity(activities.NameLoadDelivery, mock.Anything, deliveryID).Return(
		func(context.Context, string) (service.DeliveryState, error) {
			retrying.LoadedAt = models.TimeOf(env.Now())
			return retrying, nil
		})
	env.OnActivity(activities.NameAttemptDelivery, mock.Anything, deliveryID).Return(delivered, nil).Once()

	// Plan what happens while the workflow runs, then run it to its end.
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(SignalWake, nil) }, 10*time.Second)
	env.ExecuteWorkflow(Delivery, deliveryID)

	if err := env.GetWorkflowError(); err != nil {
		t.Errorf("the workflow failed: %v", err)
	}
	if took := env.Now().Sub(began); took != time.Minute {
		t.Errorf("the workflow took %v, want a minute", took)
	}
	env.AssertExpectations(t)
}
