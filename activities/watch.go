package activities

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

// The pace of the watch.
const (
	pollEvery = 10 * time.Millisecond
	// However long a look takes, the watch looks for no more than a part of the time.
	restAfterLook = 4
	// A lease tells writers that a mailbox is attended; it is renewed well before it ends.
	leaseFor    = 6 * time.Second
	renewEvery  = 2 * time.Second
	leaveBefore = 2 * time.Second
)

// Poller is the one poller of a worker: it looks for new deliveries on behalf of
// every mailbox that lingers, and keeps the leases by which writers know that
// these need no poke.
type DeliveryPoller struct {
	service *service.Service
	log     *slog.Logger

	mu       sync.Mutex
	attended map[string]int // mailboxes of this worker, by how many rounds hold them
	waiting  map[string]waiting
	running  bool
}

// waiting is a mailbox that waits for deliveries.
type waiting struct {
	above   int64 // those up to here it has in hand
	arrived chan struct{}
}

// NewDeliveryPoller returns a watch; it runs while a mailbox is attended.
func NewDeliveryPoller(s *service.Service, log *slog.Logger) *DeliveryPoller {
	return &DeliveryPoller{service: s, log: log, attended: map[string]int{}, waiting: map[string]waiting{}}
}

// attend takes the lease of the address until the returned function is called.
func (w *DeliveryPoller) attend(ctx context.Context, webhookID string) (leave func(), err error) {
	if err := w.service.AcquireLease(ctx, []string{webhookID}, w.service.Now().Add(leaseFor)); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.attended[webhookID]++
	if !w.running {
		w.running = true
		go w.run(context.WithoutCancel(ctx))
	}
	w.mu.Unlock()
	return func() { w.leave(ctx, webhookID) }, nil
}

// leave gives the lease up; called again, or after linger gave it up, it changes nothing.
func (w *DeliveryPoller) leave(ctx context.Context, webhookID string) {
	w.mu.Lock()
	if w.attended[webhookID]--; w.attended[webhookID] <= 0 {
		delete(w.attended, webhookID)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveBefore)
	defer cancel()
	if err := w.service.ReleaseLease(ctx, webhookID); err != nil {
		w.log.Warn("a mailbox's lease could not be given up; it ends by itself", "webhook_id", webhookID, "error", err.Error())
	}
}

// await returns a channel that is closed when the address has pending deliveries
// beyond the given place in its order. The caller forgets it when it waits no more.
func (w *DeliveryPoller) await(webhookID string, above int64) (arrived <-chan struct{}, forget func()) {
	channel := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[webhookID] = waiting{above, channel}
	return channel, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiting[webhookID].arrived == channel {
			delete(w.waiting, webhookID)
		}
	}
}

// linger waits for new deliveries of the address and reports whether some came.
// Before it gives up it gives the lease up and looks on for a while: a writer
// that saw the lease has committed by then, and later ones poke.
func (w *DeliveryPoller) linger(ctx context.Context, webhookID string, patience time.Duration) (bool, error) {
	arrived, forget := w.await(webhookID, 0)
	defer forget()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	stop := activity.GetWorkerStopChannel(ctx)
	select {
	case <-arrived:
		return true, nil
	case <-stop:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
	}
	w.mu.Lock()
	w.attended[webhookID] = 0 // no renewal any more; leave removes the entry
	w.mu.Unlock()
	if err := w.service.ReleaseLease(ctx, webhookID); err != nil {
		return false, err
	}
	timer.Reset(leaveBefore)
	select {
	case <-arrived:
		w.mu.Lock()
		w.attended[webhookID] = 1
		w.mu.Unlock()
		return true, w.service.AcquireLease(ctx, []string{webhookID}, w.service.Now().Add(leaseFor))
	case <-stop:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
		return false, nil
	}
}

// run polls and renews until nothing is attended any more.
func (w *DeliveryPoller) run(ctx context.Context) {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	renewed := w.service.Now()
	for range timer.C {
		ids, aboves, attended, idle := w.list()
		if idle {
			return
		}
		looked := time.Now()
		if len(ids) > 0 {
			w.look(ctx, ids, aboves)
		}
		timer.Reset(max(pollEvery, restAfterLook*time.Since(looked)))
		if now := w.service.Now(); now.Sub(renewed) >= renewEvery && len(attended) > 0 {
			renewed = now
			if err := w.service.AcquireLease(ctx, attended, now.Add(leaseFor)); err != nil {
				w.log.Warn("the leases of mailboxes could not be renewed", "error", err.Error())
			}
		}
	}
}

// list returns who waits, for deliveries beyond which place, and whose lease is
// kept; idle ends the run.
func (w *DeliveryPoller) list() (ids []string, aboves []int64, attended []string, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.attended) == 0 {
		w.running = false
		return nil, nil, nil, true
	}
	for id, mailbox := range w.waiting {
		ids, aboves = append(ids, id), append(aboves, mailbox.above)
	}
	for id, held := range w.attended {
		if held > 0 {
			attended = append(attended, id)
		}
	}
	return ids, aboves, attended, false
}

// look wakes the mailboxes whose deliveries came.
func (w *DeliveryPoller) look(ctx context.Context, ids []string, aboves []int64) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	arrived, err := w.service.AddressesWithPending(ctx, ids, aboves)
	if err != nil {
		w.log.Warn("the watch could not look for new deliveries", "error", err.Error())
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range arrived {
		if mailbox, waits := w.waiting[id]; waits {
			close(mailbox.arrived)
			delete(w.waiting, id)
		}
	}
}
