package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/sdk/v1"

	"millwright/activities"
	"millwright/models"
)

// input is the input of an update as JSON.
func input(format string, args ...any) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(format, args...))
}

func TestUpdatesActOnTheWorkOrder(t *testing.T) {
	person := input(`{"person": %q}`, personID)
	review := func(decision string) json.RawMessage {
		return input(`{"person": %q, "decision": %q, "comment": "The belt is loose."}`, personID, decision)
	}
	tests := []struct {
		name   string
		status models.WorkOrderStatus // before the update
		update string
		input  json.RawMessage
		action activities.RecordAction
		after  models.WorkOrderStatus // "" if the service rejects it
	}{
		{"approve", models.StatusSentToInspection, UpdateReview, review("approve"),
			activities.RecordAction{Approve: true, Text: "The belt is loose."}, models.StatusComplete},
		{"send back", models.StatusSentToInspection, UpdateReview, review("send_back"),
			activities.RecordAction{Text: "The belt is loose."}, models.StatusBackFromInspection},
		{"hold", models.StatusOpen, UpdateHold, person, activities.RecordAction{}, models.StatusOnHold},
		{"resume", models.StatusOnHold, UpdateResume, person, activities.RecordAction{}, models.StatusInProgress},
		{"cancel", models.StatusOpen, UpdateCancel, input(`{"reason": "Duplicate", "person": %q}`, personID),
			activities.RecordAction{Text: "Duplicate"}, models.StatusCancelled},
		{"cancel without a reason", models.StatusOnHold, UpdateCancel, input(`{"reason": "", "person": %q}`, personID),
			activities.RecordAction{}, models.StatusCancelled},
		{"review what is not in review", models.StatusOpen, UpdateReview, review("approve"),
			activities.RecordAction{Approve: true, Text: "The belt is loose."}, ""},
		{"resume what is not on hold", models.StatusOpen, UpdateResume, person, activities.RecordAction{}, ""},
		{"hold what is in review", models.StatusSentToInspection, UpdateHold, person, activities.RecordAction{}, ""},
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
				tt.action.RecordID, tt.action.Update, tt.action.UpdateID, tt.action.Person = recordID, tt.update, "update-1", personID
				if len(h.actions) != 1 || h.actions[0] != tt.action {
					t.Errorf("the actions are %+v, want %+v", h.actions, tt.action)
				}
				// The transition is in the timeline with the update, without a wake.
				transition := fmt.Sprintf("2h0m0s %s → %s, %s", tt.status, tt.after, personID)
				if tt.after != "" && !strings.Contains(strings.Join(h.observer.markers, "\n"), transition) {
					t.Errorf("the markers are %q, want %q among them", h.observer.markers, transition)
				}
				if h.err != nil || h.dirty {
					t.Errorf("the workflow ended with %v, dirty %v", h.err, h.dirty)
				}
			})
		})
	}
}

func TestAnUpdateThatEndsItsWorkflowReturns(t *testing.T) {
	h := newWorkOrderHarness(t)
	result := h.update("2h", UpdateCancel, input(`{"reason": "Duplicate", "person": %q}`, personID))
	h.run()
	if !strings.Contains(result.outcome, `"status":"cancelled"`) {
		t.Errorf("the caller got %s", result.outcome)
	}
	h.wantClosed("2h1s")
	h.wantMarkers("0s created → open, 2h0m0s open → cancelled")
}

// The wake of the action arrives while its update runs or just after, and ends the workflow.
func TestAnUpdateAndItsWakeEndTheWorkflow(t *testing.T) {
	for name, late := range map[string]string{"during the update": "2h", "just after it": "2h100ms"} {
		t.Run(name, func(t *testing.T) {
			h := newWorkOrderHarness(t)
			result := h.update("2h", UpdateCancel, input(`{"reason": "Duplicate", "person": %q}`, personID))
			h.at(late, h.wake)
			h.run()
			if !strings.Contains(result.outcome, `"status":"cancelled"`) {
				t.Errorf("the caller got %s", result.outcome)
			}
			if h.err != nil || h.ended > 2*time.Hour+afterUpdate || h.starts != 1 {
				t.Errorf("the workflow ended at %v with %v after %d starts", h.ended, h.err, h.starts)
			}
			if got := strings.Join(h.observer.markers, "\n"); strings.Count(got, "open → cancelled") != 1 {
				t.Errorf("the markers are %s", got)
			}
		})
	}
}

// The wake of a write can end the workflow or its run while an update is running.
func TestRunsEndAfterTheirUpdates(t *testing.T) {
	for name, many := range map[string]bool{"the end": false, "continue as new": true} {
		t.Run(name, func(t *testing.T) {
			h := newWorkOrderHarness(t)
			h.alwaysContinueAsNew = many
			h.down = func(at time.Duration) bool { return at >= 2*time.Hour && at < 2*time.Hour+3*time.Second }
			result := h.update("2h", UpdateHold, input(`{"person": %q}`, personID))
			h.write("2h1s", func() {})
			h.write("3h", func() { h.setStatus(models.StatusComplete) })
			h.run()
			if !strings.Contains(result.outcome, `"status":"on_hold"`) {
				t.Errorf("at %v the caller got %q; queries at %v", result.at, result.outcome, h.queries)
			}
			h.wantClosed("3h")
		})
	}
}

