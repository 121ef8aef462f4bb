package worker

import (
	"container/list"
	"time"

	"millwright/service/store"
)

// wake is a wake to send.
type wake struct {
	target store.WakeTarget
	// parent is the span (W3C traceparent) in whose trace the workflow starts, "" if absent.
	parent string
	// failing is the delivery whose workflow is started if it is not open, nil for other workflows.
	failing *store.FailingDelivery
	// since is when it was last asked for.
	since time.Time
}

// wakeKey identifies a wake's workflow.
type wakeKey struct {
	kind store.TargetKind
	id   string
}

func keyOf(target store.WakeTarget) wakeKey { return wakeKey{target.Kind, target.ID} }

// wakeOf returns the wake of a failing delivery.
func wakeOf(d store.FailingDelivery) wake {
	target := store.NewWakeTarget(d.OrganizationID, d.DeliveryID)
	target.Swept = d.StartOnly
	return wake{target: target, parent: d.TraceParent, failing: &d}
}

// merge makes w the wake of both. The first trace is kept.
func (w *wake) merge(later wake) {
	w.since = later.since
	w.target.Swept = w.target.Swept && later.target.Swept
	if w.parent == "" {
		w.parent = later.parent
	}
	signals := w.signals() || later.signals()
	if w.failing == nil {
		w.failing = later.failing
	}
	if w.failing != nil && signals {
		both := *w.failing
		both.StartOnly = false
		w.failing = &both
	}
}

// signals reports whether a workflow that is open is woken.
func (w *wake) signals() bool { return w.failing == nil || !w.failing.StartOnly }

// urgency is the order in which the wakes of one organization are sent.
type urgency int

const (
	urgentAddress  urgency = iota // deliveries or people may wait for it
	urgentRecord                  // it shows a delivery or a record, reminds or sends mail
	urgencySwept                  // its work has waited long already, for lack of a wake
	urgencyClasses                // their number
)

func urgencyOf(target store.WakeTarget) urgency {
	switch {
	case target.Swept:
		return urgencySwept
	case target.Kind == store.TargetWebhook || target.Kind == store.TargetLinks:
		return urgentAddress
	default:
		return urgentRecord
	}
}

// wakeQueue holds wakes, at most one of each workflow. It takes turns between
// organizations; of one organization it returns the most urgent first, and of those the
// most recent. It is not safe for concurrent use.
type wakeQueue struct {
	// limit bounds the wakes.
	limit int
	// queued are elements of an organization's lists, whose values are wakes.
	queued        map[wakeKey]*list.Element
	organizations map[string]*organizationWakes
	// turns are the organizations with wakes, the next to be served first.
	turns *list.List
}

// organizationWakes are the wakes of one organization.
type organizationWakes struct {
	id    string
	count int
	turn  *list.Element
	wakes [urgencyClasses]list.List // the next first
}

func wakeIn(e *list.Element) *wake { return e.Value.(*wake) } //nolint:forcetypeassert // nothing else is in it

func organizationIn(e *list.Element) *organizationWakes {
	return e.Value.(*organizationWakes) //nolint:forcetypeassert // nothing else is in it
}

func newWakeQueue(limit int) *wakeQueue {
	return &wakeQueue{
		limit: limit, queued: map[wakeKey]*list.Element{}, organizations: map[string]*organizationWakes{}, turns: list.New(),
	}
}

func (q *wakeQueue) len() int { return len(q.queued) }

// has reports whether a wake of the workflow is queued.
func (q *wakeQueue) has(key wakeKey) bool { return q.queued[key] != nil }

// add queues a wake of a workflow, or merges it with the queued one, which becomes the most
// recent of its organization. If the queue is full, an organization that has at least its
// share of the queue loses its last wake. It returns what happened: wakeMerged,
// wakeDropped, or "".
func (q *wakeQueue) add(w wake) (outcome string) {
	key := keyOf(w.target)
	if e, queued := q.queued[key]; queued {
		before := wakeIn(e)
		o := q.organizations[before.target.OrganizationID]
		o.wakes[urgencyOf(before.target)].Remove(e)
		before.merge(w)
		q.queued[key] = o.wakes[urgencyOf(before.target)].PushFront(before)
		return wakeMerged
	}
	o := q.organizations[w.target.OrganizationID]
	if o == nil {
		o = &organizationWakes{id: w.target.OrganizationID}
		o.turn = q.turns.PushBack(o)
		q.organizations[o.id] = o
	}
	q.queued[key] = o.wakes[urgencyOf(w.target)].PushFront(&w)
	o.count++
	if q.len() <= q.limit {
		return ""
	}
	q.remove(q.overfull(o).last())
	return wakeDropped
}

// overfull returns an organization with at least its share of the queue, preferably o.
func (q *wakeQueue) overfull(o *organizationWakes) *organizationWakes {
	share := (q.len() + q.turns.Len() - 1) / q.turns.Len()
	for e := q.turns.Back(); o.count < share && e != nil; e = e.Prev() {
		o = organizationIn(e)
	}
	return o
}

// last returns the organization's least urgent and oldest wake.
func (o *organizationWakes) last() *wake {
	for class := urgencyClasses - 1; ; class-- {
		if e := o.wakes[class].Back(); e != nil {
			return wakeIn(e)
		}
	}
}

// next returns the next wake and how many others of its organization are queued. It
// returns false if the queue is empty.
func (q *wakeQueue) next() (w wake, others int, ok bool) {
	turn := q.turns.Front()
	if turn == nil {
		return w, 0, false
	}
	o := organizationIn(turn)
	q.turns.MoveToBack(turn)
	for class := range o.wakes {
		if e := o.wakes[class].Front(); e != nil {
			w = *wakeIn(e)
			break
		}
	}
	q.remove(&w)
	return w, o.count, true
}

// remove removes the queued wake of w's workflow.
func (q *wakeQueue) remove(w *wake) {
	key := keyOf(w.target)
	o := q.organizations[w.target.OrganizationID]
	o.wakes[urgencyOf(w.target)].Remove(q.queued[key])
	delete(q.queued, key)
	if o.count--; o.count == 0 {
		q.turns.Remove(o.turn)
		delete(q.organizations, o.id)
	}
}

// clear drops all wakes.
func (q *wakeQueue) clear() { *q = *newWakeQueue(q.limit) }
