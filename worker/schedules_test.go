package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// scheduler is a client with schedules only.
type scheduler struct {
	client.Client
	schedules *fakeSchedules
}

func (s scheduler) ScheduleClient() client.ScheduleClient { return s.schedules }

// fakeSchedules holds schedules in memory.
type fakeSchedules struct {
	client.ScheduleClient
	stored map[string]*client.Schedule
	down   error
}

func (f *fakeSchedules) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	if f.down != nil {
		return nil, f.down
	}
	if _, found := f.stored[o.ID]; found {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	f.stored[o.ID] = &client.Schedule{
		Action: o.Action, Spec: &o.Spec, State: &client.ScheduleState{},
		Policy: &client.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow},
	}
	return nil, nil
}

func (f *fakeSchedules) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return fakeHandle{schedules: f, id: id}
}

type fakeHandle struct {
	client.ScheduleHandle
	schedules *fakeSchedules
	id        string
}

func (h fakeHandle) Update(_ context.Context, o client.ScheduleUpdateOptions) error {
	update, err := o.DoUpdate(client.ScheduleUpdateInput{Description: client.ScheduleDescription{Schedule: *h.schedules.stored[h.id]}})
	if err == nil {
		h.schedules.stored[h.id] = update.Schedule
	}
	return err
}

// list lists the schedules, one per line: id, workflow, task queue, argument, timeout,
// interval, overlap, paused.
func (f *fakeSchedules) list() string {
	var lines []string
	for id, s := range f.stored {
		action := s.Action.(*client.ScheduleWorkflowAction)
		lines = append(lines, fmt.Sprint(id, " starts ", action.ID, " ", action.Workflow, " on ", action.TaskQueue,
			" with ", action.Args, " for at most ", action.WorkflowExecutionTimeout, " every ", s.Spec.Intervals[0].Every, " ", s.Policy.Overlap, " paused ", s.State.Paused))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestSchedulesAreCreatedAndUpdated(t *testing.T) {
	f := &fakeSchedules{stored: map[string]*client.Schedule{}}
	ensure := func(interval time.Duration) {
		t.Helper()
		if err := ensureSchedules(t.Context(), Options{Client: scheduler{schedules: f}, SweepEvery: interval}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, want string) {
		t.Helper()
		if got := f.list(); got != want {
			t.Errorf("%s the schedules are\n%s\nwant\n%s", when, got, want)
		}
	}
	ensure(10 * time.Second)
	check("at first", `housekeeping starts housekeeping Housekeeping on millwright with [{59m0s}] for at most 1h5m0s every 1m0s Skip paused false
sweep starts sweep Sweep on millwright with [{59m0s}] for at most 1h5m0s every 1m0s Skip paused false`)

	f.stored["housekeeping"].State.Paused = true // by an operator
	f.stored["housekeeping"].Spec.Intervals[0].Every = time.Hour
	f.stored["housekeeping"].Action.(*client.ScheduleWorkflowAction).Args = nil // of another version
	delete(f.stored, "sweep")
	ensure(20 * time.Second)
	check("again", `housekeeping starts housekeeping Housekeeping on millwright with [{59m0s}] for at most 1h5m0s every 1m0s Skip paused true
sweep starts sweep Sweep on millwright with [{59m0s}] for at most 1h5m0s every 1m0s Skip paused false`)
}

func TestErrorNamesTheSchedule(t *testing.T) {
	f := &fakeSchedules{down: errors.New("no connection")}
	err := ensureSchedules(t.Context(), Options{Client: scheduler{schedules: f}, SweepEvery: time.Minute})
	if !errors.Is(err, f.down) || !strings.Contains(err.Error(), `"sweep"`) {
		t.Errorf("the error is %v", err)
	}
}
