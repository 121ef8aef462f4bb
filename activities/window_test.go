package activities

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millwright/service"
)

// windowOf fills a window with deliveries written record/name.
func windowOf(at time.Time, deliveries ...string) *window {
	w := newWindow()
	addTo(w, at, deliveries...)
	return w
}

func addTo(w *window, at time.Time, deliveries ...string) {
	var outgoing []service.RenderedDelivery
	for _, name := range deliveries {
		record, _, _ := strings.Cut(name, "/")
		outgoing = append(outgoing, service.RenderedDelivery{DeliveryID: name, RecordID: record, Seq: w.last + int64(len(outgoing)) + 1})
	}
	w.claiming()
	w.add(outgoing, at)
}

// take takes everything that may be sent.
func take(w *window, at time.Time) string {
	var names []string
	for {
		d, ok := w.next(at)
		if !ok {
			return strings.Join(names, " ")
		}
		names = append(names, d.DeliveryID)
	}
}

func inHand(w *window) string {
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
	w := windowOf(noon, "a/1", "a/2", "b/1", "a/3", "c/1", "b/2")
	expect(t, "at first", take(w, noon), "a/1 b/1 c/1")
	w.sent("b")
	expect(t, "b's first was answered", take(w, noon), "b/2")
	w.sent("a")
	w.sent("c")
	expect(t, "a's and c's first were", take(w, noon), "a/2")
	addTo(w, noon, "c/2", "a/4")
	expect(t, "c's second came", take(w, noon), "c/2")
	w.sent("a")
	expect(t, "a's second was answered", take(w, noon), "a/3")
	w.sent("a")
	expect(t, "a's third was", take(w, noon), "a/4")
	expect(t, "nothing is recorded", inHand(w), "a/1 a/2 a/3 a/4 b/1 b/2 c/1 c/2")
	w.recorded("a/1", "c/1")
	expect(t, "some are", inHand(w), "a/2 a/3 a/4 b/1 b/2 c/2")
	if w.last != 8 {
		t.Errorf("the last in hand was %d, want 8", w.last)
	}
}

func TestWindowGivesBackWhatWaitedTooLong(t *testing.T) {
	w := windowOf(noon, "a/1", "a/2", "a/3", "b/1")
	expect(t, "in time", take(w, noon.Add(freshFor)), "a/1 b/1")
	if w.returned {
		t.Error("something went back")
	}
	late := noon.Add(freshFor + time.Millisecond)
	w.sent("a")
	addTo(w, late, "c/1")
	expect(t, "a moment later", take(w, late), "c/1")
	if !w.returned {
		t.Error("it does not say that something went back")
	}
	expect(t, "in hand", inHand(w), "a/1 b/1 c/1")
	addTo(w, late, "a/2") // claimed again
	expect(t, "claimed again", take(w, late), "a/2")
}

func TestWindowDropsWhatIsNotBeingSent(t *testing.T) {
	w := windowOf(noon, "a/1", "a/2", "b/1", "c/1", "c/2")
	if d, _ := w.next(noon); d.DeliveryID != "a/1" {
		t.Fatalf("first is %s", d.DeliveryID)
	}
	w.drop()
	expect(t, "in hand", inHand(w), "a/1")
	expect(t, "to send", take(w, noon), "")
	addTo(w, noon, "a/2", "b/1")
	expect(t, "a's first is still being sent", take(w, noon), "b/1")
	w.sent("a")
	expect(t, "it was answered", take(w, noon), "a/2")
}

func TestWindowHasRoomWhenHalfOfItIsFree(t *testing.T) {
	w := newWindow()
	for i := range windowSize/2 + 1 {
		if !w.hasRoom() {
			t.Fatalf("no room with %d in hand", i)
		}
		addTo(w, noon, fmt.Sprintf("a/%d", i))
	}
	if w.hasRoom() {
		t.Error("room with more than half in hand")
	}
}

func TestWindowLetsNothingOvertakeWhatWentBackDuringAClaim(t *testing.T) {
	w := windowOf(noon, "a/1", "a/2", "b/1")
	late := noon.Add(freshFor + time.Millisecond)
	// A claim begins while all of them are in hand, so it does not bring them.
	w.claiming()
	expect(t, "they waited too long", take(w, late), "")
	w.add([]service.RenderedDelivery{{DeliveryID: "a/3", RecordID: "a", Seq: 4}, {DeliveryID: "c/1", RecordID: "c", Seq: 5}}, late)
	expect(t, "what came meanwhile", take(w, late), "c/1")
	if !w.returned {
		t.Error("it does not say that something is to be claimed again")
	}
	addTo(w, late, "a/1", "a/2", "a/3", "b/1")
	expect(t, "claimed again", take(w, late), "a/1 b/1")
	w.sent("a")
	expect(t, "a's first was answered", take(w, late), "a/2")
}
