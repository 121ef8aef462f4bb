package workflows

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"millwright/models"
)

func TestDatabaseThatIsDownForAnHourDelaysOneAttemptAndTheScheduleGoesOn(t *testing.T) {
	s := newScene(t)
	const from, until = 5 * time.Minute, 65 * time.Minute
	s.down = func(at time.Duration) bool { return at >= from && at < until }
	s.run()
	if len(s.attempts) != 8 {
		t.Fatalf("%d attempts, want 8", len(s.attempts))
	}
	third := s.attempts[2].at // due at 6m
	if third < until || third > until+time.Minute {
		t.Errorf("the third attempt was made at %v, want it within a minute after %v", third, until)
	}
	var want []time.Duration
	for _, wait := range durations("30m 2h30m 8h30m 20h30m 44h30m") {
		want = append(want, third+wait)
	}
	var got []time.Duration
	for _, a := range s.attempts[3:] {
		got = append(got, a.at)
	}
	if !slices.Equal(got, want) {
		t.Errorf("after the outage attempts at %v, want them at %v", got, want)
	}
	var tried []time.Duration
	for _, at := range s.calls {
		if s.down(at) {
			tried = append(tried, at)
		}
	}
	if want := durations("6m 6m1s 6m3s 6m7s 6m15s 6m31s 7m3s 8m3s 9m3s"); !slices.Equal(tried[:len(want)], want) {
		t.Errorf("the database was tried at %v, want it at %v and every minute from then on", tried[:len(want)], want)
	}
	for _, step := range s.seen.steps {
		if step.options.RetryPolicy.MaximumAttempts != 0 {
			t.Errorf("%s gives up after %d tries; an outage may last longer", step.name, step.options.RetryPolicy.MaximumAttempts)
		}
	}
	s.closed(retentionEnds, models.DeliveryFailed)
}

func TestContinueAsNewWhenTemporalSuggestsIt(t *testing.T) {
	t.Run("with the same delivery", func(t *testing.T) {
		s := newScene(t)
		env := newEnvironment(began, s.seen)
		s.env = env
		env.RegisterActivity(s)
		env.SetContinueAsNewSuggested(true)
		s.seen.poked = false
		env.ExecuteWorkflow(Delivery, deliveryID)
		s.attempted("0s 1m")
		checkContinuesAs(t, env.GetWorkflowError(), "Delivery", deliveryID)
	})
	t.Run("keeps the schedule", func(t *testing.T) {
		s := newScene(t)
		s.alwaysNew = true
		s.signal(SignalWake, "3m")
		s.signal(SignalRedeliver, "60h")
		s.accepts = func(number int) bool { return number == 9 }
		s.run()
		s.attempted(wholeSchedule + " 60h")
		s.closed("60h", models.DeliveryDelivered)
		if s.runs < 9 {
			t.Errorf("%d runs, want a new one after each attempt", s.runs)
		}
	})
	t.Run("loses no redeliver that came during an attempt", func(t *testing.T) {
		s := newScene(t)
		s.alwaysNew = true
		s.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalRedeliver, nil)
			}
		}
		s.accepts = func(number int) bool { return number == 3 }
		s.run()
		s.attempted("0s 1m 1m")
	})
	t.Run("loses no stop that came during an attempt", func(t *testing.T) {
		s := newScene(t)
		s.alwaysNew = true
		s.during = func(env *testsuite.TestWorkflowEnvironment, number int) {
			if number == 2 {
				env.SignalWorkflow(SignalStop, nil)
			}
		}
		s.run()
		s.attempted("0s 1m")
	})
}

// checkContinuesAs checks that a run ended by continuing as the workflow with the id.
func checkContinuesAs(t *testing.T, err error, workflowName, id string) {
	t.Helper()
	next, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok {
		t.Fatalf("the run ended with %v, want it to continue as new", err)
	}
	var argument string
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &argument); err != nil {
		t.Fatal(err)
	}
	if next.WorkflowType.Name != workflowName || argument != id {
		t.Errorf("it continues as %s(%q), want %s(%q)", next.WorkflowType.Name, argument, workflowName, id)
	}
}

func TestCancelledDeliveryMakesNoAttempt(t *testing.T) {
	s := newScene(t)
	s.at("3m", func() { s.env.CancelWorkflow() })
	s.run()
	s.attempted("0s 1m")
	if !temporal.IsCanceledError(s.err) || s.ended != 3*time.Minute {
		t.Errorf("the workflow ended at %v with %v, want it cancelled at 3m", s.ended, s.err)
	}
}

// Whatever operators, outages and receivers do: no attempt is early unless it
// was asked for, none follows a success, none is made twice, and the workflow
// ends without an error, at the latest with the retention.
func TestDeliveryKeepsItsPromisesWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t)
		s.seen.poked = rapid.Bool().Draw(t, "started by a poke")
		s.alwaysNew = rapid.Bool().Draw(t, "continues as new after every step")
		acceptsFrom := rapid.IntRange(2, 14).Draw(t, "the receiver accepts from attempt")
		s.accepts = func(number int) bool { return number >= acceptsFrom }
		outage := time.Duration(rapid.IntRange(0, 3000).Draw(t, "outage at minute")) * time.Minute
		s.down = func(at time.Duration) bool { return at >= outage && at < outage+20*time.Minute }
		for range rapid.IntRange(0, 8).Draw(t, "happenings") {
			at := fmt.Sprintf("%dm", rapid.IntRange(1, 4000).Draw(t, "minute"))
			switch what := rapid.SampledFrom([]string{SignalWake, SignalRedeliver, SignalStop, "address off", "address on"}).Draw(t, "what"); what {
			case "address off":
				s.change(at, func() { s.addressOff = true })
			case "address on":
				s.change(at, func() { s.addressOff = false })
			default:
				s.signal(what, at)
			}
		}
		s.run()

		if s.err != nil {
			t.Fatalf("the workflow ended with the error %v", s.err)
		}
		for i, a := range s.attempts[1:] {
			if a.at < a.due && !a.asked {
				t.Errorf("attempt %d was made at %v, due at %v", i+2, a.at, a.due)
			}
			if s.attempts[i].accepted {
				t.Errorf("attempt %d was made although the one before succeeded", i+2)
			}
		}
		switch s.row.Status {
		case models.DeliveryFailed:
			if s.ended != retention {
				t.Errorf("a failed delivery closed at %v, want it open until %v", s.ended, retention)
			}
		case models.DeliveryDelivered, models.DeliveryHeld:
			if s.ended > retention {
				t.Errorf("a %s delivery closed at %v", s.row.Status, s.ended)
			}
		default:
			t.Errorf("the workflow closed at %v while the delivery is %s", s.ended, s.row.Status)
		}
	})
}
