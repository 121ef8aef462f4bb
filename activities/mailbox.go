package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

// The pace of a mailbox.
const (
	// MaxRound is how long one DrainMailbox works before it reports back.
	MaxRound = 5 * time.Minute
	// HeartbeatTimeout is how soon a dead worker's mailbox is taken over.
	HeartbeatTimeout = 10 * time.Second
	heartbeatEvery   = 3 * time.Second
)

// Mailbox delivers what is pending for webhook addresses.
type Mailbox struct {
	Service *service.Service
	Sender  Sender
	Poker   service.Poker
	Now     func() time.Time
	// Linger is how long a mailbox waits for more after its last delivery.
	Linger time.Duration
	// Watch serves all mailboxes of the worker that wait for more.
	Watch *Watch
	// Shared bounds the requests in flight of the whole worker, beyond the few
	// that every address has to itself.
	Shared chan struct{}
	// Watched counts, logs and traces the attempts; nil does not.
	Watched *Watched
}

// Drained is how a round ended.
type Drained struct {
	Delivered, Failed int
	// More says that the round stopped before the mailbox was empty.
	More bool
	// Notices says that people are to be told about the address by e-mail.
	Notices bool
}

// DrainMailbox delivers everything pending for the address and lingers while
// traffic flows, so that a busy address costs Temporal nothing an event. It
// returns when nothing came for a while, or after MaxRound, or when the worker
// stops. What it had claimed when it dies is claimed again.
func (m *Mailbox) DrainMailbox(ctx context.Context, webhookID string) (Drained, error) {
	stopBeating := beat(ctx)
	defer stopBeating()
	leave, err := m.Watch.attend(ctx, webhookID)
	if err != nil {
		return Drained{}, err
	}
	defer leave()
	r := newRound(m, webhookID)
	defer m.Watched.enter(r)()
	err = r.run(ctx)
	return r.total, err
}

// beat heartbeats until the returned function is called.
func beat(ctx context.Context) func() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(heartbeatEvery)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
