package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

func nothingMore(int) (activities.DispatchResult, error) {
	return activities.DispatchResult{Delivered: 1}, nil
}

func TestAddressWorkflowIsOpenUntilItsAddressIsDeleted(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.wantDispatches(1, h.run())
	h.wantEnd("24h")
	if want := durations("0s 0s 24h"); !slices.Equal(h.loads, want) {
		t.Errorf("loads at %v, want %v: an address sleeps when nothing is pending", h.loads, want)
	}
	if len(h.observer.timers) != 0 {
		t.Errorf("timers %v of an idle address", h.observer.timers)
	}
	options := h.observer.steps[1].options
	if options.StartToCloseTimeout <= activities.MaxDispatchRun {
		t.Errorf("a dispatch times out after %v and may work for %v", options.StartToCloseTimeout, activities.MaxDispatchRun)
	}
	if options.HeartbeatTimeout != activities.DispatchHeartbeatTimeout || options.HeartbeatTimeout < 3*activities.MaxHeartbeatThrottle {
		t.Errorf("a dead worker's dispatch is retried after %v, want %v and time for three heartbeats",
			options.HeartbeatTimeout, activities.DispatchHeartbeatTimeout)
	}
	if options.Summary != "send pending deliveries" {
		t.Errorf("the summary is %q", options.Summary)
	}
}

func TestAddressWorkflowContinuesWhileADispatchLeavesMore(t *testing.T) {
	h := newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
		return activities.DispatchResult{More: number < 4}, nil
	})
	h.wantDispatches(4, h.run())
}

func TestWakeCausesADispatchOfWhatIsDue(t *testing.T) {
	t.Run("while asleep", func(t *testing.T) {
		h := newAddressHarness(t, nothingMore)
		h.become("1h", func(s *webhooks.AddressState) { s.Due = true })
		h.signal(SignalWake, "2h") // nothing is due
		h.wantDispatches(2, h.run())
	})
	t.Run("during a dispatch, once", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number <= 3 {
				h.wake(100)
			}
			return activities.DispatchResult{More: number <= 3}, nil
		})
		h.wantDispatches(4, h.run())
	})
	t.Run("even if the dispatch failed first", func(t *testing.T) {
		var h *addressHarness
		h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				h.wake(1)
				return activities.DispatchResult{}, errors.New("the database is unreachable")
			}
			return activities.DispatchResult{}, nil
		})
		h.wantDispatches(2, h.run())
	})
}

func TestWhatWaitsInAnOutageIsDispatchedWhenItIsDue(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.state.Due, h.state.WaitsUntil = false, timeAt(5*time.Minute)
	h.become("2m", func(s *webhooks.AddressState) { s.WaitsUntil = timeAt(3 * time.Minute) })
	h.become("10m", func(s *webhooks.AddressState) { s.WaitsUntil = timeAt(2 * time.Hour) })
	h.wantDispatches(2, h.run())
	if want := durations("3m 2h"); !slices.Equal(h.dispatches, want) {
		t.Errorf("dispatches at %v, want %v", h.dispatches, want)
	}
	if first := h.observer.timers[0]; first != (timer{0, 5 * time.Minute, "the address fails: try the oldest delivery"}) {
		t.Errorf("the first timer is %v", first)
	}
}

func TestAddressWorkflowContinuesAsNewWithALongHistory(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.historyLength = historyLimit + 1
	err := h.run()
	h.wantDispatches(0, nil) // the next run loads first
	h.wantContinued(err, "on")

	h = newAddressHarness(t, nothingMore)
	h.historyLength = historyLimit
	h.wantDispatches(1, h.run())
}

func TestFailedDispatchIsRetriedUntilItSucceeds(t *testing.T) {
	h := newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
		if number <= 20 {
			return activities.DispatchResult{}, errors.New("the database is unreachable")
		}
		return activities.DispatchResult{Delivered: 3}, nil
	})
	h.wantDispatches(21, h.run())
	if want := durations("0s 1s 3s 7s 11s 15s 19s"); !slices.Equal(h.dispatches[:len(want)], want) {
		t.Errorf("dispatches at %v, want them at %v and then every 4s", h.dispatches[:len(want)], want)
	}
}

