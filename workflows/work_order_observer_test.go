package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"millwright/models"
)

// ExecuteLocalActivity notes a local activity among the steps, by its name.
func (i *observedOutbound) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	options := workflow.GetLocalActivityOptions(ctx)
	i.o.steps = append(i.o.steps, step{sinceBeginning(ctx), name, workflow.ActivityOptions{
		Summary: options.Summary, RetryPolicy: options.RetryPolicy,
		StartToCloseTimeout: options.StartToCloseTimeout, ScheduleToCloseTimeout: options.ScheduleToCloseTimeout,
	}})
	return i.Next.ExecuteLocalActivity(ctx, name, args...)
}

// continued returns the reminders that a run hands to the next, if it is a work order's.
func continued(t reporter, next *workflow.ContinueAsNewError) []models.Reminder {
	var id string
	var reminded []models.Reminder
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &id, &reminded); err != nil {
		t.Fatalf("the arguments of the next run: %v", err)
	}
	want := map[string]string{"WorkOrder": recordID, "Feedback": feedbackID}[next.WorkflowType.Name]
	if id != want {
		t.Errorf("it continues as %s(%q), want the id %q", next.WorkflowType.Name, id, want)
	}
	return reminded
}
