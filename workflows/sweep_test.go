package workflows

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// sweepActivities are the activities of the Sweep workflow, real and fake.
type sweepActivities interface {
	WakeUnclaimed(ctx context.Context) (int, error)
}

var _, _ sweepActivities = (*activities.Sweeper)(nil), (*sweeper)(nil)

// sweeper fails a number of times, then succeeds.
type sweeper struct {
	failures int
	calls    int
}

func (s *sweeper) WakeUnclaimed(context.Context) (int, error) {
	s.calls++
	if s.calls <= s.failures {
		return 0, errors.New("the database is unreachable")
	}
	return 7, nil
}

func runSweep(s *sweeper) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, &observer{})
	register(env, activities.NameWakeUnclaimed, s.WakeUnclaimed)
	env.ExecuteWorkflow(Sweep)
	return env
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
