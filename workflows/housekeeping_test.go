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

// housekeepingActivities are the activities of the Housekeeping workflow, real and fake.
type housekeepingActivities interface {
	HousekeepForAWhile(ctx context.Context, duration time.Duration) (upkeep.RemovalResult, error)
}

var _, _ housekeepingActivities = (*activities.Housekeeper)(nil), (*housekeeper)(nil)

// housekeeper fails a number of times, then removes ten tokens a call.
type housekeeper struct {
	failures, calls int
	// lefts are the durations of HousekeepForAWhile.
	lefts []time.Duration
}

func (h *housekeeper) HousekeepForAWhile(_ context.Context, duration time.Duration) (upkeep.RemovalResult, error) {
	h.lefts = append(h.lefts, duration)
	h.calls++
	if h.calls <= h.failures {
		return upkeep.RemovalResult{}, errors.New("the database is unreachable")
	}
	return upkeep.RemovalResult{RevokedTokens: 10}, nil
}

func runHousekeeping(h *housekeeper, o *observer, run HousekeepingRun) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, o)
	register(env, activities.NameHousekeep, h.HousekeepForAWhile)
	env.OnActivity(activities.NameHousekeep, mock.Anything, mock.Anything).Return(h.HousekeepForAWhile).After(activities.MaxHousekeepingRun)
	env.ExecuteWorkflow(Housekeeping, run)
	return env
}

func TestHousekeepingLastsAnHour(t *testing.T) {
	h := &housekeeper{failures: 2}
	env := runHousekeeping(h, &observer{}, HousekeepingRun{For: 59 * time.Minute})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if took := env.Now().Sub(began); took < 59*time.Minute || took > 65*time.Minute {
		t.Errorf("it took %s", took)
	}
	for i, left := range h.lefts {
		if left <= 0 || i > 0 && left > h.lefts[i-1] {
			t.Errorf("the durations are %v", h.lefts)
		}
	}
	var removed upkeep.RemovalResult
	if err := env.GetWorkflowResult(&removed); err != nil || removed.RevokedTokens != 10*(h.calls-2) {
		t.Errorf("it returned %+v, %v after %d calls", removed, err, h.calls)
	}
}

// A dead worker's activity is retried within seconds, a slow one is not.
func TestHousekeepingTimeouts(t *testing.T) {
	o := &observer{}
	runHousekeeping(&housekeeper{}, o, HousekeepingRun{For: time.Minute})
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
	if options.Summary == "" {
		t.Error("the Temporal UI has no summary of the activity")
	}
}

func TestHousekeepingDetails(t *testing.T) {
	text := housekeepingDetails(upkeep.RemovalResult{Partitions: 3, RevokedTokens: 33, RateCounters: 40, CallCounts: 4, Leases: 55, Watermarks: 66, Deliveries: 77, Repositioned: 88})
	if want := "Removed 3 partitions of days, 33 revoked tokens, 44 call counters, 55 address leases, 66 watermarks, 77 deliveries of deleted addresses. Repositioned 88 records below moved nodes.\n"; text != want {
		t.Errorf("the details are %q", text)
	}
	if text := housekeepingDetails(upkeep.RemovalResult{More: true}); !strings.Contains(text, "More rows have expired.") {
		t.Errorf("the details do not mention that there is more: %q", text)
	}
}

// Nothing wakes the Delivery of a removed event: it ends by its own timer.
func TestDeliveryEndsWhenHousekeepingRemovedIt(t *testing.T) {
	h := newDeliveryHarness(t)
	h.change("719h", func() { h.gone = true })
	h.run()
	h.wantAttempts(wholeSchedule)
	h.wantClosed(retentionEnds, h.row.Status)
}
