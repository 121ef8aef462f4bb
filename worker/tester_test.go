package worker

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/activities"
	"millwright/models"
)

// Without a Temporal that responds, a test fails with a sentence, and nothing waits for long.
func TestATestWithoutTemporalFails(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1", Logger: nil})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := (Tester{Client: c}).Send(ctx, webhook(1), models.EventPing); id != "" || !errors.Is(err, ErrNoWorker) {
		t.Errorf("it returned %q, %v", id, err)
	}
}

// An address's workflow that a test starts is as fair to other organizations as one that a
// write wakes, whatever the test sends.
func TestATestStartsTheWorkflowOfItsOrganization(t *testing.T) {
	for _, kind := range []models.EventType{models.EventPing, models.EventWorkOrderCreated} {
		c := &updatedTemporal{result: activities.TestResult{EventID: "evt_1"}}
		target := webhook(1)
		target.OrganizationID = "org_1"
		if id, err := (Tester{Client: c}).Send(t.Context(), target, kind); id != "evt_1" || err != nil {
			t.Fatalf("%s: it returned %q, %v", kind, id, err)
		}
		if want := (temporal.Priority{FairnessKey: "org_1"}); c.started.Priority != want {
			t.Errorf("%s: the priority is %+v, want %+v", kind, c.started.Priority, want)
		}
		if c.started.ID != "webhook-address/whk_1" || c.update.WorkflowID != c.started.ID {
			t.Errorf("%s: the workflow %q is started and %q updated", kind, c.started.ID, c.update.WorkflowID)
		}
	}
}

// updatedTemporal is a client whose updates complete with the result. A call of any other
// method panics.
type updatedTemporal struct {
	client.Client
	result  activities.TestResult
	started client.StartWorkflowOptions
	update  client.UpdateWorkflowOptions
}

func (c *updatedTemporal) NewWithStartWorkflowOperation(options client.StartWorkflowOptions, _ any, _ ...any) client.WithStartWorkflowOperation {
	c.started = options
	return nil
}

func (c *updatedTemporal) UpdateWithStartWorkflow(_ context.Context, options client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.update = options.UpdateOptions
	return completedUpdate{result: c.result}, nil
}

// completedUpdate is the handle of an update that has completed.
type completedUpdate struct {
	client.WorkflowUpdateHandle
	result activities.TestResult
}

func (u completedUpdate) Get(_ context.Context, into any) error {
	*into.(*activities.TestResult) = u.result
	return nil
}
