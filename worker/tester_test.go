package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/models"
	"millwright/service/webhooks"
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
	if err := (Tester{Client: c}).Send(ctx, webhooks.BegunTest{Address: webhook(1), EventID: "evt_1"}, models.EventPing); !errors.Is(err, ErrNoWorker) {
		t.Errorf("it returned %v", err)
	}
}

// An address's workflow that a test starts is as fair to other organizations as one that a
// write wakes, whatever the test sends. The update names the test as which it has begun, by its id:
// it has no member that could skip the log and the limit.
func TestATestStartsTheWorkflowOfItsOrganization(t *testing.T) {
	for kind, want := range map[models.EventType]string{
		models.EventPing: "test[map[]]", models.EventWorkOrderCreated: "trigger[map[event_type:work_order.created]]",
	} {
		c := &updatedTemporal{}
		target := webhook(1)
		target.OrganizationID = "org_1"
		if err := (Tester{Client: c}).Send(t.Context(), webhooks.BegunTest{Address: target, EventID: "evt_1"}, kind); err != nil {
			t.Fatalf("%s: it returned %v", kind, err)
		}
		if want := (temporal.Priority{FairnessKey: "org_1"}); c.started.Priority != want {
			t.Errorf("%s: the priority is %+v, want %+v", kind, c.started.Priority, want)
		}
		if c.started.ID != "webhook-address/whk_1" || c.update.WorkflowID != c.started.ID {
			t.Errorf("%s: the workflow %q is started and %q updated", kind, c.started.ID, c.update.WorkflowID)
		}
		if got := fmt.Sprint(c.update.UpdateName, c.update.Args); got != want || c.update.UpdateID != "evt_1" {
			t.Errorf("%s: the update %q is %s, want %s", kind, c.update.UpdateID, got, want)
		}
	}
}

// updatedTemporal is a client whose updates complete. A call of any other method panics.
type updatedTemporal struct {
	client.Client
	started client.StartWorkflowOptions
	update  client.UpdateWorkflowOptions
}

func (c *updatedTemporal) NewWithStartWorkflowOperation(options client.StartWorkflowOptions, _ any, _ ...any) client.WithStartWorkflowOperation {
	c.started = options
	return nil
}

func (c *updatedTemporal) UpdateWithStartWorkflow(_ context.Context, options client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.update = options.UpdateOptions
	return completedUpdate{}, nil
}

// completedUpdate is the handle of an update that has completed.
type completedUpdate struct{ client.WorkflowUpdateHandle }

func (completedUpdate) Get(context.Context, any) error { return nil }
