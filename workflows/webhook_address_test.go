package workflows

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"millwright/activities"
)

// mailboxActivities is what the workflow WebhookAddress asks of the world.
type mailboxActivities interface {
	DrainMailbox(ctx context.Context, webhookID string) (activities.DispatchResult, error)
}

var _, _ mailboxActivities = (*activities.Dispatcher)(nil), (*mailbox)(nil)

// mailbox stands for the deliveries of one address.
type mailbox struct {
	t    *testing.T
	env  *testsuite.TestWorkflowEnvironment
	seen *observer
	// round is what happens in each round, counted from 1.
	round func(number int) (activities.DispatchResult, error)

	mu     sync.Mutex
	rounds []time.Duration
}

// newMailbox returns a mailbox that was started by a poke.
func newMailbox(t *testing.T, round func(number int) (activities.DispatchResult, error)) *mailbox {
	seen := &observer{poked: true}
	m := &mailbox{t: t, seen: seen, env: newEnvironment(began, seen), round: round}
	m.env.RegisterActivity(m)
	return m
}

// DrainMailbox plays the next round.
func (m *mailbox) DrainMailbox(_ context.Context, id string) (activities.DispatchResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != webhookID {
		m.t.Errorf("the mailbox of %q was drained, want %q", id, webhookID)
	}
	m.rounds = append(m.rounds, m.env.Now().Sub(began))
	if len(m.rounds) == maxCalls {
		m.t.Errorf("the mailbox goes round in circles at %v", m.rounds[maxCalls-1])
		m.env.CancelWorkflow()
	}
	return m.round(len(m.rounds))
}

// wake sends the workflow a number of pokes.
func (m *mailbox) wake(times int) {
	for range times {
		m.env.SignalWorkflow(SignalWake, nil)
	}
}

func (m *mailbox) run() error {
	m.env.ExecuteWorkflow(WebhookAddress, webhookID)
	return m.env.GetWorkflowError()
}

// made checks how many rounds were made, and that the workflow ended well.
func (m *mailbox) made(rounds int, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Errorf("the workflow ended with the error %v", err)
	}
	if len(m.rounds) != rounds {
		m.t.Errorf("%d rounds, want %d", len(m.rounds), rounds)
	}
}

func nothingMore(int) (activities.DispatchResult, error) {
	return activities.DispatchResult{Delivered: 1}, nil
}

func TestMailboxMakesOneRoundForThePokeThatStartsItAndEnds(t *testing.T) {
	m := newMailbox(t, nothingMore)
	m.made(1, m.run())
}

func TestMailboxGoesOnWhileARoundLeavesMore(t *testing.T) {
	m := newMailbox(t, func(number int) (activities.DispatchResult, error) {
		return activities.DispatchResult{More: number < 4}, nil
	})
	m.made(4, m.run())
}

func TestPokeDuringARoundCausesAnother(t *testing.T) {
	t.Run("one poke, one round", func(t *testing.T) {
		var m *mailbox
		m = newMailbox(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				m.wake(1)
			}
			return activities.DispatchResult{}, nil
		})
		m.made(2, m.run())
	})
	t.Run("many pokes merge into one round", func(t *testing.T) {
		var m *mailbox
		m = newMailbox(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				m.wake(100)
			}
			return activities.DispatchResult{}, nil
		})
		m.made(2, m.run())
	})
	t.Run("in each of three rounds", func(t *testing.T) {
		var m *mailbox
		m = newMailbox(t, func(number int) (activities.DispatchResult, error) {
			if number <= 3 {
				m.wake(2)
			}
			return activities.DispatchResult{}, nil
		})
		m.made(4, m.run())
	})
	t.Run("even when the round failed first", func(t *testing.T) {
		var m *mailbox
		m = newMailbox(t, func(number int) (activities.DispatchResult, error) {
			if number == 1 {
				m.wake(1)
				return activities.DispatchResult{}, errors.New("the database cannot be reached")
			}
			return activities.DispatchResult{}, nil
		})
		m.made(3, m.run()) // the first, its retry, and the poke's
	})
}

func TestMailboxContinuesAsNewAfterManyRounds(t *testing.T) {
	t.Run("with the same address", func(t *testing.T) {
		m := newMailbox(t, func(int) (activities.DispatchResult, error) { return activities.DispatchResult{More: true}, nil })
		err := m.run()
		m.made(roundsBeforeNew, nil)
		checkContinuesAs(t, err, "WebhookAddress", webhookID)
	})
	t.Run("when a poke came in the last of them", func(t *testing.T) {
		var m *mailbox
		m = newMailbox(t, func(number int) (activities.DispatchResult, error) {
			if number == roundsBeforeNew {
				m.wake(1)
			}
			return activities.DispatchResult{More: number < roundsBeforeNew}, nil
		})
		err := m.run()
		m.made(roundsBeforeNew, nil)
		checkContinuesAs(t, err, "WebhookAddress", webhookID)
	})
	t.Run("but not when the last of them left nothing", func(t *testing.T) {
		m := newMailbox(t, func(number int) (activities.DispatchResult, error) {
			return activities.DispatchResult{More: number < roundsBeforeNew}, nil
		})
		m.made(roundsBeforeNew, m.run())
	})
}

func TestRoundThatFailsIsTriedAgainUntilItSucceeds(t *testing.T) {
	m := newMailbox(t, func(number int) (activities.DispatchResult, error) {
		if number <= 20 {
			return activities.DispatchResult{}, errors.New("the database cannot be reached")
		}
		return activities.DispatchResult{Delivered: 3}, nil
	})
	m.made(21, m.run())
	if want := durations("0s 1s 3s 7s 11s 15s 19s"); !slices.Equal(m.rounds[:len(want)], want) {
		t.Errorf("tried at %v, want it at %v and every 4s from then on", m.rounds[:len(want)], want)
	}
}

func TestCancelledMailboxEnds(t *testing.T) {
	m := newMailbox(t, func(int) (activities.DispatchResult, error) {
		return activities.DispatchResult{}, errors.New("the database cannot be reached")
	})
	m.env.RegisterDelayedCallback(m.env.CancelWorkflow, time.Hour)
	if err := m.run(); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, want it cancelled", err)
	}
}

func TestRoundLeavesRoomForItsActivity(t *testing.T) {
	m := newMailbox(t, nothingMore)
	m.made(1, m.run())
	options := m.seen.steps[0].options
	if options.StartToCloseTimeout <= activities.MaxRound {
		t.Errorf("a round is cut off after %v and may work for %v", options.StartToCloseTimeout, activities.MaxRound)
	}
	if options.HeartbeatTimeout != activities.HeartbeatTimeout {
		t.Errorf("a dead worker's round is taken over after %v, want %v", options.HeartbeatTimeout, activities.HeartbeatTimeout)
	}
	if options.Summary != "deliver what is pending" {
		t.Errorf("an operator reads %q", options.Summary)
	}
}
