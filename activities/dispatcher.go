package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
	"millwright/service/store"
)

const (
	// MaxDispatchRun limits the time for which one DispatchPending works.
	MaxDispatchRun = 5 * time.Minute
	// DispatchHeartbeatTimeout is the time after which another worker process takes over an
	// address whose worker process died.
	DispatchHeartbeatTimeout = 12 * time.Second
	// MaxHeartbeatThrottle limits how long a worker keeps heartbeats back, so that two may be
	// lost or late.
	MaxHeartbeatThrottle = 4 * time.Second
	heartbeatInterval    = 3 * time.Second
)

// Dispatcher sends the deliveries of webhook addresses: first attempts and retries.
type Dispatcher struct {
	Service *service.Service
	Sender  Sender
	Waker   store.Waker
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
	// IdleTimeout is the time for which a dispatch waits for more after its last delivery.
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
	// More is true if deliveries may still be pending.
	More bool
}

// DispatchProgress is what heartbeats of DispatchPending carry.
type DispatchProgress struct {
	DispatchResult
	// Pending and Retries count the claimed deliveries, InFlight the requests.
	Pending, Retries, InFlight int
}

// DispatchPending sends everything due for the address, first attempts and retries, and
// then waits for more, so that a busy address needs no Temporal work per event. It returns
// after IdleTimeout without deliveries, after MaxDispatchRun, when the address is to be
// turned off, or when the worker stops. If it dies, its claimed deliveries are claimed
// again.
func (d *Dispatcher) DispatchPending(ctx context.Context, webhookID string) (DispatchResult, error) {
	run := newDispatchRun(d, webhookID)
	defer heartbeat(ctx, run.progressSoFar)()
	info := activity.GetInfo(ctx)
	lease, release, err := d.Poller.acquireLease(ctx, webhookID, fmt.Sprintf("%s/%d", info.WorkflowExecution.RunID, info.Attempt))
	if err != nil {
		return DispatchResult{}, err
	}
	defer release()
	defer d.Instrumentation.dispatchStarted(run)()
	err = run.run(ctx, lease)
	return run.progressSoFar().DispatchResult, err
}

// progressSoFar returns the run's progress.
func (r *dispatchRun) progressSoFar() DispatchProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return DispatchProgress{
		DispatchResult: r.result, Pending: r.window.count[firstAttempts], Retries: r.window.count[classRetries], InFlight: r.sending,
	}
}

// heartbeat sends heartbeats with the progress until the returned function is called.
func heartbeat[Progress any](ctx context.Context, progress func() Progress) (stop func()) {
	stopping, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(heartbeatInterval)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx, progress())
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
