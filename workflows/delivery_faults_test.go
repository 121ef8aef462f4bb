package workflows

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millwright/models"
)

func TestDatabaseOutageDelaysOneAttemptAndTheScheduleContinues(t *testing.T) {
	h := newDeliveryHarness(t)
	const from, until = 5 * time.Minute, 65 * time.Minute
	h.down = func(at time.Duration) bool { return at >= from && at < until }
	h.run()
	if len(h.attempts) != 8 {
		t.Fatalf("%d attempts, want 8", len(h.attempts))
	}
	third := h.attempts[2].at // due at 6m, when the dispatcher meets the outage
	if third < until || third > until+time.Minute {
		t.Errorf("the third attempt was made at %v, want it within a minute after %v", third, until)
	}
	var want []time.Duration
	for _, wait := range durations("30m 2h30m 8h30m 20h30m 44h30m") {
		want = append(want, (third + wait).Truncate(time.Millisecond))
	}
	var got []time.Duration
	for _, a := range h.attempts[3:] {
		got = append(got, a.at.Truncate(time.Millisecond))
	}
	if !slices.Equal(got, want) {
		t.Errorf("after the outage attempts at %v, want them at %v", got, want)
	}
	for _, step := range h.observer.steps {
		if step.options.RetryPolicy.MaximumAttempts != 0 || step.options.ScheduleToCloseTimeout < 24*time.Hour {
			t.Errorf("%s gives up; an outage may last longer", step.name)
		}
	}
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

func TestDeliveryContinuesAsNewWithALongHistory(t *testing.T) {
	t.Run("with the same delivery", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.historyLength = historyLimit + 1
		h.signal(SignalWake, "3m")
		h.at("4m", func() { h.env.SetCurrentHistoryLength(historyLimit + 1) })
		h.signal(SignalRedeliver, "60h")
		h.accepts = func(number int) bool { return number == 9 }
		h.run()
		h.wantAttempts(wholeSchedule + " 60h")
		h.wantClosed("60h", models.DeliveryDelivered)
		if h.runs < 3 {
			t.Errorf("%d runs, want new ones", h.runs)
		}
		// Unchanged attributes are not written again.
		for i, s := range h.observer.shown[1:] {
			if maps.Equal(s.attributes, h.observer.shown[i].attributes) {
				t.Errorf("at %v the same attributes are written again: %v", s.at, s.attributes)
			}
		}
	})
}

// Whatever operators, outages and receivers do: no attempt follows a success, none is made twice, and the workflow ends
// without an error by the end of the retention.
func TestDeliveryInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newDeliveryHarness(t)
		h.observer.startWithWake = rapid.Bool().Draw(t, "started by a wake")
		if rapid.Bool().Draw(t, "continues as new") {
			h.historyLength = historyLimit + 1
			h.at("20h", func() { h.env.SetCurrentHistoryLength(historyLimit + 1) })
		}
		h.mute = rapid.Bool().Draw(t, "no attempt is reported")
		acceptsFrom := rapid.IntRange(2, 14).Draw(t, "the receiver accepts from attempt")
		h.accepts = func(number int) bool { return number >= acceptsFrom }
		outage := time.Duration(rapid.IntRange(0, 3000).Draw(t, "outage at minute")) * time.Minute
		h.down = func(at time.Duration) bool { return at >= outage && at < outage+20*time.Minute }
		for range rapid.IntRange(0, 8).Draw(t, "number of actions") {
			at := fmt.Sprintf("%dm", rapid.IntRange(1, 4000).Draw(t, "minute"))
			switch action := rapid.SampledFrom([]string{SignalWake, SignalRedeliver, SignalStop, "address off", "address on"}).Draw(t, "action"); action {
			case "address off":
				h.change(at, func() { h.addressOff = true })
			case "address on":
				h.change(at, func() { h.addressOff = false })
			default:
				h.signal(action, at)
			}
		}
		h.run()

		if h.err != nil {
			t.Fatalf("the workflow ended with the error %v", h.err)
		}
		for i, a := range h.attempts[1:] {
			if a.at < a.due {
				t.Errorf("attempt %d was made at %v, due at %v", i+2, a.at, a.due)
			}
			if h.attempts[i].accepted {
				t.Errorf("attempt %d was made although the previous one succeeded", i+2)
			}
		}
		switch h.row.Status {
		case models.DeliveryFailed, models.DeliveryHeld:
			if h.ended.Truncate(time.Second) != retention {
				t.Errorf("a %s delivery closed at %v, want it open until %v", h.row.Status, h.ended, retention)
			}
		case models.DeliveryDelivered:
			if h.ended > retention {
				t.Errorf("a delivered delivery closed at %v", h.ended)
			}
		default:
			t.Errorf("the workflow closed at %v while the delivery is %s", h.ended, h.row.Status)
		}
	})
}
