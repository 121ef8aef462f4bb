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

// urgent reports whether deliveries or people may wait for the target.
func urgent(target store.WakeTarget) bool {
	return target.Kind == store.TargetWebhook || target.Kind == store.TargetLinks
}

// wakeQueue holds wakes, at most one of each workflow. It takes turns between
// organizations; of one organization it returns urgent ones first, then the most recent, and what the sweep found last. It
// is not safe for concurrent use.
type wakeQueue struct {
	// limit bounds the wakes.
	limit int
	// queued are elements of an organization's lists, whose values are wakes.
	queued        map[wakeKey]*list.Element
	organizations map[string]*organizationWakes
	// turns are the organizations with wakes, the next to be served first.
	turns *list.List
}

// organizationWakes are the wakes of one organization, the next first.
type organizationWakes struct {
	id           string
	turn         *list.Element
	urgent, rest list.List
}

func (o *organizationWakes) count() int { return o.urgent.Len() + o.rest.Len() }

func (o *organizationWakes) listOf(target store.WakeTarget) *list.List {
	if urgent(target) {
		return &o.urgent
	}
	return &o.rest
}

// push queues a wake.
func (o *organizationWakes) push(w *wake) *list.Element {
	if w.target.Swept {
		return o.listOf(w.target).PushBack(w)
	}
	return o.listOf(w.target).PushFront(w)
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
		o.listOf(before.target).Remove(e)
		before.merge(w)
		q.queued[key] = o.push(before)
		return wakeMerged
	}
	o := q.organizations[w.target.OrganizationID]
	if o == nil {
		o = &organizationWakes{id: w.target.OrganizationID}
		o.turn = q.turns.PushBack(o)
		q.organizations[o.id] = o
	}
	q.queued[key] = o.push(&w)
	if q.len() <= q.limit {
		return ""
	}
	q.remove(q.overfull(o).last())
	return wakeDropped
}

// overfull returns an organization with at least its share of the queue, preferably o.
func (q *wakeQueue) overfull(o *organizationWakes) *organizationWakes {
	share := (q.len() + q.turns.Len() - 1) / q.turns.Len()
	for e := q.turns.Back(); o.count() < share && e != nil; e = e.Prev() {
		o = organizationIn(e)
	}
	return o
}

// last returns the organization's least urgent and oldest wake.
func (o *organizationWakes) last() *wake {
	if e := o.rest.Back(); e != nil {
		return wakeIn(e)
	}
	return wakeIn(o.urgent.Back())
}

// next returns the next wake, of the organizations with more than burst wakes one that is not urgent only if allow
// returns true. It returns false without one.
func (q *wakeQueue) next(allow func() bool) (w wake, ok bool) {
	for turn := q.turns.Front(); turn != nil; turn = turn.Next() {
		o := organizationIn(turn)
		e := o.urgent.Front()
		if e == nil && (o.count() <= burst || allow()) {
			e = o.rest.Front()
		}
		if e != nil {
			w = *wakeIn(e)
			q.turns.MoveToBack(turn)
			q.remove(&w)
			return w, true
		}
	}
	return w, false
}

// remove removes the queued wake of w's workflow.
func (q *wakeQueue) remove(w *wake) {
	key := keyOf(w.target)
	o := q.organizations[w.target.OrganizationID]
	o.listOf(w.target).Remove(q.queued[key])
	delete(q.queued, key)
	if o.count() == 0 {
		q.turns.Remove(o.turn)
		delete(q.organizations, o.id)
	}
}

// clear drops all wakes.
func (q *wakeQueue) clear() { *q = *newWakeQueue(q.limit) }