func TestTheWorkflowOfAClosedRecordWaitsForItsUpdates(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.actionsDown = func(at time.Duration) bool { return at < 2*time.Hour+3*time.Second }
	result := h.update("2h", UpdateHold, input(`{"person": %q}`, personID))
	h.write("2h1s", func() { h.setStatus(models.StatusComplete) })
	h.run()
	if want := `failed: A work order with the status "Complete" does not allow this.`; result.outcome != want {
		t.Errorf("at %v the caller got %q, want %q", result.at, result.outcome, want)
	}
	h.wantClosed((result.at + afterUpdate).String())
}

// A rejected update costs no reload: nothing has changed.
func TestARejectedUpdateReloadsNothing(t *testing.T) {
	h := newWorkOrderHarness(t)
	result := h.update("2h", UpdateResume, input(`{"person": %q}`, personID))
	h.write("3h", func() { h.setStatus(models.StatusCancelled) })
	h.run()
	if !strings.HasPrefix(result.outcome, "failed: A work order with the status") {
		t.Errorf("the caller got %q", result.outcome)
	}
	if want := []time.Duration{0, 3 * time.Hour}; !slices.Equal(h.loads, want) {
		t.Errorf("it loads at %v, want %v", h.loads, want)
	}
}

func TestCancellingTheWorkflowInterruptsNoUpdate(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.actionsDown = func(at time.Duration) bool { return at < 2*time.Hour+3*time.Second }
	result := h.update("2h", UpdateHold, input(`{"person": %q}`, personID))
	h.at("2h1s", func() { h.env.CancelWorkflow() })
	h.write("3h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	if !strings.Contains(result.outcome, `"status":"on_hold"`) {
		t.Errorf("at %v the caller got %q", result.at, result.outcome)
	}
	h.wantClosed("3h")
}

func TestUpdatesOfAnUnreachableDatabaseEnd(t *testing.T) {
	h := newWorkOrderHarness(t)
	h.down = func(at time.Duration) bool { return at >= 2*time.Hour && at < 3*time.Hour }
	result := h.update("2h", UpdateHold, input(`{"person": %q}`, personID))
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
		result := h.update("2h", UpdateResolve, input(`{"person": %q}`, personID))
		h.run()
		if want := fmt.Sprintf(`{"id":%q,"status":"resolved","changed_at":"2026-03-02T11:00:00.000Z"}`, feedbackID); result.outcome != want {
			t.Errorf("the caller got %s, want %s", result.outcome, want)
		}
		h.wantClosed("2h1s")
		h.wantMarkers("0s created → open, 2h0m0s open → resolved")
	})
}

// Updates whose input has the wrong shape are rejected before anything is stored.
func TestUpdatesOfTheWrongShapeAreRejected(t *testing.T) {
	const reviewMembers = "the members decision, comment, person"
	tests := []struct {
		name, update string
		input        any
		want         string
	}{
		{"no input", UpdateHold, nil, "The input is one JSON object with the members person."},
		{"a string", UpdateHold, personID, "The input is one JSON object with the members person."},
		{"a list", UpdateHold, []string{personID}, "The input is one JSON object with the members person."},
		{"no members", UpdateReview, input(`{}`), `The member "decision" is missing; the input has ` + reviewMembers + "."},
		{"a missing member", UpdateReview, input(`{"decision": "approve", "person": %q}`, personID), `The member "comment" is missing; the input has ` + reviewMembers + "."},
		{"a misspelt member", UpdateReview, input(`{"aprove": true}`), `There is no member "aprove"; the input has ` + reviewMembers + "."},
		{"a member in another case", UpdateHold, input(`{"Person": %q}`, personID), `There is no member "Person"; the input has the members person.`},
		{"a member too many", UpdateHold, input(`{"person": %q, "reason": "x"}`, personID), `There is no member "reason"; the input has the members person.`},
		{"a member twice", UpdateHold, input(`{"person": %q, "person": %[1]q}`, personID), `The member "person" is there twice.`},
		{"a number", UpdateHold, input(`{"person": 7}`), `The member "person" must be a string.`},
		{"null", UpdateCancel, input(`{"person": %q, "reason": null}`, personID), `The member "reason" must be a string.`},
		{"an object", UpdateCancel, input(`{"reason": {}}`), `The member "reason" must be a string.`},
		{"another decision", UpdateReview, input(`{"decision": "maybe", "comment": "", "person": %q}`, personID), `The decision is "approve" or "send_back".`},
		{"an e-mail address", UpdateHold, input(`{"person": "ann@example.com"}`), `The person is the identity id of a person, which begins with "idn_".`},
		{"another id", UpdateHold, input(`{"person": %q}`, recordID), `The person is the identity id of a person, which begins with "idn_".`},
		{"not of a work order", UpdateResolve, input(`{"person": %q}`, personID), "unknown update resolve"},
	}
	h := newWorkOrderHarness(t)
	results := make([]*updateResult, len(tests))
	for i, tt := range tests {
		results[i] = h.update("1h", tt.update, tt.input)
	}
	h.write("3h", func() { h.setStatus(models.StatusComplete) })
	h.run()
	for i, tt := range tests {
		if got := results[i].outcome; !strings.HasPrefix(got, "rejected: "+tt.want) {
			t.Errorf("%s: %q, want it rejected with %q", tt.name, got, tt.want)
		}
	}
	if len(h.actions) != 0 {
		t.Errorf("the actions are %+v, want none", h.actions)
	}
	h.wantClosed("3h")
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
