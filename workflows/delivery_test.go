package workflows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millwright/models"
)

// The retry schedule of api.md 6.9: attempts at 0, then 1m, 5m, 30m, 2h, 6h,
// 12h and 24h after the previous one.
const (
	wholeSchedule = "0s 1m 6m 36m 2h36m 8h36m 20h36m 44h36m"
	lastAttempt   = "44h36m"
	retentionEnds = "720h"
)

func TestADeliveryIsRetriedOnItsSchedule(t *testing.T) {
	for _, tt := range []struct {
		accepted, times, closes string
		status                  models.DeliveryStatus
	}{
		{"2", "0s 1m", "1m", models.DeliveryDelivered},
		{"3", "0s 1m 6m", "6m", models.DeliveryDelivered},
		{"8", wholeSchedule, lastAttempt, models.DeliveryDelivered},
		{"none", wholeSchedule, retentionEnds, models.DeliveryFailed},
	} {
		t.Run("accepted "+tt.accepted, func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.accepts = func(number int) bool { return fmt.Sprint(number) == tt.accepted }
			h.run()
			h.wantAttempts(tt.times)
			h.wantClosed(tt.closes, tt.status)
			if len(h.observer.steps) != 1 {
				t.Errorf("%d activities, want one that Temporal retries", len(h.observer.steps))
			}
		})
	}
}

// Operators redeliver by update or signal, and stop by cancellation too.
func TestOperatorsActOnADelivery(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		action   string
		// redelivered is when a signal undoes it, "" for never.
		redelivered    string
		accepts        int // the number of the accepted attempt, or 0
		attempts, ends string
		status         models.DeliveryStatus
	}{
		{"redeliver starts the schedule again", "3m", SignalRedeliver, "", 0,
			"0s 1m 3m 4m 9m 39m 2h39m 8h39m 20h39m 44h39m", retentionEnds, models.DeliveryFailed},
		{"redeliver ends with a success", "3m", SignalRedeliver, "", 3, "0s 1m 3m", "3m", models.DeliveryDelivered},
		{"redeliver after the last attempt ends with a success", "60h", SignalRedeliver, "", 9,
			wholeSchedule + " 60h", "60h", models.DeliveryDelivered},
		{"redeliver after the last attempt tries the whole schedule again", "60h", SignalRedeliver, "", 0,
			wholeSchedule + " 60h 60h1m 60h6m 60h36m 62h36m 68h36m 80h36m 104h36m", retentionEnds, models.DeliveryFailed},
		{"stop ends the attempts, and the workflow stays open", "3m", SignalStop, "", 0, "0s 1m", retentionEnds, models.DeliveryFailed},
		{"stop is undone by redeliver, which starts the schedule again", "3m", SignalStop, "10m", 4,
			"0s 1m 10m 11m", "11m", models.DeliveryDelivered},
		{"stop after the last attempt has no effect", "60h", SignalStop, "", 0, wholeSchedule, retentionEnds, models.DeliveryFailed},
	} {
		for _, by := range []string{"update", "signal", "cancellation"} {
			if by == "cancellation" && tt.action != SignalStop {
				continue
			}
			t.Run(tt.name+", by "+by, func(t *testing.T) {
				h := newDeliveryHarness(t)
				h.accepts = func(number int) bool { return number == tt.accepts }
				switch by {
				case "update":
					h.update(tt.at, tt.action, "{}")
				case "signal":
					h.signal(tt.action, tt.at)
				default:
					h.at(tt.at, func() { h.env.CancelWorkflow() })
				}
				h.signal(SignalRedeliver, tt.redelivered)
				var after models.DeliveryStatus
				h.change("3m2s", func() { after = h.row.Status })
				h.run()
				h.wantAttempts(tt.attempts)
				h.wantClosed(tt.ends, tt.status)
				if tt.action == SignalStop && tt.at == "3m" && after != models.DeliveryFailed {
					t.Errorf("after stop the delivery is %s, want failed", after)
				}
			})
		}
	}
}

func TestRedeliverReturnsTheStateAfterTheAttempt(t *testing.T) {
	h := newDeliveryHarness(t)
	h.accepts = func(number int) bool { return number == 10 }
	first, second := h.update("60h", SignalRedeliver, ""), h.update("60h0m30s", SignalRedeliver, "{}")
	h.run()
	if first.outcome != `{"status":"retrying","attempts":9,"last_result":"503","next_attempt_at":"2026-03-04T21:01:00.000Z"}` {
		t.Errorf("the first returned %s", first.outcome)
	}
	if second.outcome != `{"status":"delivered","attempts":10,"last_result":"204","next_attempt_at":null}` {
		t.Errorf("the second returned %s", second.outcome)
	}
	h.wantClosed("60h0m30s", models.DeliveryDelivered)
}

