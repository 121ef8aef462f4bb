package workflows_test

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/activities"
	"millwright/service"
	"millwright/workflows"
)

func playHousekeeping(ctx context.Context, r *recorder) (string, error) {
	const id = "recorded-housekeeping"
	_, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue},
		workflows.HousekeepingName, workflows.HousekeepingRun{For: time.Second})
	return id, err
}

func (a *fakeActivities) HousekeepForAWhile(_ context.Context, duration time.Duration) (service.RemovalResult, error) {
	time.Sleep(duration) //nolint:forbidigo // the run lasts as long
	return service.RemovalResult{Events: 17, RevokedTokens: 2}, nil
}

func (a *fakeActivities) RemoveExpired(context.Context) (service.RemovalResult, error) {
	return service.RemovalResult{Events: 17, RevokedTokens: 2}, nil
}

func (a *fakeActivities) WakeUnclaimed(context.Context) (int, error) { return 3, nil }

func playPreviousHousekeeping(ctx context.Context, r *recorder) (string, error) {
	return r.playPrevious(ctx, workflows.HousekeepingName, activities.NameRemoveExpired, workflows.HousekeepingRun{For: time.Second})
}

func playPreviousSweep(ctx context.Context, r *recorder) (string, error) {
	return r.playPrevious(ctx, workflows.SweepName, activities.NameWakeUnclaimed, workflows.SweepRun{For: time.Second})
}

// playPrevious has a worker of the previous release run the workflow of a schedule that
// this release has updated already: it ignores the argument and calls the activity once.
func (r *recorder) playPrevious(ctx context.Context, name, activity string, argument any) (string, error) {
	queue := "previous " + name
	w := sdkworker.New(r.client, queue, sdkworker.Options{Identity: identity})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second})
		return workflow.ExecuteActivity(ctx, activity).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: name})
	(&fakeActivities{r}).register(w)
	if err := w.Start(); err != nil {
		return "", err
	}
	defer w.Stop()
	id := "recorded-previous-" + name
	run, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, name, argument)
	if err != nil {
		return "", err
	}
	return id, run.Get(ctx, nil)
}
