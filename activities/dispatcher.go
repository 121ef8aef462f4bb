package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

const (
	// MaxDispatchRun is how long one DispatchPending works before it returns.
	MaxDispatchRun = 5 * time.Minute
	// DispatchHeartbeatTimeout is how soon another worker takes over an address
	// after its worker died.
	DispatchHeartbeatTimeout = 10 * time.Second
	heartbeatInterval        = 3 * time.Second
)

// Dispatcher sends the pending deliveries of webhook addresses.
type Dispatcher struct {
	Service *service.Service
	Sender  Sender
	Waker   service.Waker
	Now     func() time.Time
	// IdleTimeout is how long a dispatch waits for more after its last delivery.
	IdleTimeout time.Duration
	// Poller polls for new deliveries on behalf of all dispatches of the worker.
	Poller *DeliveryPoller
	// SharedSlots bounds the worker's requests in flight, in addition to those
	// reserved for each address.
	SharedSlots chan struct{}
	// Instrumentation counts, logs and traces the attempts; it may be nil.
	Instrumentation *Instrumentation
}

// DispatchResult is the outcome of DispatchPending. Histories store it.
type DispatchResult struct {
	Delivered, Failed int
	// More says that deliveries may still be pending.
	More bool
	// Notices says that notices about the address wait to be mailed.
	Notices bool
}

// DispatchPending sends everything pending for the address and then waits for
// more, so that a busy address needs no Temporal work per event. It returns after
// IdleTimeout without deliveries, after MaxDispatchRun, or when the worker stops.
// If it dies, its claimed deliveries are claimed again.
func (d *Dispatcher) DispatchPending(ctx context.Context, webhookID string) (DispatchResult, error) {
	stopHeartbeat := heartbeat(ctx)
	defer stopHeartbeat()
	release, err := d.Poller.acquireLease(ctx, webhookID)
	if err != nil {
		return DispatchResult{}, err
	}
	defer release()
	r := newDispatchRun(d, webhookID)
	defer d.Instrumentation.dispatchStarted(r)()
	err = r.run(ctx)
	return r.result, err
}

// heartbeat sends heartbeats until the returned function is called.
func heartbeat(ctx context.Context) (stop func()) {
	stopping, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(heartbeatInterval)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-ticker.C:
			case <-stopping:
				return
			}
		}
	}()
	return func() {
		close(stopping)
		<-done
	}
}

// stopping reports whether the worker is stopping.
func stopping(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