func TestFailingAddressIsTurnedOffOnceADispatchSaysSo(t *testing.T) {
	var h *addressHarness
	h = newAddressHarness(t, func(number int) (activities.DispatchResult, error) {
		h.state.ShutOffDue = number == 1
		return activities.DispatchResult{More: number == 1}, nil
	})
	h.wantDispatches(2, h.run()) // the second holds what is left
	if want := []string{"0s turn off", "1s turn off"}; !slices.Equal(h.acts, want) {
		t.Errorf("acts %v, want %v: retried until it is done", h.acts, want)
	}
}

func TestPeopleAreWarnedOnceADayIntoFailing(t *testing.T) {
	for _, succeeds := range []bool{false, true} {
		h := newAddressHarness(t, nothingMore)
		h.planned = nil
		h.delete("72h")
		h.become("1h", func(s *webhooks.AddressState) { s.FailingSince = timeAt(time.Hour) })
		h.signal(SignalWake, "2h 30h")
		want := []string{"25h0m0s warn"}
		if succeeds {
			h.become("20h", func(s *webhooks.AddressState) { s.FailingSince = nil })
			want = nil
		}
		h.wantDispatches(1, h.run())
		if !slices.Equal(h.acts, want) {
			t.Errorf("acts %v, want %v", h.acts, want)
		}
	}
}

func TestOperatorsUpdateAnAddress(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	results := map[*updateResult]string{
		h.update("1h", updateDisable, `{"reason": "maintenance"}`):             `{"status":"off","queued":0,"expired":0}`,
		h.update("2h", updateRedeliver, `{"since": "2026-03-01T08:00:00Z"}`):   "failed: The address is off; turn it on first.",
		h.update("3h", updateTest, `{}`):                                       `{"event_id":"","status":204,"latency_ms":12}`,
		h.update("4h", updateEnable, `{"since": "2026-03-01T08:00:00+01:00"}`): `{"status":"on","queued":3,"expired":0}`,
		h.update("5h", updateEnable, `{"since": ""}`):                          `{"status":"on","queued":3,"expired":0}`,
		h.update("6h", updateRedeliver, `{"since": "2026-03-01T08:00:00Z"}`):   `{"status":"on","queued":5,"expired":2}`,
		h.update("7h", updateTrigger, `{"event_type": "issue.created"}`):       `{"event_id":"evt_1","status":500,"latency_ms":3}`,
	}
	h.wantDispatches(1, h.run())
	for got, want := range results {
		if got.outcome != want {
			t.Errorf("at %v the caller got %s, want %s", got.at, got.outcome, want)
		}
	}
	want := []string{
		`1h0m0s disable "maintenance"`, "2h0m0s redeliver 2026-03-01T08:00:00.000Z", "3h0m0s test begun as test3h",
		"4h0m0s enable 2026-03-01T07:00:00.000Z", "5h0m0s enable <nil>", "6h0m0s redeliver 2026-03-01T08:00:00.000Z",
		"7h0m0s send issue.created begun as trigger7h",
	}
	if !slices.Equal(h.acts, want) {
		t.Errorf("acts\n%s,\nwant\n%s", strings.Join(h.acts, "\n"), strings.Join(want, "\n"))
	}
	var statuses []string
	for _, s := range h.observer.shown {
		statuses = append(statuses, s.attributes["AddressStatus"])
	}
	if want := []string{"on", "off", "on"}; !slices.Equal(statuses, want) {
		t.Errorf("AddressStatus was %v, want %v", statuses, want)
	}
	checkAttributes(t, h.observer.shown[0].attributes, map[string]string{
		"Organization": organizationID, "Integration": integrationID, "WebhookAddress": webhookID, "AddressStatus": "on",
	})
}

