package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
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
	// leaveAfter is the time for which a dispatch still waits after it has released its lease.
	leaveAfter = 2 * time.Second
)

// Dispatcher sends the deliveries of webhook addresses for the first time.
type Dispatcher struct {
	Service *service.Service
	Sender  Sender
	Waker   store.Waker
	Now     func() time.Time
	// IdleTimeout is the time for which a dispatch waits for more after its last delivery.
	IdleTimeout time.Duration
	// Arrivals tells the dispatches of the worker that wait of new deliveries.
	Arrivals *Arrivals
	// SharedSlots bounds the worker's requests in flight, in addition to those
	// reserved for each address.
	SharedSlots chan struct{}
	// Instrumentation counts, logs and traces the attempts; it may be nil.
	Instrumentation *Instrumentation
	Log             *slog.Logger
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
	// InFlight counts the requests.
	InFlight int
}

// DispatchPending sends everything pending for the address, and
// then waits for more, so that a busy address needs no Temporal work per event. It returns
// after IdleTimeout without deliveries, after MaxDispatchRun, when the address is to be
// turned off, or when the worker stops. If it dies, what it was sending is sent again.
func (d *Dispatcher) DispatchPending(ctx context.Context, webhookID string) (DispatchResult, error) {
	var progress atomic.Pointer[DispatchProgress]
	progress.Store(&DispatchProgress{})
	defer heartbeat(ctx, func() DispatchProgress { return *progress.Load() })()
	info := activity.GetInfo(ctx)
	acquired := time.Now()
	lease, wait, err := d.Service.Webhooks.AcquireLease(ctx, webhookID, fmt.Sprintf("%s/%d", info.WorkflowExecution.RunID, info.Attempt))
	if err != nil {
		return DispatchResult{}, err
	}
	defer d.releaseLease(ctx, lease)
	if wait > 0 {
		d.Log.Warn("an address is taken over from a dispatcher that may be cut off", "webhook_id", webhookID, "wait_ms", wait.Milliseconds())
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return DispatchResult{}, ctx.Err()
		}
	}
	run := &dispatchRun{
		Dispatcher: d, lease: lease, renewed: acquired, progress: &progress,
		inFlight: map[string]webhooks.RenderedDelivery{}, ended: make(chan webhooks.Attempt, maxAddressRequests),
	}
	defer d.Instrumentation.dispatchStarted(run)()
	err = run.run(ctx)
	return run.result, err
}

// releaseLease releases the lease. The run may have released it already.
func (d *Dispatcher) releaseLease(ctx context.Context, lease webhooks.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveAfter)
	defer cancel()
	if err := d.Service.Webhooks.ReleaseLease(ctx, lease); notLoggedYet(err) {
		d.Log.Warn("cannot release an address's lease; it will expire", "webhook_id", lease.WebhookID, "error", err.Error())
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
