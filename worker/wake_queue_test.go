package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/service/store"
)

// wakesOf returns wakes of work orders from names such as "a1": the organization's letter
// and the number. "~" before it makes it swept, "@" a wake of an address.
func wakesOf(names string) []wake {
	var wakes []wake
	for name := range strings.FieldsSeq(names) {
		target := store.WakeTarget{Kind: store.TargetWorkOrder}
		if rest, swept := strings.CutPrefix(name, "~"); swept {
			name, target.Swept = rest, true
		}
		if rest, address := strings.CutPrefix(name, "@"); address {
			name, target.Kind = rest, store.TargetWebhook
		}
		target.ID, target.OrganizationID = name, name[:1]
		wakes = append(wakes, wake{target: target})
	}
	return wakes
}

// always lets a burst's wakes be taken.
func always() bool { return true }

// drained returns the ids of all wakes of the queue, in the order of their turns.
func drained(q *wakeQueue) string {
	var ids []string
	for w, ok := q.next(always); ok; w, ok = q.next(always) {
		ids = append(ids, w.target.ID)
	}
	return strings.Join(ids, " ")
}

func TestQueueTakesTurnsBetweenOrganizations(t *testing.T) {
	for name, test := range map[string]struct {
		limit     int
		add, want string
		dropped   int
	}{
		"nothing":                               {10, "", "", 0},
		"most recent first":                     {10, "a1 a2 a3", "a3 a2 a1", 0},
		"one of each organization in turn":      {10, "a1 a2 a3 b1 c1 c2", "a3 b1 c2 a2 c1 a1", 0},
		"one of each workflow":                  {10, "a1 b1 a1 b1 a1", "a1 b1", 0},
		"a merged one is the most recent":       {10, "a1 a2 a3 a1", "a1 a3 a2", 0},
		"merging keeps the organization's turn": {10, "a1 b1 a1", "a1 b1", 0},
		"an address first":                      {10, "a1 @a2 a3 a4", "a2 a4 a3 a1", 0},
		"but not before other organizations":    {10, "a1 @b1 @b2", "a1 b2 b1", 0},
		"swept ones last":                       {10, "~a1 a2 ~a3", "a2 a1 a3", 0},
		"a write makes a swept one urgent":      {10, "a1 ~a2 ~a3 a2", "a2 a1 a3", 0},
		"the sweep does not make one wait":      {10, "a1 ~a2 ~a1", "a1 a2", 0},
		"the oldest is dropped":                 {3, "a1 a2 a3 a4", "a4 a3 a2", 1},
		"a swept one is dropped before it":      {3, "a1 ~a2 ~a3 a4", "a4 a1 a2", 1},
		"of the organization with most":         {3, "a1 a2 a3 b1 c1", "a3 b1 c1", 2},
		"even if it comes later":                {3, "b1 a1 a2 a3 a4", "b1 a4 a3", 2},
		"each has only its share":               {4, "a1 a2 a3 a4 b1 b2 b3 b4", "a4 b4 a3 b3", 4},
	} {
		t.Run(name, func(t *testing.T) {
			q := newWakeQueue(test.limit)
			dropped := 0
			for _, w := range wakesOf(test.add) {
				if q.add(w) == wakeDropped {
					dropped++
				}
			}
			if got := drained(q); got != test.want || dropped != test.dropped {
				t.Errorf("the order is %q with %d dropped, want %q with %d", got, dropped, test.want, test.dropped)
			}
			if q.len() != 0 || len(q.organizations) != 0 || q.turns.Len() != 0 {
				t.Errorf("%d wakes, %d organizations and %d turns are left", q.len(), len(q.organizations), q.turns.Len())
			}
		})
	}
}

// Wakes of other organizations, and urgent ones, pass those that are paced.
func TestPacedWakesArePassedOver(t *testing.T) {
	q := newWakeQueue(maxQueued)
	never := func() bool { return false }
	for n := range burst + 1 {
		q.add(wakesOf(fmt.Sprint("a", n))[0])
	}
	if w, ok := q.next(never); ok {
		t.Errorf("%s is taken", w.target.ID)
	}
	q.add(wakesOf("@a99")[0])
	q.add(wakesOf("b1")[0])
	for _, want := range []string{"a99", "b1", ""} {
		if w, _ := q.next(never); w.target.ID != want {
			t.Errorf("%q is taken, want %q", w.target.ID, want)
		}
	}
	q.next(always)
	if w, _ := q.next(never); w.target.ID != "a15" {
		t.Errorf("once %d are left, %q is taken, want a15", burst, w.target.ID)
	}
}

func TestMergedWakesCarryWhatEachCarried(t *testing.T) {
	now := time.Now()
	first := wake{parent: "first", since: now, target: store.WakeTarget{Swept: true}, failing: &store.FailingDelivery{StartOnly: true}}
	first.merge(wake{parent: "second", since: now.Add(time.Second)})
	if first.parent != "first" || first.failing == nil || first.failing.StartOnly || first.target.Swept || !first.since.After(now) {
		t.Errorf("merged %+v, failing %+v", first, first.failing)
	}
	if keys := []wakeKey{keyOf(workOrder(1)), keyOf(store.WakeTarget{Kind: store.TargetWorkOrder, ID: "wo_1", OrganizationID: "org_1", Swept: true})}; len(slices.Compact(keys)) != 1 {
		t.Errorf("one workflow has the keys %v", keys)
	}
}
