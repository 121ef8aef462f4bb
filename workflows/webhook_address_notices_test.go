package workflows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"millwright/activities"
)

// postbox is the mail about one address.
type postbox struct {
	m *mailbox
	// down says when the mail server takes no mail; nil is never.
	down func(at time.Duration) bool
	// waiting is how many notices wait to be mailed, sent when each mailing was made.
	waiting int
	sent    []time.Duration
}

// MailNotices plays the mail server.
func (p *postbox) MailNotices(_ context.Context, id string) (activities.MailResult, error) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if id != webhookID {
		p.m.t.Errorf("people are told about %q, want %q", id, webhookID)
	}
	at := p.m.env.Now().Sub(began)
	if p.down != nil && p.down(at) {
		return activities.MailResult{}, errors.New("the mail server does not answer")
	}
	told := activities.MailResult{Sent: p.waiting}
	p.waiting = 0
	p.sent = append(p.sent, at)
	return told, nil
}

var _ noticeActivities = (*postbox)(nil)

// newPostbox returns a mailbox in whose first round so many notices come up.
func newPostbox(t *testing.T, notices int) *postbox {
	p := &postbox{waiting: notices}
	p.m = newMailbox(t, func(int) (activities.DispatchResult, error) {
		return activities.DispatchResult{Delivered: 1, Notices: p.waiting > 0}, nil
	})
	p.m.env.RegisterActivity(p)
	return p
}

func TestKeepersAreToldByTheMailboxOfTheirAddress(t *testing.T) {
	t.Run("once, and then it looks again and ends", func(t *testing.T) {
		p := newPostbox(t, 2)
		p.m.made(2, p.m.run())
		if p.waiting != 0 || len(p.sent) != 1 {
			t.Errorf("%d wait, mailed at %v", p.waiting, p.sent)
		}
	})
	t.Run("and nobody when there is nothing to tell", func(t *testing.T) {
		p := newPostbox(t, 0)
		p.m.made(1, p.m.run())
		if len(p.sent) != 0 {
			t.Errorf("mailed at %v", p.sent)
		}
	})
	t.Run("an hour late when the mail server is down for an hour, while deliveries go on", func(t *testing.T) {
		p := newPostbox(t, 1)
		p.down = func(at time.Duration) bool { return at < time.Hour }
		for _, at := range []time.Duration{10 * time.Minute, 20 * time.Minute, 50 * time.Minute} {
			p.m.env.RegisterDelayedCallback(func() { p.m.wake(1) }, at)
		}
		err := p.m.run()
		if err != nil {
			t.Fatalf("the workflow ended with %v", err)
		}
		for _, at := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute, 50 * time.Minute} {
			if !slices.Contains(p.m.rounds, at) {
				t.Errorf("rounds at %v, want one at %v", p.m.rounds, at)
			}
		}
		if len(p.sent) != 1 || p.sent[0] < time.Hour || p.sent[0] > time.Hour+5*time.Minute {
			t.Errorf("mailed at %v, want once within 5 minutes of the hour", p.sent)
		}
	})
	t.Run("also of what comes up while the first is being mailed", func(t *testing.T) {
		p := newPostbox(t, 1)
		p.down = func(at time.Duration) bool { return at < time.Minute }
		p.m.env.RegisterDelayedCallback(func() {
			p.m.mu.Lock()
			defer p.m.mu.Unlock()
			if p.waiting == 0 {
				p.waiting = 1 // passed by
			}
		}, 90*time.Second)
		p.m.env.RegisterDelayedCallback(func() { p.m.wake(1) }, 91*time.Second)
		if err := p.m.run(); err != nil {
			t.Fatalf("the workflow ended with %v", err)
		}
		if p.waiting != 0 {
			t.Error("a notice is left waiting")
		}
	})
}