func TestCancellationCanBeRequestedInEachRun(t *testing.T) {
	h := newDeliveryHarness(t)
	h.at("3m", func() { h.env.CancelWorkflow() })
	h.signal(SignalRedeliver, "10m")
	h.at("10m30s", func() { h.env.CancelWorkflow() })
	h.run()
	h.wantAttempts("0s 1m 10m")
	h.wantClosed(retentionEnds, models.DeliveryFailed)
	if h.runs != 3 {
		t.Errorf("%d runs, want a new one after each cancellation", h.runs)
	}
}

// A redelivery of many makes the row pending: its address sends it, and wakes the workflow when that is recorded.
func TestRedeliveryByTheAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		queued, sent   string
		accepts        int
		attempts, ends string
		status         models.DeliveryStatus
	}{
		"fails again while the old attempt, of 36m, waits, and begins a new schedule": {"10m", "11m", 0,
			"0s 1m 6m 11m 12m 17m 47m 2h47m 8h47m 20h47m 44h47m", retentionEnds, models.DeliveryFailed},
		"succeeds":                           {"60h", "61h", 9, wholeSchedule + " 61h", "61h", models.DeliveryDelivered},
		"keeps the old attempt from sending": {"10m", "5h", 4, "0s 1m 6m 5h", "5h", models.DeliveryDelivered},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDeliveryHarness(t)
			h.accepts = func(number int) bool { return number == tt.accepts }
			h.change(tt.queued, func() {
				h.row.Status, h.row.NextAttemptAt, h.row.AttemptsBefore = models.DeliveryPending, nil, h.row.Attempts
			})
			h.change(tt.sent, func() { h.attempt(h.env.Now()); h.env.SignalWorkflow(SignalWake, nil) })
			h.run()
			h.wantAttempts(tt.attempts)
			h.wantClosed(tt.ends, tt.status)
		})
	}
}

func TestRejectedUpdatesOfADelivery(t *testing.T) {
	h := newDeliveryHarness(t)
	late, off := h.update("60h", SignalStop, "{}"), h.update("61h", SignalRedeliver, "{}")
	h.change("60h30m", func() { h.addressOff = true })
	h.run()
	if late.outcome != "failed: The delivery is failed." || off.outcome != "failed: The address is off; turn it on first." {
		t.Errorf("stopping a failed one: %s; redelivering to an address that is off: %s", late.outcome, off.outcome)
	}
	h.wantAttempts(wholeSchedule)
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

// The workflow ends when there is nothing that it could do.
func TestADeliveryEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		change string
		do     func(h *deliveryHarness)
		closes string
		status models.DeliveryStatus
	}{
		"when its address is off":                        {"3m", func(h *deliveryHarness) { h.addressOff = true }, "6m", models.DeliveryHeld},
		"when its record is no longer readable":          {"3m", func(h *deliveryHarness) { h.unreadable = true }, "6m", models.DeliverySkipped},
		"when it is removed while it is retried":         {"3m", func(h *deliveryHarness) { h.gone = true }, "6m", models.DeliveryRetrying},
		"when it is removed before its first look":       {"", func(h *deliveryHarness) { h.gone = true }, "0s", models.DeliveryRetrying},
		"with the retention of its event":                {"50h", func(h *deliveryHarness) {}, retentionEnds, models.DeliveryFailed},
		"when something else has delivered it":           {"3m", func(h *deliveryHarness) { h.row.Status = models.DeliveryDelivered }, "6m", models.DeliveryDelivered},
		"when a newer one needs its place":               {"50h", func(h *deliveryHarness) { h.row.Workflow = false; h.env.SignalWorkflow(SignalWake, nil) }, "50h", models.DeliveryFailed},
		"when it has no place once it fails":             {"40h", func(h *deliveryHarness) { h.row.Workflow = false }, lastAttempt, models.DeliveryFailed},
		"when it was removed and an operator redelivers": {"50h", func(h *deliveryHarness) { h.gone = true; h.env.SignalWorkflow(SignalRedeliver, nil) }, "50h", models.DeliveryFailed},
	} {
		t.Run(name, func(t *testing.T) {
			h := newDeliveryHarness(t)
			if tt.change == "" {
				tt.do(h)
			} else {
				h.change(tt.change, func() { tt.do(h) })
			}
			h.run()
			h.wantClosed(tt.closes, tt.status)
		})
	}
	t.Run("an update of a delivery that is gone", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.change("700h", func() { h.gone = true })
		got := h.update("701h", SignalRedeliver, "{}")
		h.run()
		if !strings.Contains(got.outcome, `"status":"gone"`) {
			t.Errorf("the update returned %s", got.outcome)
		}
	})
}

