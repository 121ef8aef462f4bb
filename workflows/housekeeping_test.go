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

// housekeepingActivities is what the workflow Housekeeping asks of the world.
type housekeepingActivities interface {
	RemoveExpired(ctx context.Context) (service.Removed, error)
}

var _, _ housekeepingActivities = (*activities.Housekeeper)(nil), (*housekeeper)(nil)

// housekeeper fails a number of times, and then has enough for a number of rounds.
type housekeeper struct {
	failures, rounds int
	calls            int
}

// RemoveExpired removes ten events and a revoked token a round.
func (h *housekeeper) RemoveExpired(context.Context) (service.Removed, error) {
	h.calls++
	if h.calls <= h.failures {
		return service.Removed{}, errors.New("the database cannot be reached")
	}
	return service.Removed{Events: 10, RevokedTokens: 1, More: h.calls-h.failures < h.rounds}, nil
}

func keepHouse(h *housekeeper, seen *observer) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(began, seen)
	env.RegisterActivity(h)
	env.ExecuteWorkflow(Housekeeping)
	return env
}

func TestHousekeeping(t *testing.T) {
	tests := []struct {
		name             string
		failures, rounds int
		calls            int
		removed          service.Removed
		fails            bool
	}{
		{"is done after a round that leaves nothing", 0, 1, 1, service.Removed{Events: 10, RevokedTokens: 1}, false},
		{"goes on while there is more", 0, 3, 3, service.Removed{Events: 30, RevokedTokens: 3}, false},
		{"leaves the rest to the next after 50 rounds", 0, 51, 50, service.Removed{Events: 500, RevokedTokens: 50, More: true}, false},
		{"tries a round again that fails", 4, 2, 6, service.Removed{Events: 20, RevokedTokens: 2}, false},
		{"fails after five tries, since the schedule starts the next", 5, 1, 5, service.Removed{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := &housekeeper{failures: tt.failures, rounds: tt.rounds}
			env := keepHouse(h, &observer{})
			if err := env.GetWorkflowError(); (err != nil) != tt.fails {
				t.Fatalf("the workflow ended with %v", err)
			}
			if h.calls != tt.calls {
				t.Errorf("%d tries, want %d", h.calls, tt.calls)
			}
			if now := env.Now().Sub(began); now > 5*time.Minute {
				t.Errorf("it waited %v between its tries", now)
			}
			if tt.fails {
				return
			}
			var removed service.Removed
			if err := env.GetWorkflowResult(&removed); err != nil || removed != tt.removed {
				t.Errorf("it returned %+v, %v, want %+v", removed, err, tt.removed)
			}
		})
	}
}

// A round of a worker that died is taken over before the hour is over, a round at
// work is not, and all rounds fit into the hour between two of a schedule.
func TestHousekeepingGivesItsRoundsTime(t *testing.T) {
	seen := &observer{}
	keepHouse(&housekeeper{rounds: 1}, seen)
	if len(seen.steps) != 1 || seen.steps[0].name != "RemoveExpired" {
		t.Fatalf("the steps are %+v", seen.steps)
	}
	options := seen.steps[0].options
	const slowestBatch = 30 * time.Second // the database ends a statement then
	if options.HeartbeatTimeout <= slowestBatch || options.HeartbeatTimeout > 5*time.Minute {
		t.Errorf("the heartbeat's time limit is %v", options.HeartbeatTimeout)
	}
	if options.StartToCloseTimeout <= activities.HousekeepingRound+slowestBatch {
		t.Errorf("a round of %v and a slow batch may take %v", activities.HousekeepingRound, options.StartToCloseTimeout)
	}
	if all := housekeepingRounds * activities.HousekeepingRound; all >= time.Hour {
		t.Errorf("the rounds take %v", all)
	}
	if options.Summary == "" {
		t.Error("the Temporal UI has no summary of the activity")
	}
}

func TestHousekeepingTellsWhatItRemoved(t *testing.T) {
	text := removedSoFar(service.Removed{Events: 11, IdempotencyKeys: 22, RevokedTokens: 33, RateCounters: 44, Mailboxes: 55})
	if want := "Removed 11 events, 22 idempotency keys, 33 revoked tokens, 44 call counts, 55 leases of mailboxes.\n"; text != want {
		t.Errorf("it tells %q", text)
	}
	if text := removedSoFar(service.Removed{More: true}); !strings.Contains(text, "There is more.") {
		t.Errorf("it hides that there is more: %q", text)
	}
}

// Running workflows and schedules hold on to the name.
func TestHousekeepingKeepsItsName(t *testing.T) {
	if HousekeepingName != "Housekeeping" {
		t.Errorf("it is %q", HousekeepingName)
	}
}

// The Delivery of an event that housekeeping removed ends by itself, at the time
// it knew the event would be kept until, whether it is told or not.
func TestDeliveryEndsWhenHousekeepingRemovedIt(t *testing.T) {
	s := newScene(t)
	s.change("719h", func() { s.gone = true })
	s.run()
	s.attempted(wholeSchedule)
	s.closed(retentionEnds, s.row.Status)
	if !slices.Contains(s.looks, durations(retentionEnds)[0]) {
		t.Error("it did not look whether it is gone")
	}
}
