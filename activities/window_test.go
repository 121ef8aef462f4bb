package activities

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/service/webhooks"
)

// newTestWindow returns a window with deliveries written as record/name.
func newTestWindow(at time.Time, deliveries ...string) *window {
	w := newWindow()
	addTo(w, at, deliveries...)
	return w
}

func addTo(w *window, at time.Time, deliveries ...string) {
	var claimed []webhooks.RenderedDelivery
	next := w.beginClaim(at)
	next.After = w.lastSeq
	for _, name := range deliveries {
		record, _, _ := strings.Cut(name, "/")
		next.After++
		claimed = append(claimed, webhooks.RenderedDelivery{
			DeliveryID: name, RecordID: record, Seq: next.After, Retry: strings.HasSuffix(name, "retry"),
		})
	}
	w.add(claimed, next, at)
}

// take takes every delivery that may be sent.
func take(w *window, at time.Time) string {
	var names []string
	for {
		d, ok := w.next(firstAttempts, at)
		if !ok {
			d, ok = w.next(classRetries, at)
		}
		if !ok {
			return strings.Join(names, " ")
		}
		names = append(names, d.DeliveryID)
	}
}

func claimedIDs(w *window) string {
	ids := w.ids()
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestWindowSendsEachRecordsDeliveriesOneAfterAnother(t *testing.T) {
	w := newTestWindow(noon, "a/1", "a/2", "b/1", "a/3", "c/1", "b/2")
	expect(t, "at first", take(w, noon), "a/1 b/1 c/1")
	w.attempted("b")
	expect(t, "after b's first", take(w, noon), "b/2")
	w.attempted("a")
	w.attempted("c")
	expect(t, "after a's and c's first", take(w, noon), "a/2")
	addTo(w, noon, "c/2", "a/4")
	expect(t, "c's second was claimed", take(w, noon), "c/2")
	w.attempted("a")
	expect(t, "after a's second", take(w, noon), "a/3")
	w.attempted("a")
	expect(t, "after a's third", take(w, noon), "a/4")
	expect(t, "claimed before any is recorded", claimedIDs(w), "a/1 a/2 a/3 a/4 b/1 b/2 c/1 c/2")
	w.remove("a/1", "c/1")
	expect(t, "claimed after two are recorded", claimedIDs(w), "a/2 a/3 a/4 b/1 b/2 c/2")
	if w.position.After != 8 {
		t.Errorf("the next claim begins after %d, want 8", w.position.After)
	}
}

func TestWindowPutsBackStaleDeliveries(t *testing.T) {
	w := newTestWindow(noon, "a/1", "a/2", "a/3", "b/1")
	expect(t, "in time", take(w, noon.Add(maxQueuedTime)), "a/1 b/1")
	if w.putBackAny {
		t.Error("something was put back")
	}
	late := noon.Add(maxQueuedTime + time.Millisecond)
	w.attempted("a")
	addTo(w, late, "c/1")
	expect(t, "a moment later", take(w, late), "c/1")
	if !w.putBackAny {
		t.Error("putBackAny is not set")
	}
	expect(t, "claimed", claimedIDs(w), "a/1 b/1 c/1")
	addTo(w, late, "a/2") // claimed again
	expect(t, "claimed again", take(w, late), "a/2")
}

func TestWindowPutsBackUnsentDeliveries(t *testing.T) {
	w := newTestWindow(noon, "a/1", "a/2", "b/1", "c/1", "c/2")
	if d, _ := w.next(firstAttempts, noon); d.DeliveryID != "a/1" {
		t.Fatalf("first is %s", d.DeliveryID)
	}
	w.putBackUnsent()
	expect(t, "claimed", claimedIDs(w), "a/1")
	expect(t, "to send", take(w, noon), "")
	addTo(w, noon, "a/2", "b/1")
	expect(t, "a's first is still being sent", take(w, noon), "b/1")
	w.attempted("a")
	expect(t, "after it was sent", take(w, noon), "a/2")
}

func TestWindowHasRoomWhenHalfOfItIsFree(t *testing.T) {
	w := newWindow()
	for i := range windowSize/2 + 1 {
		if !w.hasRoom() {
			t.Fatalf("no room with %d claimed", i)
		}
		addTo(w, noon, fmt.Sprintf("a/%d", i))
	}
	if w.hasRoom() {
		t.Error("room with more than half claimed")
	}
}

func TestWindowLetsNothingOvertakeDeliveriesPutBackDuringAClaim(t *testing.T) {
	w := newTestWindow(noon, "a/1", "a/2", "b/1")
	late := noon.Add(maxQueuedTime + time.Millisecond)
	// A claim that begins while these are claimed does not return them.
	w.beginClaim(late)
	expect(t, "stale ones", take(w, late), "")
	w.add([]webhooks.RenderedDelivery{{DeliveryID: "a/3", RecordID: "a", Seq: 4}, {DeliveryID: "c/1", RecordID: "c", Seq: 5}}, webhooks.ClaimPosition{After: 5, Requeues: 7}, late)
	expect(t, "newly claimed ones", take(w, late), "c/1")
	if want := (webhooks.ClaimPosition{After: 0, Requeues: 7}); !w.putBackAny || w.position != want {
		t.Errorf("the next claim begins at %+v, want the first one put back", w.position)
	}
	addTo(w, late, "a/1", "a/2", "a/3", "b/1")
	expect(t, "claimed again", take(w, late), "a/1 b/1")
	w.attempted("a")
	expect(t, "after a's first", take(w, late), "a/2")
}

func TestClaimsLagBehindTheLastOne(t *testing.T) {
	w := newTestWindow(noon, "a/1", "b/1")
	from := func(at time.Time, want int64) {
		t.Helper()
		if got := w.beginClaim(at).After; got != want {
			t.Errorf("%s later a claim begins after %d, want %d", at.Sub(noon), got, want)
		}
	}
	from(noon, 0)
	from(noon.Add(settleTime), 0)
	addTo(w, noon.Add(settleTime), "c/1")
	from(noon.Add(2*settleTime), 2)
	from(noon.Add(3*settleTime), 3)
	w.putBackUnsent()
	from(noon.Add(3*settleTime), 0)
}

// A retry goes before newer deliveries of its record, whichever was claimed first, and has
// its own room.
func TestWindowKeepsRetriesInTheOrderOfTheirRecord(t *testing.T) {
	w := newTestWindow(noon, "a/1", "b/1")
	d := webhooks.RenderedDelivery{DeliveryID: "a/retry", RecordID: "a", Seq: 0, Retry: true}
	w.add([]webhooks.RenderedDelivery{d}, webhooks.ClaimPosition{After: w.lastSeq}, noon)
	if w.count != [classes]int{2, 1} || w.lastSeq != 2 {
		t.Errorf("%v are claimed up to %d", w.count, w.lastSeq)
	}
	expect(t, "at first", take(w, noon), "b/1 a/retry")
	w.attempted("a")
	expect(t, "after the retry", take(w, noon), "a/1")
	w.remove("a/retry", "a/retry")
	if w.count != [classes]int{2, 0} {
		t.Errorf("%v are claimed", w.count)
	}
	// One that is put back is found by its time: the position of the pending ones stays.
	w.add([]webhooks.RenderedDelivery{{DeliveryID: "c/retry", RecordID: "c", Seq: 1, Retry: true}}, webhooks.ClaimPosition{After: 7}, noon)
	w.putBackUnsent()
	if w.position.After != 7 || !w.putBackAny {
		t.Errorf("the next claim begins after %d", w.position.After)
	}
}