// Wakes only have it look again.
func TestWakesOfADelivery(t *testing.T) {
	h := newDeliveryHarness(t)
	h.signal(SignalWake, "30s 1m 1m 1m 6m 6m 2h 30h 44h36m 44h36m 60h")
	h.run()
	h.wantAttempts(wholeSchedule)
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

func TestADatabaseOutageDelaysOneAttempt(t *testing.T) {
	h := newDeliveryHarness(t)
	const from, until = 5 * time.Minute, 65 * time.Minute
	h.down = func(at time.Duration) bool { return at >= from && at < until }
	h.run()
	if len(h.attempts) != 8 {
		t.Fatalf("%d attempts, want 8", len(h.attempts))
	}
	third := h.attempts[2] // due at 6m, when the activity meets the outage
	if third < until || third > until+time.Minute {
		t.Errorf("the third attempt was made at %v, want it within a minute after %v", third, until)
	}
	if wait := (h.attempts[3] - third).Round(time.Second); wait != 30*time.Minute {
		t.Errorf("the fourth attempt was made %v later, want the schedule's 30m", wait)
	}
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

func TestADeliveryContinuesAsNewWithALongHistory(t *testing.T) {
	h := newDeliveryHarness(t)
	h.at("4m", func() { h.env.SetCurrentHistoryLength(historyLimit + 1) })
	h.signal(SignalWake, "5m")
	h.signal(SignalRedeliver, "60h")
	h.accepts = func(number int) bool { return number == 9 }
	h.run()
	h.wantAttempts(wholeSchedule + " 60h")
	h.wantClosed("60h", models.DeliveryDelivered)
	if h.runs != 2 {
		t.Errorf("%d runs, want 2", h.runs)
	}
}

func TestOperatorsSeeADeliverysState(t *testing.T) {
	h := newDeliveryHarness(t)
	h.signal(SignalStop, "2m")
	h.signal(SignalRedeliver, "3m")
	h.accepts = func(number int) bool { return number == 4 }
	h.run()
	var statuses []string
	for _, s := range h.observer.shown {
		statuses = append(statuses, s.attributes[AttributeDeliveryStatus.GetName()])
	}
	if got := strings.Join(statuses, " "); got != "failed retrying" {
		t.Errorf("the status is shown as %s", got)
	}
	if details := h.observer.shown[0].details; !strings.Contains(details, "**failed**") || !strings.Contains(details, "redeliver") || !strings.Contains(details, "503") {
		t.Errorf("the details of a failed one are %s", details)
	}
}

func TestADeliveryThatBeganBeforeItsSearchAttributes(t *testing.T) {
	h := newDeliveryHarness(t)
	h.unregistered = true
	h.run()
	first := h.observer.shown[0].attributes
	for name, want := range map[string]string{"Organization": organizationID, "WebhookAddress": webhookID, "RecordId": recordID, "DeliveryStatus": "retrying", "LastResult": "503"} {
		if first[name] != want {
			t.Errorf("%s is %q, want %q", name, first[name], want)
		}
	}
	h.wantAttempts(wholeSchedule)
}

// Whatever operators, outages and receivers do: no attempt follows a success, and the workflow ends without an error
// by the end of the retention.
func TestDeliveryInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newDeliveryHarness(t)
		h.observer.startWithWake = rapid.Bool().Draw(t, "started by a wake")
		if rapid.Bool().Draw(t, "continues as new") {
			h.at("20h", func() { h.env.SetCurrentHistoryLength(historyLimit + 1) })
		}
		acceptsFrom := rapid.IntRange(2, 14).Draw(t, "the receiver accepts from attempt")
		h.accepts = func(number int) bool { return number >= acceptsFrom }
		outage := time.Duration(rapid.IntRange(0, 3000).Draw(t, "outage at minute")) * time.Minute
		h.down = func(at time.Duration) bool { return at >= outage && at < outage+20*time.Minute }
		for range rapid.IntRange(0, 8).Draw(t, "number of actions") {
			at := fmt.Sprintf("%dm", rapid.IntRange(1, 4000).Draw(t, "minute"))
			switch action := rapid.SampledFrom([]string{SignalWake, SignalRedeliver, SignalStop, "update", "address off"}).Draw(t, "action"); action {
			case "address off":
				h.change(at, func() { h.addressOff = true })
			case "update":
				h.update(at, SignalRedeliver, "{}")
			default:
				h.signal(action, at)
			}
		}
		h.run()
		if h.err != nil {
			t.Fatalf("the workflow ended with the error %v", h.err)
		}
		if len(h.attempts) > acceptsFrom {
			t.Errorf("%d attempts, although attempt %d succeeded", len(h.attempts), acceptsFrom)
		}
		switch h.row.Status {
		case models.DeliveryFailed:
			if h.ended.Truncate(time.Minute) != models.EventRetention {
				t.Errorf("a failed delivery closed at %v, want it open until its retention", h.ended)
			}
		case models.DeliveryDelivered, models.DeliveryHeld:
		default:
			t.Errorf("the workflow closed at %v while the delivery is %s", h.ended, h.row.Status)
		}
	})
}
