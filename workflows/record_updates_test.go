package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/sdk/v1"

	"millwright/activities"
	"millwright/models"
)

func TestUpdatesActOnTheWorkOrder(t *testing.T) {
	review := func(decision string) string {
		return fmt.Sprintf(`{"person": %q, "decision": %q, "comment": "The belt is loose."}`, personID, decision)
	}
	cancel := func(reason string) string { return fmt.Sprintf(`{"reason": %q, "person": %q}`, reason, personID) }
	tests := []struct {
		name   string
		status models.WorkOrderStatus // before the update
		update string
		input  string
		action activities.RecordAction
		after  models.WorkOrderStatus // "" if the service rejects it
	}{
		{"approve", models.StatusSentToInspection, UpdateReview, review("approve"),
			activities.RecordAction{Approve: true, Text: "The belt is loose."}, models.StatusComplete},
		{"send back", models.StatusSentToInspection, UpdateReview, review("send_back"),
			activities.RecordAction{Text: "The belt is loose."}, models.StatusBackFromInspection},
		{"hold", models.StatusOpen, UpdateHold, asPerson, activities.RecordAction{}, models.StatusOnHold},
		{"resume", models.StatusOnHold, UpdateResume, asPerson, activities.RecordAction{}, models.StatusInProgress},
		{"cancel", models.StatusOpen, UpdateCancel, cancel("Duplicate"), activities.RecordAction{Text: "Duplicate"}, models.StatusCancelled},
		{"cancel without a reason", models.StatusOnHold, UpdateCancel, cancel(""), activities.RecordAction{}, models.StatusCancelled},
		{"review what is not in review", models.StatusOpen, UpdateReview, review("approve"),
			activities.RecordAction{Approve: true, Text: "The belt is loose."}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
				h.write("1h", func() { h.setStatus(tt.status) })
				result := h.update("2h", tt.update, tt.input)
				h.write("3h", func() { h.setStatus(models.StatusCancelled) })
				h.run()

				want := fmt.Sprintf(`{"id":%q,"status":%q,"changed_at":"2026-03-02T11:00:00.000Z"}`, recordID, tt.after)
				if tt.after == "" {
					want = fmt.Sprintf("failed: A work order with the status %q does not allow this.", tt.status.Name())
				}
				if result.outcome != want || result.at != 2*time.Hour {
					t.Errorf("at %v the caller got %s, want %s", result.at, result.outcome, want)
				}
				tt.action.RecordID, tt.action.Update, tt.action.UpdateID, tt.action.Person = recordID, tt.update, tt.update+"2h", personID
				if len(h.actions) != 1 || h.actions[0] != tt.action {
					t.Errorf("the actions are %+v, want %+v", h.actions, tt.action)
				}
				// The transition is in the timeline with the update, without a wake.
				transition := fmt.Sprintf("2h0m0s %s → %s, %s", tt.status, tt.after, personID)
				if tt.after != "" && !slices.Contains(h.observer.markers, transition) {
					t.Errorf("the markers are %q, want %q among them", h.observer.markers, transition)
				}
				// A rejected update costs no reload: nothing has changed.
				if tt.after == "" && slices.Contains(h.loads, 2*time.Hour) {
					t.Errorf("it loads at %v", h.loads)
				}
				if h.err != nil || h.dirty {
					t.Errorf("the workflow ended with %v, dirty %v", h.err, h.dirty)
				}
			})
		})
	}
}

// The wake of the action may arrive while its update runs or just after.
func TestAnUpdateThatEndsItsWorkflowReturns(t *testing.T) {
	for name, wake := range map[string]string{"without its wake": "", "during the update": "2h", "just after it": "2h100ms"} {
		t.Run(name, func(t *testing.T) {
			h := newWorkOrderHarness(t)
			result := h.update("2h", UpdateCancel, `{"reason": "Duplicate", "person": "`+personID+`"}`)
			if wake != "" {
				h.at(wake, h.wake)
			}
			h.run()
			if !strings.Contains(result.outcome, `"status":"cancelled"`) {
				t.Errorf("the caller got %s", result.outcome)
			}
			if h.err != nil || h.ended > 2*time.Hour+afterUpdate || h.starts != 1 || h.dirty {
				t.Errorf("the workflow ended at %v with %v after %d starts, dirty %v", h.ended, h.err, h.starts, h.dirty)
			}
			h.wantMarkers("0s created → open, 2h0m0s open → cancelled")
		})
	}
}

