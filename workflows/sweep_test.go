package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock" //nolint:depguard // Temporal's OnActivity matches arguments with it
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// sweepActivities are the activities of the Sweep workflow, real and fake.
type sweepActivities interface {
	WakeUnclaimed(ctx context.Context) (int, error)
	SweepForAWhile(ctx context.Context, duration time.Duration) (int, error)
}

var _, _ sweepActivities = (*activities.Sweeper)(nil), (*sweeper)(nil)

// sweeper fails a number of times, then succeeds.
type sweeper struct {
	failures int
	calls    int
	// lefts are the durations of SweepForAWhile.
	lefts []time.Duration
}

func (s *sweeper) WakeUnclaimed(context.Context) (int, error) {
	s.calls++
	if s.calls <= s.failures {
		return 0, errors.New("the database is unreachable")
	}
	return 7, nil
}

// SweepForAWhile sweeps until it is done or its worker stops.
func (s *sweeper) SweepForAWhile(ctx context.Context, duration time.Duration) (int, error) {
	s.lefts = append(s.lefts, duration)
	return s.WakeUnclaimed(ctx)
}

func runSweep(s *sweeper) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, &observer{})
	register(env, activities.NameWakeUnclaimed, s.WakeUnclaimed)
	env.ExecuteWorkflow(Sweep, nil)
	return env
}

func TestSweepLastsAnHour(t *testing.T) {
	s := &sweeper{failures: 3}
	env := newEnvironment(began, &observer{})
	register(env, activities.NameSweepForAWhile, s.SweepForAWhile)
	register(env, activities.NameWakeMissing, func(context.Context) (int, error) { return 0, errors.New("the list is not available") })
	env.OnActivity(activities.NameSweepForAWhile, mock.Anything, mock.Anything).Return(s.SweepForAWhile).After(25 * time.Minute)
	env.ExecuteWorkflow(Sweep, &SweepRun{For: 59 * time.Minute})
	if err := env.GetWorkflowError(); err != nil {
		t.Errorf("the workflow ended with %v", err)
	}
	if took := env.Now().Sub(began); took < 59*time.Minute || took > 3*time.Hour {
		t.Errorf("it took %s", took)
	}
	for i, left := range s.lefts {
		if left <= 0 || i > 0 && left > s.lefts[i-1] {
			t.Errorf("the durations are %v", s.lefts)
		}
	}
}

func TestSweep(t *testing.T) {
	tests := []struct {
		name            string
		failures, calls int
	}{
		{"succeeds at once", 0, 1},
		{"is retried if it fails", 2, 3},
		{"outlasts a long outage of the database", 30, 31},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &sweeper{failures: tt.failures}
			env := runSweep(s)
			if err := env.GetWorkflowError(); err != nil {
				t.Errorf("the workflow ended with %v", err)
			}
			if s.calls != tt.calls {
				t.Errorf("%d attempts, want %d", s.calls, tt.calls)
			}
			if took := env.Now().Sub(began).Seconds(); took > 10*float64(tt.calls) {
				t.Errorf("%d attempts took %v seconds: they are further apart than sweeps", tt.calls, took)
			}
		})
	}
}
