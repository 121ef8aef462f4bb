package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
	"millwright/models"
	"millwright/service/webhooks"
)

func nothingMore(int) (activities.DispatchResult, error) {
	return activities.DispatchResult{Delivered: 1}, nil
}

// in returns the time after the beginning.
func in(d time.Duration) *models.Time {
	at := models.TimeOf(began.Add(d))
	return &at
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
}

func TestAddressWorkflowWithoutAnythingDueDispatchesNothing(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.state.Due = false
	h.wantDispatches(0, h.run())
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
	h.state.Due, h.state.WaitsUntil = false, in(5*time.Minute)
	h.become("2m", func(s *webhooks.AddressState) { s.WaitsUntil = in(3 * time.Minute) })
	h.become("10m", func(s *webhooks.AddressState) { s.WaitsUntil = in(2 * time.Hour) })
	h.wantDispatches(2, h.run())
	if want := durations("3m 2h"); !slices.Equal(h.dispatches, want) {
		t.Errorf("dispatches at %v, want %v", h.dispatches, want)
	}
	if first := h.observer.timers[0]; first != (timer{0, 5 * time.Minute, "the address fails: try the oldest delivery"}) {
		t.Errorf("the first timer is %v", first)
	}
}

func TestAddressWorkflowContinuesAsNew(t *testing.T) {
	long := func(length int) *addressHarness {
		h := newAddressHarness(t, nothingMore)
		h.historyLength = length
		return h
	}
	t.Run("after a dispatch with a long history", func(t *testing.T) {
		h := long(historyLimit + 1)
		err := h.run()
		h.wantDispatches(0, nil) // the next run loads first
		checkContinuesAs(t, err, "WebhookAddress", webhookID)
		if run := continuesWith[AddressRun](t, err); run.Shown != "on" {
			t.Errorf("it passes %+v", run)
		}
	})
	t.Run("but not with a short one", func(t *testing.T) {
		h := long(historyLimit)
		h.wantDispatches(1, h.run())
	})
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

func TestDispatchTimeouts(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.wantDispatches(1, h.run())
	options := h.observer.steps[1].options
	if options.StartToCloseTimeout <= activities.MaxDispatchRun {
		t.Errorf("a dispatch times out after %v and may work for %v", options.StartToCloseTimeout, activities.MaxDispatchRun)
	}
	if options.HeartbeatTimeout != activities.DispatchHeartbeatTimeout || options.HeartbeatTimeout < 3*activities.MaxHeartbeatThrottle {
		t.Errorf("a dead worker's dispatch is retried after %v, want %v and time for three heartbeats", options.HeartbeatTimeout, activities.DispatchHeartbeatTimeout)
	}
	if options.Summary != "send pending deliveries" {
		t.Errorf("the summary is %q", options.Summary)
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

func TestPeopleAreWarnedADayIntoFailing(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		h := newAddressHarness(t, nothingMore)
		h.planned = nil
		h.delete("72h")
		h.become("1h", func(s *webhooks.AddressState) { s.FailingSince = in(time.Hour) })
		h.signal(SignalWake, "2h 30h")
		h.wantDispatches(1, h.run())
		if want := []string{"25h0m0s warn"}; !slices.Equal(h.acts, want) {
			t.Errorf("acts %v, want %v", h.acts, want)
		}
	})
	t.Run("not after a success", func(t *testing.T) {
		h := newAddressHarness(t, nothingMore)
		h.planned = nil
		h.delete("72h")
		h.become("1h", func(s *webhooks.AddressState) { s.FailingSince = in(time.Hour) })
		h.become("20h", func(s *webhooks.AddressState) { s.FailingSince = nil })
		h.wantDispatches(1, h.run())
		if len(h.acts) != 0 {
			t.Errorf("acts %v", h.acts)
		}
	})
}

func TestOperatorsUpdateAnAddress(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	disable := h.update("1h", updateDisable, `{"reason": "maintenance"}`)
	off := h.update("2h", updateRedeliver, `{"since": "2026-03-01T08:00:00Z"}`)
	test := h.update("3h", updateTest, `{}`)
	enable := h.update("4h", updateEnable, `{"since": "2026-03-01T08:00:00+01:00"}`)
	again := h.update("5h", updateEnable, `{"since": ""}`)
	redeliver := h.update("6h", updateRedeliver, `{"since": "2026-03-01T08:00:00Z"}`)
	trigger := h.update("7h", updateTrigger, `{"event_type": "issue.created"}`)
	h.wantDispatches(1, h.run())
	for name, check := range map[string]struct {
		got  *update
		want any
	}{
		"disable": {disable, AddressResult{Status: "off"}}, "test": {test, activities.TestResult{Status: 204, LatencyMS: 12}},
		"enable": {enable, AddressResult{"on", 3, 0}}, "enable again": {again, AddressResult{"on", 3, 0}}, "redeliver": {redeliver, AddressResult{"on", 5, 2}},
		"trigger": {trigger, activities.TestResult{EventID: "evt_1", Status: 500, LatencyMS: 3}},
	} {
		if check.got.failed != nil || check.got.result != check.want {
			t.Errorf("%s returned %+v, %v; want %+v", name, check.got.result, check.got.failed, check.want)
		}
	}
	if !off.accepted || off.failed == nil || !strings.Contains(off.failed.Error(), "The address is off; turn it on first.") {
		t.Errorf("redeliver while it is off: %+v", off)
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
	outcomes := map[string]string{}
	h.at("3h", func() { // at once, so that the first is in progress
		for i, name := range []string{updateTrigger, updateTest, updateTrigger, updateTest} {
			id := fmt.Sprint(i, " ", name)
			h.env.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
				OnAccept:   func() { outcomes[id] = "accepted" },
				OnReject:   func(err error) { outcomes[id] = err.Error() },
				OnComplete: func(any, error) { h.updatedAt = h.now() },
			}, json.RawMessage(inputs[name]))
		}
	})
	later := h.update("4h", updateTest, `{}`)
	h.wantDispatches(1, h.run())
	const inProgress = "A test of this address is in progress. Try again when it has ended. (type: rate_limited, retryable: false)"
	want := map[string]string{"0 trigger": "accepted", "1 test": inProgress, "2 trigger": inProgress, "3 test": inProgress}
	if !maps.Equal(outcomes, want) || later.failed != nil {
		t.Errorf("outcomes %v, want %v; a later one %v", outcomes, want, later.failed)
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
	if last.failed != nil || h.ended-last.at != afterUpdate {
		t.Errorf("the update returned at %v with %v, the run ended at %v", last.at, last.failed, h.ended)
	}
}

func TestRejectedUpdatesOfAnAddress(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	var rejected []*update
	minute := 0
	for name, inputs := range map[string][]string{
		updateDisable:   {"", `{}`, `{"reason": 5}`, `{"Reason": "x"}`, `{"reason": "x", "why": "y"}`, `["x"]`, `null`},
		updateEnable:    {"", `{}`, `{"since": null}`, `{"since": "yesterday"}`, `{"since": "2026-03-01T08:00:00+24:00"}`, `{"since": 5}`},
		updateRedeliver: {"", `{}`, `{"since": ""}`, `{"since": "2026-03-01"}`, `{"since": "2026-03-01T08:00:00+23:60"}`, `{"until": "2026-03-01T08:00:00Z"}`},
		updateTest:      {`{"url": "x"}`, `5`},
		updateTrigger:   {"", `{}`, `{"event_type": "eaten"}`, `{"event_type": ""}`, `{"event_type": ["ping"]}`, `{"event_type": "ping", "url": "x"}`},
	} {
		for _, input := range inputs {
			minute++
			rejected = append(rejected, h.update(fmt.Sprintf("%dm", minute), name, input))
		}
	}
	h.wantDispatches(1, h.run())
	for i, got := range rejected {
		if got.accepted || got.rejected == nil {
			t.Errorf("update %d was accepted", i+1)
		}
	}
	if len(h.acts) != 0 {
		t.Errorf("acts %v", h.acts)
	}
}

func TestCancellationMeansDisable(t *testing.T) {
	h := newAddressHarness(t, nothingMore)
	h.at("1h", func() { h.env.CancelWorkflow() })
	err := h.run()
	h.wantDispatches(1, nil)
	checkContinuesAs(t, err, "WebhookAddress", webhookID) // so that it can be requested again
	if len(h.acts) != 1 || !strings.Contains(h.acts[0], "cancellation") {
		t.Errorf("acts %v", h.acts)
	}
	if run := continuesWith[AddressRun](t, err); run.Shown != "off" {
		t.Errorf("it passes %+v", run)
	}
}

func TestAddressDetails(t *testing.T) {
	reason, problem, code := "maintenance", "The connection was refused.", 500
	for name, tt := range map[string]struct {
		state webhooks.AddressState
		want  []string
	}{
		"on":      {webhooks.AddressState{Enabled: true}, []string{"**on** as of 2026-03-02T09:00:00.000Z", "- [its page in the console](https://millwright.test/console/page)", "- no response yet", "- 0 pending, 0 retrying, 0 held, 0 failed"}},
		"off":     {webhooks.AddressState{OffReason: &reason, OffAt: in(0), Held: models.MaxCounted}, []string{"**off**", "- off since 2026-03-02T09:00:00.000Z: maintenance", "10000 or more held"}},
		"held":    {webhooks.AddressState{OffReason: &reason}, []string{"**off**", "- off: maintenance"}},
		"failing": {webhooks.AddressState{Enabled: true, FailingSince: in(0), LastAt: in(time.Second), LastError: &problem}, []string{"**failing**", "- failing since 2026-03-02T09:00:00.000Z", "- no response to the last attempt at 2026-03-02T09:00:01.000Z: The connection was refused."}},
		"outage":  {webhooks.AddressState{Enabled: true, LastAt: in(0), LastStatus: &code, Retrying: 1500, Unplaced: 500, NextRetryAt: in(time.Minute), WaitsUntil: in(30 * time.Second)}, []string{"- last response: 500 at", "- next retry: 2026-03-02T09:01:00.000Z", "- 500 of the retrying ones wait for a place", "- pending deliveries wait, because nothing has been delivered since very many failed; the oldest is tried at 2026-03-02T09:00:30.000Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.state.LoadedAt, tt.state.Page = *in(0), consolePage
			got := addressDetails(tt.state)
			for _, line := range tt.want {
				if !strings.Contains(got, line) {
					t.Errorf("details\n%s\nwant in them %q", got, line)
				}
			}
		})
	}
}