// While an update runs, the wake of a write, the end of its record or a request to cancel arrives.
func TestUpdatesAreNotInterrupted(t *testing.T) {
	outage := func(at time.Duration) bool { return at >= 2*time.Hour && at < 2*time.Hour+3*time.Second }
	complete := func(h *recordHarness) { h.setStatus(models.StatusComplete) }
	for name, tt := range map[string]struct {
		plan    func(h *recordHarness)
		outcome string
		closes  string // "" when the update has returned
	}{
		"a wake": {func(h *recordHarness) {
			h.down = outage
			h.write("2h1s", func() {})
		}, `"status":"on_hold"`, "3h"},
		"a wake that is to continue as new": {func(h *recordHarness) {
			h.alwaysContinueAsNew, h.down = true, outage
			h.write("2h1s", func() {})
		}, `"status":"on_hold"`, "3h"},
		"the end": {func(h *recordHarness) {
			h.actionsDown = outage
			h.write("2h1s", func() { complete(h) })
		}, `failed: A work order with the status "Complete" does not allow this.`, ""},
		"a request to cancel": {func(h *recordHarness) {
			h.actionsDown = outage
			h.at("2h1s", func() { h.env.CancelWorkflow() })
		}, `"status":"on_hold"`, "3h"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newWorkOrderHarness(t)
			tt.plan(h)
			result := h.update("2h", UpdateHold, asPerson)
			if tt.closes != "" {
				h.write(tt.closes, func() { complete(h) })
			}
			h.run()
			if !strings.Contains(result.outcome, tt.outcome) {
				t.Errorf("at %v the caller got %q, want %q; queries at %v", result.at, result.outcome, tt.outcome, h.queries)
			}
			h.wantClosed(cmp.Or(tt.closes, (result.at + afterUpdate).String()))
		})
	}
}

