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

// SweepForAWhile sweeps until it is done or its worker stops.
func (s *sweeper) SweepForAWhile(_ context.Context, duration time.Duration) (int, error) {
	s.calls++
	s.lefts = append(s.lefts, duration)
	if s.calls <= s.failures {
		return 0, errors.New("the database is unreachable")
	}
	return 7, nil
}

func newSweep(s *sweeper) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, &observer{})
	register(env, activities.NameSweepForAWhile, s.SweepForAWhile)
	register(env, activities.NameWakeMissing, func(context.Context) (int, error) { return 0, errors.New("the list is not available") })
	return env
}

func TestSweepLastsAnHour(t *testing.T) {
	s := &sweeper{failures: 3}
	env := newSweep(s)
	env.OnActivity(activities.NameSweepForAWhile, mock.Anything, mock.Anything).Return(s.SweepForAWhile).After(25 * time.Minute)
	env.ExecuteWorkflow(Sweep, SweepRun{For: 59 * time.Minute})
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

func TestSweepOutlastsAnOutageOfTheDatabase(t *testing.T) {
	s := &sweeper{failures: 30}
	env := newSweep(s)
	env.ExecuteWorkflow(Sweep, SweepRun{For: time.Second})
	if err := env.GetWorkflowError(); err != nil || s.calls != s.failures+1 {
		t.Errorf("the workflow ended with %v after %d attempts", err, s.calls)
	}
	if took := env.Now().Sub(began); took > time.Duration(s.calls)*10*time.Second {
		t.Errorf("%d attempts took %v: they are further apart than sweeps", s.calls, took)
	}
}
