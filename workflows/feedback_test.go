package workflows

import (
	"testing"

	"millwright/models"
)

func TestFeedbackFromCreationToItsEnd(t *testing.T) {
	inOneAndManyRuns(t, newFeedbackHarness, func(t *testing.T, h *recordHarness) {
		h.write("30h", func() {}) // a wake without a change
		h.write("40h30m", func() { h.move(string(models.FeedbackResolved)) })
		h.write("100h", func() {})
		h.run()
		h.wantClosed("100h")
		if h.starts != 2 {
			t.Errorf("%d starts, want 2", h.starts)
		}
		checkAttributes(t, h.observer.shown[0].attributes, map[string]string{"Organization": organizationID, "RecordId": feedbackID})
		want := "**open**, as of 2026-03-02T09:00:00.000Z\n\n- feedback " + feedbackID + "\n- " + pageLink(consolePage) + "\n- organization " + organizationID +
			"\n\nTransitions:\n\n- 2026-03-02T09:00:00.000Z created → open, " + personID +
			"\n\nRequest Cancellation has no effect: use the update `resolve`.\n"
		if details := h.observer.shown[0].details; details != want {
			t.Errorf("the details are %q, want %q", details, want)
		}
		if len(h.observer.shown) != h.starts {
			t.Errorf("attributes were set %d times in %d starts, want once in each", len(h.observer.shown), h.starts)
		}
		h.wantMarkers("0s created → open, 40h30m0s open → resolved, 100h0m0s created → open, 100h0m0s open → resolved")
	})
}