func TestUpdatesOfAnUnreachableDatabaseEnd(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.down = func(at time.Duration) bool { return at >= 2*time.Hour && at < 3*time.Hour }
	result := h.update("2h", UpdateHold, asPerson)
	h.write("4h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	const want = "failed: The service could not do this in time. Look at the record before you try again: it may have happened."
	if result.outcome != want || result.at > 2*time.Hour+20*time.Second {
		t.Errorf("at %v the caller got %q, want %q within 20 seconds", result.at, result.outcome, want)
	}
	h.wantClosed("4h")
}

func TestUpdateResolvesFeedback(t *testing.T) {
	inOneAndManyRuns(t, newFeedbackHarness, func(t *testing.T, h *recordHarness) {
		h.write("1h", func() {})
		result := h.update("2h", UpdateResolve, asPerson)
		h.run()
		if want := fmt.Sprintf(`{"id":%q,"status":"resolved","changed_at":"2026-03-02T11:00:00.000Z"}`, feedbackID); result.outcome != want {
			t.Errorf("the caller got %s, want %s", result.outcome, want)
		}
		h.wantClosed("2h1s")
		h.wantMarkers("0s created → open, 2h0m0s open → resolved")
	})
}

// What operators can send is an interface, and each has a description.
func TestWhatOperatorsSendHasDescriptions(t *testing.T) {
	tests := []struct {
		make func(reporter) *recordHarness
		want string
	}{
		{newWorkOrderHarness, "wake, cancel, hold, resume, review"},
		{newFeedbackHarness, "wake, resolve"},
	}
	for _, tt := range tests {
		h := tt.make(t)
		var definition *sdk.WorkflowDefinition
		h.at("1h", func() { definition = h.metadata().GetDefinition() })
		h.write("2h", h.close)
		h.run()
		var names []string
		for _, interaction := range slices.Concat(definition.GetSignalDefinitions(), definition.GetUpdateDefinitions()) {
			names = append(names, interaction.GetName())
			if interaction.GetDescription() == "" {
				t.Errorf("%s has no description", interaction.GetName())
			}
		}
		if got := strings.Join(names, ", "); got != tt.want {
			t.Errorf("operators can send %s, want %s", got, tt.want)
		}
		for _, query := range definition.GetQueryDefinitions() {
			if !strings.HasPrefix(query.GetName(), "__") && query.GetDescription() == "" {
				t.Errorf("the query %s has no description", query.GetName())
			}
		}
	}
	for _, u := range slices.Concat(workOrderUpdates, feedbackUpdates) {
		for _, member := range u.members {
			if !strings.Contains(u.description, `"`+member+`":`) {
				t.Errorf("the description of %s lacks its member %s: %s", u.name, member, u.description)
			}
		}
	}
}

func TestCancellingTheWorkflowCancelsNothing(t *testing.T) {
	tests := []struct {
		name string
		make func(reporter) *recordHarness
		plan func(h *recordHarness)
		want string // the update that the details name
	}{
		{"of a work order waiting for a wake", newWorkOrderHarness, func(*recordHarness) {}, "`cancel`"},
		{"of a work order waiting for a date", newWorkOrderHarness, func(h *recordHarness) { h.setTargetDate("72h") }, "`cancel`"},
		{"of feedback", newFeedbackHarness, func(*recordHarness) {}, "`resolve`"},
		{"while the database is down", newWorkOrderHarness, func(h *recordHarness) {
			h.down = func(at time.Duration) bool { return at > 2*time.Hour && at < 5*time.Hour }
			h.write("2h30m", func() {})
		}, "`cancel`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.make(t)
			tt.plan(h)
			h.at("3h", func() { h.env.CancelWorkflow() })
			details := ""
			h.at("6h", func() { details = h.details() })
			h.write("100h", func() { h.close() })
			h.run()
			const line = "**Cancellation of this workflow was requested at 2026-03-02T1"
			if !strings.Contains(details, line) || !strings.Contains(details, "use the update "+tt.want) {
				t.Errorf("the details are %q, want the request and the update %s in them", details, tt.want)
			}
			if h.err != nil || h.ended < 100*time.Hour || h.dirty {
				t.Errorf("the workflow ended at %v with %v, dirty %v, want it to go on until 100h", h.ended, h.err, h.dirty)
			}
		})
	}
}

// A run that continues as new shows the whole life in its details; the timelines of
// its runs together have each transition once, and attributes are set when they change.
func TestRunsShowEachTransitionOnce(t *testing.T) {
	inOneAndManyRuns(t, newWorkOrderHarness, func(t *testing.T, h *recordHarness) {
		h.write("1h", func() { h.setStatus(models.StatusInProgress) })
		h.write("2h", func() {})
		h.write("3h", func() {
			h.setStatus(models.StatusOnHold)
			h.setStatus(models.StatusInProgress) // one wake for both
		})
		details := ""
		h.at("4h", func() { details = h.details() })
		h.write("5h", func() { h.setStatus(models.StatusComplete) })
		h.run()
		h.wantMarkers("0s created → open, 1h0m0s open → in_progress, 3h0m0s in_progress → on_hold, 3h0m0s on_hold → in_progress, 5h0m0s in_progress → complete")
		h.wantClosed("5h")
		if n := strings.Count(details, " → "); n != 4 {
			t.Errorf("the details list %d transitions, want 4: %s", n, details)
		}
		if n := len(h.observer.shown); n != 3 {
			t.Errorf("attributes were set %d times, want open, in_progress and complete: %v", n, h.observer.shown)
		}
	})
}

func TestDetailsListTheNewestTransitions(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.write("1h", func() {
		for range shownTransitions {
			h.setStatus(models.StatusOnHold)
			h.setStatus(models.StatusInProgress)
		}
	})
	details := ""
	h.at("2h", func() { details = h.details() })
	h.write("3h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	if n := strings.Count(details, " → "); n != shownTransitions || !strings.Contains(details, "earlier ones") || strings.Contains(details, "created") {
		t.Errorf("the details list %d transitions: %s", n, details)
	}
}
