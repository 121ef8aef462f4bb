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

// Dispatcher delivers what is pending for webhook addresses.
type Dispatcher struct {
	Service *service.Service
	Sender  Sender
	Waker   service.Waker
	Now     func() time.Time
	// IdleTimeout is how long a mailbox waits for more after its last delivery.
	IdleTimeout time.Duration
	// Poller serves all mailboxes of the worker that wait for more.
	Poller *DeliveryPoller
	// Shared bounds the requests in flight of the whole worker, beyond the few
	// that every address has to itself.
	Shared chan struct{}
	// Instrumentation counts, logs and traces the attempts; nil does not.
	Instrumentation *Instrumentation
}

// DispatchResult is how a round ended.
type DispatchResult struct {
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
func (m *Dispatcher) DrainMailbox(ctx context.Context, webhookID string) (DispatchResult, error) {
	stopBeating := beat(ctx)
	defer stopBeating()
	leave, err := m.Poller.attend(ctx, webhookID)
	if err != nil {
		return DispatchResult{}, err
	}
	defer leave()
	r := newDispatchRun(m, webhookID)
	defer m.Instrumentation.enter(r)()
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
