package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
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
	third := h.attempts[2].at // due at 6m
	if third < until || third > until+time.Minute {
		t.Errorf("the third attempt was made at %v, want it within a minute after %v", third, until)
	}
	var want []time.Duration
	for _, wait := range durations("30m 2h30m 8h30m 20h30m 44h30m") {
		want = append(want, third+wait)
	}
	var got []time.Duration
	for _, a := range h.attempts[3:] {
		got = append(got, a.at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("after the outage attempts at %v, want them at %v", got, want)
	}
	var tried []time.Duration
	for _, at := range h.calls {
		if h.down(at) {
			tried = append(tried, at)
		}
	}
	if want := durations("6m 6m1s 6m3s 6m7s 6m15s 6m31s 7m3s 8m3s 9m3s"); !slices.Equal(tried[:len(want)], want) {
		t.Errorf("queries at %v, want them at %v and then every minute", tried[:len(want)], want)
	}
	for _, step := range h.observer.steps {
		if step.options.RetryPolicy.MaximumAttempts != 0 {
			t.Errorf("%s gives up after %d attempts; an outage may last longer", step.name, step.options.RetryPolicy.MaximumAttempts)
		}
	}
	h.wantClosed(retentionEnds, models.DeliveryFailed)
}

func TestContinueAsNewWhenTemporalSuggestsIt(t *testing.T) {
	t.Run("with the same delivery", func(t *testing.T) {
		h := newDeliveryHarness(t)
		env := newEnvironment(began, h.observer)
		h.env = env
		env.RegisterActivity(h)
		env.SetContinueAsNewSuggested(true)
		h.observer.startWithWake = false
		env.ExecuteWorkflow(Delivery, deliveryID)
		h.wantAttempts("0s 1m")
		checkContinuesAs(t, env.GetWorkflowError(), "Delivery", deliveryID)
	})
	t.Run("keeps the schedule", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.alwaysContinueAsNew = true
		h.signal(SignalWake, "3m")
		h.signal(SignalRedeliver, "60h")
		h.accepts = func(number int) bool { return number == 9 }
		h.run()
		h.wantAttempts(wholeSchedule + " 60h")
		h.wantClosed("60h", models.DeliveryDelivered)
		if h.runs < 9 {
			t.Errorf("%d runs, want a new one after each attempt", h.runs)
		}
	})
	t.Run("loses no redeliver that arrived during an attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.alwaysContinueAsNew = true
		h.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalRedeliver, nil)
			}
		}
		h.accepts = func(number int) bool { return number == 3 }
		h.run()
		h.wantAttempts("0s 1m 1m")
	})
	t.Run("loses no stop that arrived during an attempt", func(t *testing.T) {
		h := newDeliveryHarness(t)
		h.alwaysContinueAsNew = true
		h.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalStop, nil)
			}
		}
		h.run()
		h.wantAttempts("0s 1m")
	})
}

func TestCancelledDeliveryMakesNoAttempt(t *testing.T) {
	h := newDeliveryHarness(t)
	h.at("3m", func() { h.env.CancelWorkflow() })
	h.run()
	h.wantAttempts("0s 1m")
	if !temporal.IsCanceledError(h.err) || h.ended != 3*time.Minute {
		t.Errorf("the workflow ended at %v with %v, want it cancelled at 3m", h.ended, h.err)
	}
}

// Whatever operators, outages and receivers do: no attempt is early unless it was
// requested, none follows a success, none is made twice, and the workflow ends
// without an error by the end of the retention.
func TestDeliveryInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newDeliveryHarness(t)
		h.observer.startWithWake = rapid.Bool().Draw(t, "started by a wake")
		h.alwaysContinueAsNew = rapid.Bool().Draw(t, "continues as new after every step")
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
			if a.at < a.due && !a.requested {
				t.Errorf("attempt %d was made at %v, due at %v", i+2, a.at, a.due)
			}
			if h.attempts[i].accepted {
				t.Errorf("attempt %d was made although the previous one succeeded", i+2)
			}
		}
		switch h.row.Status {
		case models.DeliveryFailed:
			if h.ended != retention {
				t.Errorf("a failed delivery closed at %v, want it open until %v", h.ended, retention)
			}
		case models.DeliveryDelivered, models.DeliveryHeld:
			if h.ended > retention {
				t.Errorf("a %s delivery closed at %v", h.row.Status, h.ended)
			}
		default:
			t.Errorf("the workflow closed at %v while the delivery is %s", h.ended, h.row.Status)
		}
	})
}
