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

// scheduler is a client that has schedules and nothing else.
type scheduler struct {
	client.Client
	schedules *fakeSchedules
}

func (s scheduler) ScheduleClient() client.ScheduleClient { return s.schedules }

// fakeSchedules keeps schedules in memory.
type fakeSchedules struct {
	client.ScheduleClient
	kept map[string]*client.Schedule
	down error
}

func (f *fakeSchedules) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	if f.down != nil {
		return nil, f.down
	}
	if _, there := f.kept[o.ID]; there {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	f.kept[o.ID] = &client.Schedule{
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
	update, err := o.DoUpdate(client.ScheduleUpdateInput{Description: client.ScheduleDescription{Schedule: *h.schedules.kept[h.id]}})
	if err == nil {
		h.schedules.kept[h.id] = update.Schedule
	}
	return err
}

// list writes each schedule on a line: id, workflow, task queue, interval, overlap, paused.
func (f *fakeSchedules) list() string {
	var lines []string
	for id, s := range f.kept {
		action := s.Action.(*client.ScheduleWorkflowAction)
		lines = append(lines, fmt.Sprint(id, " starts ", action.ID, " ", action.Workflow, " on ", action.TaskQueue,
			" every ", s.Spec.Intervals[0].Every, " ", s.Policy.Overlap, " paused ", s.State.Paused))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestSchedulesAreKept(t *testing.T) {
	f := &fakeSchedules{kept: map[string]*client.Schedule{}}
	keep := func(every time.Duration) {
		t.Helper()
		if err := keepSchedules(t.Context(), Options{Client: scheduler{schedules: f}, SweepEvery: every}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when, want string) {
		t.Helper()
		if got := f.list(); got != want {
			t.Errorf("%s the schedules are\n%s\nwant\n%s", when, got, want)
		}
	}
	keep(10 * time.Second)
	check("at first", `housekeeping starts housekeeping Housekeeping on millwright every 1h0m0s Skip paused false
sweep starts sweep Sweep on millwright every 10s Skip paused false`)

	f.kept["housekeeping"].State.Paused = true // by an operator
	f.kept["housekeeping"].Spec.Intervals[0].Every = time.Minute
	delete(f.kept, "sweep")
	keep(20 * time.Second)
	check("again", `housekeeping starts housekeeping Housekeeping on millwright every 1h0m0s Skip paused true
sweep starts sweep Sweep on millwright every 20s Skip paused false`)
}

func TestSchedulesThatCannotBeKeptAreNamed(t *testing.T) {
	f := &fakeSchedules{down: errors.New("no connection")}
	err := keepSchedules(t.Context(), Options{Client: scheduler{schedules: f}, SweepEvery: time.Minute})
	if !errors.Is(err, f.down) || !strings.Contains(err.Error(), `"sweep"`) {
		t.Errorf("it ended with %v", err)
	}
}
