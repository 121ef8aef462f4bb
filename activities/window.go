package activities

import (
	"math"
	"slices"
	"time"

	"millwright/service/webhooks"
)

// maxQueuedTime limits the wait of a rendered delivery in the window. Then it is
// put back and claimed again, so that a slow receiver also gets records as they
// are when they are sent.
const maxQueuedTime = time.Second

// settleTime is the time by which claims lag behind the last one. Concurrent transactions do not
// commit in the order of their deliveries; most of those that are late are within it.
const settleTime = 250 * time.Millisecond

// windowSize bounds the claimed deliveries of one address, retryWindowSize its claimed
// retries in addition.
const (
	windowSize      = 256
	retryWindowSize = 128
)

// class is what waits for requests to one address: first attempts and retries. Neither
// may starve the other.
type class int

const (
	firstAttempts class = iota
	classRetries
	classes
)

func classOf(d webhooks.RenderedDelivery) class {
	if d.Retry {
		return classRetries
	}
	return firstAttempts
}

// window holds a dispatch run's claimed deliveries until their attempts are
// recorded. It hands out deliveries of one record one at a time, so that its
// changes arrive in order, and different records' in parallel. It is not
// safe for concurrent use.
type window struct {
	claimed map[string]class        // by delivery id
	count   [classes]int            // of claimed
	records map[string]*recordQueue // with a delivery queued or being sent
	// ready are the records whose next delivery may be sent, in order, by its class.
	ready [classes][]*recordQueue
	// lastSeq is the highest Seq that was ever claimed.
	lastSeq int64
	// position is the last claim's, or before a delivery that was put back.
	position webhooks.ClaimPosition
	// settled is where position was settleTime before settledAt, settling where it was then.
	settled, settling int64
	settledAt         time.Time
	// putBackFrom is the lowest Seq that was put back since the last claim began.
	putBackFrom int64
	// putBackAny is true if deliveries were put back since the last claim began.
	putBackAny bool
	// putBackRecords are the records with deliveries put back during a claim. The
	// claim may bring later deliveries of them, which must not overtake.
	putBackRecords map[string]bool
}

// recordQueue holds the claimed deliveries of one record.
type recordQueue struct {
	recordID string
	queued   []claimedDelivery
	sending  bool
}

type claimedDelivery struct {
	webhooks.RenderedDelivery
	claimedAt time.Time
}

func newWindow() *window {
	return &window{claimed: map[string]class{}, records: map[string]*recordQueue{}, putBackRecords: map[string]bool{}, putBackFrom: math.MaxInt64}
}

// beginClaim is called before deliveries are claimed, add afterwards. It returns where
// to begin.
func (w *window) beginClaim(now time.Time) webhooks.ClaimPosition {
	clear(w.putBackRecords)
	w.putBackFrom = math.MaxInt64
	if now.Sub(w.settledAt) >= settleTime {
		w.settled, w.settling, w.settledAt = w.settling, w.position.After, now
	}
	return w.claimFrom()
}

// claimFrom is where the next claim begins.
func (w *window) claimFrom() webhooks.ClaimPosition {
	from := w.position
	from.After = min(from.After, w.settled)
	return from
}

// add adds claimed deliveries in order; next is the claim's position. Any that
// would overtake one that was put back is put back too.
func (w *window) add(deliveries []webhooks.RenderedDelivery, next webhooks.ClaimPosition, now time.Time) {
	w.position = next
	for _, d := range deliveries {
		if w.putBackRecords[d.RecordID] {
			w.putBackAny = true
			if !d.Retry {
				w.putBackFrom = min(w.putBackFrom, d.Seq)
			}
			continue
		}
		w.claimed[d.DeliveryID] = classOf(d)
		w.count[classOf(d)]++
		if !d.Retry {
			w.lastSeq = max(w.lastSeq, d.Seq)
		}
		r, known := w.records[d.RecordID]
		if !known {
			r = &recordQueue{recordID: d.RecordID}
			w.records[d.RecordID] = r
		}
		r.insert(claimedDelivery{d, now})
		if !known {
			w.makeReady(r)
		}
	}
	w.claimPutBack()
}

// insert queues a delivery in the order of its record's events.
func (r *recordQueue) insert(d claimedDelivery) {
	at := len(r.queued)
	for at > 0 && r.queued[at-1].Seq > d.Seq {
		at--
	}
	r.queued = slices.Insert(r.queued, at, d)
}

// makeReady appends the record to the ready ones of its next delivery's class.
func (w *window) makeReady(r *recordQueue) {
	of := classOf(r.queued[0].RenderedDelivery)
	w.ready[of] = append(w.ready[of], r)
}

// claimPutBack makes the next claim begin where deliveries were put back.
func (w *window) claimPutBack() {
	for _, after := range []*int64{&w.position.After, &w.settled, &w.settling} {
		*after = min(*after, w.putBackFrom-1)
	}
}

// ids returns the claimed deliveries.
func (w *window) ids() []string {
	ids := make([]string, 0, len(w.claimed))
	for id := range w.claimed {
		ids = append(ids, id)
	}
	return ids
}

// hasRoom reports whether a claim of pending deliveries is worthwhile: half of the window
// is free.
func (w *window) hasRoom() bool { return w.count[firstAttempts] <= windowSize/2 }

// hasRetryRoom is hasRoom for retries.
func (w *window) hasRetryRoom() bool { return w.count[classRetries] <= retryWindowSize/2 }

// next returns the next delivery of the class to send, or false if every record waits for
// one being sent or nothing is queued. A stale delivery is put back, with all later
// ones of its record.
func (w *window) next(of class, now time.Time) (webhooks.RenderedDelivery, bool) {
	for len(w.ready[of]) > 0 {
		r := w.ready[of][0]
		w.ready[of] = w.ready[of][1:]
		if now.Sub(r.queued[0].claimedAt) > maxQueuedTime {
			w.putBack(r)
			continue
		}
		if classOf(r.queued[0].RenderedDelivery) != of { // an earlier one was claimed in between
			w.makeReady(r)
			continue
		}
		d := r.queued[0].RenderedDelivery
		r.queued, r.sending = r.queued[1:], true
		return d, true
	}
	return webhooks.RenderedDelivery{}, false
}

// attempted makes the record's next delivery ready, after the attempt at the one
// that next returned.
func (w *window) attempted(recordID string) {
	r := w.records[recordID]
	r.sending = false
	if len(r.queued) > 0 {
		w.makeReady(r)
	} else {
		delete(w.records, recordID)
	}
}

// remove removes deliveries whose attempts were recorded.
func (w *window) remove(ids ...string) {
	for _, id := range ids {
		if of, claimed := w.claimed[id]; claimed {
			delete(w.claimed, id)
			w.count[of]--
		}
	}
}

// putBackUnsent puts back every delivery that is not being sent.
func (w *window) putBackUnsent() {
	w.ready = [classes][]*recordQueue{}
	for _, r := range w.records {
		w.putBack(r)
	}
}

func (w *window) putBack(r *recordQueue) {
	for _, d := range r.queued {
		w.remove(d.DeliveryID)
		w.putBackAny, w.putBackRecords[r.recordID] = true, true
		if !d.Retry { // retries are found by their time
			w.putBackFrom = min(w.putBackFrom, d.Seq)
		}
	}
	w.claimPutBack()
	r.queued = nil
	if !r.sending {
		delete(w.records, r.recordID)
	}
}
