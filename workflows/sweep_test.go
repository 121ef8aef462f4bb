package workflows

import (
	"context"
	"errors"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// sweepActivities is what the workflow Sweep asks of the world.
type sweepActivities interface {
	PokeOwed(ctx context.Context) (int, error)
}

var _, _ sweepActivities = (*activities.Sweeper)(nil), (*sweeper)(nil)

// sweeper fails a number of times before it finds what is owed.
type sweeper struct {
	failures int
	calls    int
}

// PokeOwed pokes seven workflows.
func (s *sweeper) PokeOwed(context.Context) (int, error) {
	s.calls++
	if s.calls <= s.failures {
		return 0, errors.New("the database cannot be reached")
	}
	return 7, nil
}

func sweep(s *sweeper) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, &observer{})
	env.RegisterActivity(s)
	env.ExecuteWorkflow(Sweep)
	return env
}

func TestSweep(t *testing.T) {
	tests := []struct {
		name            string
		failures, calls int
	}{
		{"pokes what is owed once", 0, 1},
		{"is tried again when it fails", 2, 3},
		{"waits for a database that is long away", 30, 31},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &sweeper{failures: tt.failures}
			env := sweep(s)
			if err := env.GetWorkflowError(); err != nil {
				t.Errorf("the workflow ended with %v", err)
			}
			if s.calls != tt.calls {
				t.Errorf("%d tries, want %d", s.calls, tt.calls)
			}
			if took := env.Now().Sub(began).Seconds(); took > 10*float64(tt.calls) {
				t.Errorf("%d tries took %v seconds: they are further apart than sweeps", tt.calls, took)
			}
		})
	}
}
