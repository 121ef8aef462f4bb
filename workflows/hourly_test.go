package workflows

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock" //nolint:depguard // Temporal's OnActivity matches arguments with it
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/service/upkeep"
)

// hourly has the activity of Sweep or Housekeeping, which fails a number of times and then
// succeeds.
type hourly struct {
	failures, calls int
	// lefts are the durations that the activity got.
	lefts []time.Duration
}

func (h *hourly) call(duration time.Duration) error {
	h.lefts = append(h.lefts, duration)
	if h.calls++; h.calls <= h.failures {
		return errors.New("the database is unreachable")
	}
	return nil
}

func (h *hourly) SweepForAWhile(_ context.Context, duration time.Duration) (int, error) {
	return 7, h.call(duration)
}

func (h *hourly) HousekeepForAWhile(_ context.Context, duration time.Duration) (upkeep.RemovalResult, error) {
	if err := h.call(duration); err != nil {
		return upkeep.RemovalResult{}, err
	}
	return upkeep.RemovalResult{RevokedTokens: 10}, nil
}

// run runs a workflow whose activity takes the time.
func (h *hourly) run(o *observer, takes time.Duration, workflow, argument any) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, o)
	var sweeper *activities.Sweeper
	register(env, activities.NameSweepForAWhile, sweeper.SweepForAWhile, h.SweepForAWhile)
	register(env, activities.NameHousekeep, (*activities.Housekeeper)(nil).HousekeepForAWhile, h.HousekeepForAWhile)
	register(env, activities.NameWakeMissing, sweeper.WakeMissing, func(context.Context) (int, error) {
		return 0, errors.New("the list is not available")
	})
	env.OnActivity(activities.NameSweepForAWhile, mock.Anything, mock.Anything).Return(h.SweepForAWhile).After(takes)
	env.OnActivity(activities.NameHousekeep, mock.Anything, mock.Anything).Return(h.HousekeepForAWhile).After(takes)
	env.ExecuteWorkflow(workflow, argument)
	return env
}

func TestHourlyWorkflowsLastAnHour(t *testing.T) {
	for name, tt := range map[string]struct {
		takes              time.Duration
		workflow, argument any
		most               time.Duration
	}{
		SweepName:        {25 * time.Minute, Sweep, SweepRun{For: 59 * time.Minute}, 3 * time.Hour},
		HousekeepingName: {activities.MaxHousekeepingRun, Housekeeping, HousekeepingRun{For: 59 * time.Minute}, 65 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hourly{failures: 2}
			env := h.run(&observer{}, tt.takes, tt.workflow, tt.argument)
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			if took := env.Now().Sub(began); took < 59*time.Minute || took > tt.most {
				t.Errorf("it took %s", took)
			}
			for i, left := range h.lefts {
				if left <= 0 || i > 0 && left > h.lefts[i-1] {
					t.Errorf("the durations are %v", h.lefts)
				}
			}
			var removed upkeep.RemovalResult
			if name == HousekeepingName {
				if err := env.GetWorkflowResult(&removed); err != nil || removed.RevokedTokens != 10*(h.calls-2) {
					t.Errorf("it returned %+v, %v after %d calls", removed, err, h.calls)
				}
			}
		})
	}
}

func TestSweepOutlastsAnOutageOfTheDatabase(t *testing.T) {
	h := &hourly{failures: 30}
	env := h.run(&observer{}, 0, Sweep, SweepRun{For: time.Second})
	if err := env.GetWorkflowError(); err != nil || h.calls != h.failures+1 {
		t.Errorf("the workflow ended with %v after %d attempts", err, h.calls)
	}
	if took := env.Now().Sub(began); took > time.Duration(h.calls)*10*time.Second {
		t.Errorf("%d attempts took %v: they are further apart than sweeps", h.calls, took)
	}
}

// A dead worker's activity is retried within seconds, a slow one is not.
func TestHousekeepingTimeouts(t *testing.T) {
	o := &observer{}
	(&hourly{}).run(o, activities.MaxHousekeepingRun, Housekeeping, HousekeepingRun{For: time.Minute})
	if len(o.steps) != 1 || o.steps[0].name != "HousekeepForAWhile" {
		t.Fatalf("the steps are %+v", o.steps)
	}
	options := o.steps[0].options
	if options.HeartbeatTimeout < 10*time.Second || options.HeartbeatTimeout > time.Minute {
		t.Errorf("the heartbeat timeout is %v", options.HeartbeatTimeout)
	}
	const slowestBatch = 30 * time.Second // the database cancels longer statements
	if options.StartToCloseTimeout <= activities.MaxHousekeepingRun+activities.MaxRemoval+slowestBatch {
		t.Errorf("an activity of %v with a last removal times out after %v", activities.MaxHousekeepingRun, options.StartToCloseTimeout)
	}
}

func TestHousekeepingDetails(t *testing.T) {
	text := housekeepingDetails(upkeep.RemovalResult{
		Partitions: 3, RevokedTokens: 33, RateCounters: 40, CallCounts: 4, Leases: 55, Watermarks: 66, Deliveries: 77, Repositioned: 88, More: true,
	})
	want := "Removed 3 partitions of days, 33 revoked tokens, 44 call counters, 55 address leases, 66 watermarks, 77 deliveries of deleted addresses. " +
		"Repositioned 88 records below moved nodes.\n\nMore rows have expired.\n"
	if text != want {
		t.Errorf("the details are %q", text)
	}
	if text := housekeepingDetails(upkeep.RemovalResult{}); strings.Contains(text, "More") {
		t.Errorf("the details are %q", text)
	}
}
