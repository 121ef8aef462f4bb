package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"millwright/workflows"
)

// A schedule starts its workflow again after an hour, and soon after it was terminated. A
// run that is stuck is ended.
const (
	scheduleInterval = time.Minute
	runDuration      = 59 * time.Minute
	runTimeout       = 65 * time.Minute
)

// schedule starts a workflow at scheduleInterval, unless its last run is still open.
type schedule struct {
	id, workflow string
	argument     any
}

// schedules returns every schedule. Never change an id: the old schedule would
// stay in the cluster and keep starting workflows.
func schedules() []schedule {
	return []schedule{
		{"sweep", workflows.SweepName, workflows.SweepRun{For: runDuration}},
		{"housekeeping", workflows.HousekeepingName, workflows.HousekeepingRun{For: runDuration}},
	}
}

// ensureSchedules creates the missing schedules and updates the others.
func ensureSchedules(ctx context.Context, o Options) error {
	for _, s := range schedules() {
		if err := s.ensure(ctx, o.Client.ScheduleClient()); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates the schedule, which starts at once, or updates its interval and action.
// One that an operator paused stays paused.
func (s schedule) ensure(ctx context.Context, all client.ScheduleClient) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: scheduleInterval}}}
	action := &client.ScheduleWorkflowAction{
		ID: s.id, Workflow: s.workflow, TaskQueue: workflows.TaskQueue, Args: []any{s.argument}, WorkflowExecutionTimeout: runTimeout,
	}
	_, err := all.Create(ctx, client.ScheduleOptions{
		ID: s.id, Spec: spec, Action: action, CatchupWindow: scheduleInterval,
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, TriggerImmediately: true,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		if err != nil {
			return fmt.Errorf("create the schedule %q: %w", s.id, err)
		}
		return nil
	}
	err = all.GetHandle(ctx, s.id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			updated := in.Description.Schedule
			updated.Spec, updated.Action = &spec, action
			return &client.ScheduleUpdate{Schedule: &updated}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update the schedule %q: %w", s.id, err)
	}
	return nil
}
