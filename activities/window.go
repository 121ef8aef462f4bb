package activities

import (
	"time"

	"millwright/service"
)

// freshFor is how long a rendered delivery may wait for its turn. After that it
// goes back and is claimed anew, so that a slow receiver too is told records as
// they are when they are sent.
const freshFor = time.Second

// windowSize is how many deliveries of one address are in hand at the most.
const windowSize = 256

// window is what a mailbox has in hand: deliveries that are claimed and not yet
// recorded. It hands out those about one record one after another, so that its
// changes arrive in order, and different records side by side. It is not safe
// for concurrent use.
type window struct {
	inHand  map[string]bool    // deliveries, by id
	records map[string]*record // those with a delivery waiting or being sent
	ready   []*record          // those whose next delivery may be sent, in turn
	// last is the highest place in the address's order that was ever in hand.
	last int64
	// returned says that deliveries went back unsent since they were claimed.
	returned bool
	// back are the records of which some went back while a claim is under way. It
	// may bring later ones, which must not go before them.
	back map[string]bool
}

type record struct {
	id      string
	waiting []claimed
	sending bool
}

// claimed is a delivery in hand and since when.
type claimed struct {
	service.RenderedDelivery
	at time.Time
}

func newWindow() *window {
	return &window{inHand: map[string]bool{}, records: map[string]*record{}, back: map[string]bool{}}
}

// claiming is called before deliveries are claimed, add when they are there.
func (w *window) claiming() { clear(w.back) }

// add takes deliveries in hand, in their order. Those that would overtake others
// are left to be claimed again.
func (w *window) add(deliveries []service.RenderedDelivery, now time.Time) {
	for _, d := range deliveries {
		if w.back[d.RecordID] {
			w.returned = true
			continue
		}
		w.inHand[d.DeliveryID] = true
		w.last = max(w.last, d.Seq)
		r, known := w.records[d.RecordID]
		if !known {
			r = &record{id: d.RecordID}
			w.records[d.RecordID] = r
			w.ready = append(w.ready, r)
		}
		r.waiting = append(r.waiting, claimed{d, now})
	}
}

// ids are the deliveries in hand.
func (w *window) ids() []string {
	ids := make([]string, 0, len(w.inHand))
	for id := range w.inHand {
		ids = append(ids, id)
	}
	return ids
}

// hasRoom reports whether it is worth while to claim more.
func (w *window) hasRoom() bool { return len(w.inHand) <= windowSize/2 }

// next hands out the next delivery to send; false when every record waits for
// one that is being sent, or nothing is left. What waited too long goes back,
// with everything behind it about the same record.
func (w *window) next(now time.Time) (service.RenderedDelivery, bool) {
	for len(w.ready) > 0 {
		r := w.ready[0]
		w.ready = w.ready[1:]
		if now.Sub(r.waiting[0].at) > freshFor {
			w.putBack(r)
			continue
		}
		d := r.waiting[0].RenderedDelivery
		r.waiting, r.sending = r.waiting[1:], true
		return d, true
	}
	return service.RenderedDelivery{}, false
}

// sent lets the record's next delivery follow the one that was handed out.
func (w *window) sent(recordID string) {
	r := w.records[recordID]
	r.sending = false
	if len(r.waiting) > 0 {
		w.ready = append(w.ready, r)
	} else {
		delete(w.records, recordID)
	}
}

// recorded lets go of deliveries whose attempts are recorded or were cut off.
func (w *window) recorded(ids ...string) {
	for _, id := range ids {
		delete(w.inHand, id)
	}
}

// drop puts everything back that is not being sent.
func (w *window) drop() {
	w.ready = nil
	for _, r := range w.records {
		w.putBack(r)
	}
}

func (w *window) putBack(r *record) {
	for _, d := range r.waiting {
		delete(w.inHand, d.DeliveryID)
		w.returned, w.back[r.id] = true, true
	}
	r.waiting = nil
	if !r.sending {
		delete(w.records, r.id)
	}
}