// An address is not a load generator: one test at a time, of both kinds.
func TestOneTestAtATime(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	inputs := map[string]string{updateTest: `{}`, updateTrigger: `{"event_type": "issue.created"}`}
	var results [4]updateResult
	h.at("3h", func() { // at once, so that the first is in progress
		for i, name := range []string{updateTrigger, updateTest, updateTrigger, updateTest} {
			h.send(name, fmt.Sprint(i, " ", name), inputs[name], &results[i])
		}
	})
	h.update("4h", updateTest, `{}`)
	h.wantDispatches(1, h.run())
	for _, got := range results[1:] {
		const inProgress = "rejected: A test of this address is in progress. Try again when it has ended."
		if got.outcome != inProgress || got.kind != string(models.CodeRateLimited) {
			t.Errorf("another one got %s of the kind %s", got.outcome, got.kind)
		}
	}
	if want := []string{"3h0m0s send issue.created begun as 0 trigger", "4h0m0s test begun as test4h"}; !slices.Equal(h.acts, want) {
		t.Errorf("acts %v, want %v", h.acts, want)
	}
}

// The server may reject the end of a run, and with its task an update that returns in it.
func TestARunEndsInALaterTaskThanItsLastUpdate(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	last := h.update("24h", updateTest, `{}`) // the address is deleted then
	h.wantDispatches(1, h.run())
	if !strings.Contains(last.outcome, "204") || h.ended-last.at != afterUpdate {
		t.Errorf("the update returned at %v with %s, the run ended at %v", last.at, last.outcome, h.ended)
	}
}

func TestCancellationMeansDisable(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.at("1h", func() { h.env.CancelWorkflow() })
	err := h.run()
	h.wantDispatches(1, nil)
	h.wantContinued(err, "off") // so that it can be requested again
	if len(h.acts) != 1 || !strings.Contains(h.acts[0], "cancellation") {
		t.Errorf("acts %v", h.acts)
	}
}

func TestAddressDetails(t *testing.T) {
	reason, problem, code := "maintenance", "The connection was refused.", 500
	for name, tt := range map[string]struct {
		state webhooks.AddressState
		want  []string
	}{
		"on":      {webhooks.AddressState{Enabled: true}, []string{"**on** as of 2026-03-02T09:00:00.000Z", "- [its page in the console](https://millwright.test/console/page)", "- no response yet", "- 0 pending, 0 retrying, 0 held, 0 failed"}},
		"off":     {webhooks.AddressState{OffReason: &reason, OffAt: timeAt(0), Held: models.MaxCounted}, []string{"**off**", "- off since 2026-03-02T09:00:00.000Z: maintenance", "10000 or more held"}},
		"held":    {webhooks.AddressState{OffReason: &reason}, []string{"**off**", "- off: maintenance"}},
		"failing": {webhooks.AddressState{Enabled: true, FailingSince: timeAt(0), LastAt: timeAt(time.Second), LastError: &problem}, []string{"**failing**", "- failing since 2026-03-02T09:00:00.000Z", "- no response to the last attempt at 2026-03-02T09:00:01.000Z: The connection was refused."}},
		"outage":  {webhooks.AddressState{Enabled: true, LastAt: timeAt(0), LastStatus: &code, Retrying: 1500, Unplaced: 500, NextRetryAt: timeAt(time.Minute), WaitsUntil: timeAt(30 * time.Second)}, []string{"- last response: 500 at", "- next retry: 2026-03-02T09:01:00.000Z", "- 500 of the retrying ones wait for a place", "- pending deliveries wait, because nothing has been delivered since very many failed; the oldest is tried at 2026-03-02T09:00:30.000Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.state.LoadedAt, tt.state.Page = *timeAt(0), consolePage
			got := addressDetails(tt.state)
			for _, line := range tt.want {
				if !strings.Contains(got, line) {
					t.Errorf("details\n%s\nwant in them %q", got, line)
				}
			}
		})
	}
}
