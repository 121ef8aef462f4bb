package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"millwright/service"
	"millwright/webhook"
)

// The pace of a mailbox.
const (
	// MaxRound is how long one DrainMailbox works before it reports back.
	MaxRound = 5 * time.Minute
	// HeartbeatTimeout is how soon a dead worker's mailbox is taken over.
	HeartbeatTimeout = 15 * time.Second
	heartbeatEvery   = 4 * time.Second
	// batchSize is how many deliveries are claimed at a time.
	batchSize = 100
	// perAddress is how many requests one address gets at a time.
	perAddress = 32
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
	// Slots bounds the requests in flight of the whole worker.
	Slots chan struct{}
}

// Drained is how a round ended.
type Drained struct {
	Delivered, Failed int
	// More says that the round stopped before the mailbox was empty.
	More bool
}

// DrainMailbox delivers everything pending for the address, in batches, and
// lingers while traffic flows, so that a busy address costs Temporal nothing an
// event. It returns when nothing came for a while, or after MaxRound, or when
// the worker stops. What it had claimed when it dies is claimed again.
func (m *Mailbox) DrainMailbox(ctx context.Context, webhookID string) (Drained, error) {
	stopBeating := beat(ctx)
	defer stopBeating()
	var total Drained
	ends := m.Now().Add(MaxRound)
	leave, err := m.Watch.attend(ctx, webhookID)
	if err != nil {
		return total, err
	}
	defer leave()
	for {
		claim, err := m.Service.ClaimPending(ctx, webhookID, batchSize)
		if err != nil {
			return total, err
		}
		if len(claim.Deliveries) > 0 {
			recorded, err := m.deliver(ctx, claim)
			if err != nil {
				return total, err
			}
			total.Delivered += recorded.Delivered
			total.Failed += recorded.Failed + len(recorded.Retrying)
		}
		if m.Now().After(ends) || stopping(ctx) {
			total.More = true
			return total, nil
		}
		if len(claim.Deliveries) > 0 || claim.More {
			continue
		}
		if claim.Address.ID == "" || !claim.Address.Enabled {
			return total, nil
		}
		more, err := m.Watch.linger(ctx, webhookID, m.Linger)
		if err != nil || !more {
			return total, err
		}
	}
}

// deliver sends a batch: deliveries about one record one after another, so that
// its changes arrive in order, different records side by side.
func (m *Mailbox) deliver(ctx context.Context, claim service.Claim) (service.Recorded, error) {
	signer, err := webhook.NewSigner(claim.Address.Secrets...)
	if err != nil {
		return service.Recorded{}, err
	}
	var mu sync.Mutex
	attempts := make([]service.Attempt, 0, len(claim.Deliveries))
	group, ctx2 := errgroup.WithContext(ctx)
	group.SetLimit(perAddress)
	for _, record := range byRecord(claim.Deliveries) {
		group.Go(func() error {
			for _, d := range record {
				select {
				case m.Slots <- struct{}{}:
				case <-ctx2.Done():
					return ctx2.Err()
				}
				attempt := send(ctx2, m.Sender, signer, m.Now, claim.Address.URL, d)
				<-m.Slots
				if ctx2.Err() != nil {
					return ctx2.Err() // cut off by us, not by the receiver
				}
				mu.Lock()
				attempts = append(attempts, attempt)
				mu.Unlock()
			}
			return nil
		})
	}
	cut := group.Wait()
	// What was answered is recorded even when the rest was cut off.
	recorded, err := m.Service.RecordAttempts(context.WithoutCancel(ctx), claim.Address.ID, attempts)
	if err != nil {
		return recorded, err
	}
	work := make([]service.Work, len(recorded.Retrying))
	for i, id := range recorded.Retrying {
		work[i] = service.Work{Kind: service.WorkDelivery, ID: id}
	}
	m.Poker.Poke(work...)
	return recorded, cut
}

// byRecord groups the deliveries by their record, both in their order.
func byRecord(deliveries []service.Outgoing) [][]service.Outgoing {
	var groups [][]service.Outgoing
	place := map[string]int{}
	for _, d := range deliveries {
		i, known := place[d.RecordID]
		if !known {
			i = len(groups)
			place[d.RecordID] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// beat heartbeats until the returned function is called.
func beat(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(heartbeatEvery)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// stopping reports whether the worker is being stopped.
func stopping(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
