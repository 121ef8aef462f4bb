package workflows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/service"
)

// housekeepingActivities are the activities of the Housekeeping workflow, real and fake.
type housekeepingActivities interface {
	RemoveExpired(ctx context.Context) (service.RemovalResult, error)
}

var _, _ housekeepingActivities = (*activities.Housekeeper)(nil), (*housekeeper)(nil)

// housekeeper fails a number of times, then needs a number of runs.
type housekeeper struct {
	failures, runs int
	calls          int
}

// RemoveExpired removes ten events and one revoked token.
func (h *housekeeper) RemoveExpired(context.Context) (service.RemovalResult, error) {
	h.calls++
	if h.calls <= h.failures {
		return service.RemovalResult{}, errors.New("the database is unreachable")
	}
	return service.RemovalResult{Events: 10, RevokedTokens: 1, More: h.calls-h.failures < h.runs}, nil
}

func runHousekeeping(h *housekeeper, o *observer) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, o)
	register(env, activities.NameRemoveExpired, h.RemoveExpired)
	env.ExecuteWorkflow(Housekeeping)
	return env
}

func TestHousekeeping(t *testing.T) {
	tests := []struct {
		name           string
		failures, runs int
		calls          int
		removed        service.RemovalResult
		fails          bool
	}{
		{"ends after a run that leaves nothing", 0, 1, 1, service.RemovalResult{Events: 10, RevokedTokens: 1}, false},
		{"continues while there is more", 0, 3, 3, service.RemovalResult{Events: 30, RevokedTokens: 3}, false},
		{"leaves the rest to the next after 50 runs", 0, 51, 50, service.RemovalResult{Events: 500, RevokedTokens: 50, More: true}, false},
		{"retries a failed run", 4, 2, 6, service.RemovalResult{Events: 20, RevokedTokens: 2}, false},
		{"fails after five attempts, since the schedule starts the next", 5, 1, 5, service.RemovalResult{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &housekeeper{failures: tt.failures, runs: tt.runs}
			env := runHousekeeping(h, &observer{})
			if err := env.GetWorkflowError(); (err != nil) != tt.fails {
				t.Fatalf("the workflow ended with %v", err)
			}
			if h.calls != tt.calls {
				t.Errorf("%d calls, want %d", h.calls, tt.calls)
			}
			if now := env.Now().Sub(began); now > 5*time.Minute {
				t.Errorf("the retries took %v", now)
			}
			if tt.fails {
				return
			}
			var removed service.RemovalResult
			if err := env.GetWorkflowResult(&removed); err != nil || removed != tt.removed {
				t.Errorf("it returned %+v, %v, want %+v", removed, err, tt.removed)
			}
		})
	}
}

// A dead worker's run is retried within minutes, a slow one is not, and all runs
// fit into the hour before the next Housekeeping.
func TestHousekeepingTimeouts(t *testing.T) {
	o := &observer{}
	runHousekeeping(&housekeeper{runs: 1}, o)
	if len(o.steps) != 1 || o.steps[0].name != "RemoveExpired" {
		t.Fatalf("the steps are %+v", o.steps)
	}
	options := o.steps[0].options
	const slowestBatch = 30 * time.Second // the database cancels longer statements
	if options.HeartbeatTimeout <= slowestBatch || options.HeartbeatTimeout > 5*time.Minute {
		t.Errorf("the heartbeat timeout is %v", options.HeartbeatTimeout)
	}
	if options.StartToCloseTimeout <= activities.MaxHousekeepingRun+slowestBatch {
		t.Errorf("a run of %v with a slow batch times out after %v", activities.MaxHousekeepingRun, options.StartToCloseTimeout)
	}
	if all := maxHousekeepingRuns * activities.MaxHousekeepingRun; all >= time.Hour {
		t.Errorf("all runs take %v", all)
	}
	if options.Summary == "" {
		t.Error("the Temporal UI has no summary of the activity")
	}
}

func TestHousekeepingDetails(t *testing.T) {
	text := housekeepingDetails(service.RemovalResult{Partitions: 3, Events: 11, IdempotencyKeys: 22, RevokedTokens: 33, RateCounters: 44, Leases: 55, Beats: 66, Deliveries: 77, Stamped: 88})
	if want := "Removed 3 partitions of days, 11 events, 22 idempotency keys, 33 revoked tokens, 44 call counters, 55 address leases, 66 beats, 77 deliveries of deleted addresses. Stamped 88 records below moved nodes.\n"; text != want {
		t.Errorf("the details are %q", text)
	}
	if text := housekeepingDetails(service.RemovalResult{More: true}); !strings.Contains(text, "More rows have expired.") {
		t.Errorf("the details do not say that there is more: %q", text)
	}
}

// Nothing wakes the Delivery of a removed event: it ends by its own timer.
func TestDeliveryEndsWhenHousekeepingRemovedIt(t *testing.T) {
	h := newDeliveryHarness(t)
	h.change("719h", func() { h.gone = true })
	h.run()
	h.wantAttempts(wholeSchedule)
	h.wantClosed(retentionEnds, h.row.Status)
	if !slices.Contains(h.checks, durations(retentionEnds)[0]) {
		t.Error("it did not load the row at the end")
	}
}
