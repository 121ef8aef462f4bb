package main

import (
	"encoding/json"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

func TestWorkOrderCommands(t *testing.T) {
	h := newHarness(t)
	id := h.inReview()
	for _, step := range []struct {
		name   string
		args   []string
		status string
	}{
		{"send back, by e-mail address", []string{"review", id, "--send-back", "--comment", "Loose", "--as", "CAT@acme.example.com"}, "back_from_inspection"},
		{"hold", []string{"hold", id, "--as", h.ID("ann")}, "on_hold"},
		{"resume", []string{"resume", id, "--as", "ann@acme.example.com"}, "back_from_inspection"},
	} {
		out, err := h.run(append([]string{"work-orders"}, append(step.args, "--json")...)...)
		var record models.WorkOrderRecord
		if err == nil {
			err = json.Unmarshal([]byte(out), &record)
		}
		if err != nil || record.ID != id || record.Status.Code != step.status || h.status("work_orders", id) != step.status {
			t.Errorf("%s: %s, %v", step.name, out, err)
		}
	}
	comment := servicetest.Value[string](h.Fixture, `SELECT changes -> 'comment' ->> 'to' FROM history WHERE record_id = $1 AND action = 'work_order.sent_back'`, id)
	if comment != "Loose" {
		t.Errorf("the comment is %q", comment)
	}
	other := h.inReview()
	out, err := h.run("work-orders", "review", other, "--approve", "--as", h.ID("cat"))
	if err != nil || !strings.Contains(out, other) || !strings.Contains(out, "Complete") || strings.Contains(out, "Replace\tfilter") {
		t.Errorf("approved: %q, %v", out, err)
	}
}

// An error names the rule or the value; the work order stays as it was.
func TestWorkOrderCommandsThatFail(t *testing.T) {
	h := newHarness(t)
	id, own := h.inReview(), h.inReview()
	h.Exec(`UPDATE work_orders SET completed_by = $2 WHERE id = $1`, own, h.ID("cat"))
	for _, test := range []struct {
		name string
		args []string
		says string
	}{
		{"neither way", []string{"review", id, "--as", h.ID("cat")}, "either --approve or --send-back"},
		{"both ways", []string{"review", id, "--approve", "--send-back", "--as", h.ID("cat")}, "either --approve or --send-back"},
		{"--approve=false", []string{"review", id, "--approve=false", "--as", h.ID("cat")}, "either --approve or --send-back"},
		{"no person", []string{"review", id, "--approve"}, `"as"`},
		{"an unknown person", []string{"review", id, "--approve", "--as", "nemo@acme.example.com"}, "--as: there is no person"},
		{"an integration", []string{"review", id, "--approve", "--as", h.ID("erp")}, "--as: there is no person"},
		{"an empty person", []string{"hold", id, "--as", ""}, "--as: there is no person"},
		{"no consultant", []string{"review", id, "--approve", "--as", h.ID("ann")}, "Only a consultant"},
		{"who completed it", []string{"review", own, "--approve", "--as", h.ID("cat")}, "Who completed a work order does not review it"},
		{"too long a comment", []string{"review", id, "--approve", "--comment", strings.Repeat("x", 1001), "--as", h.ID("cat")}, "at most 1,000 characters"},
		{"an unknown work order", []string{"hold", "wo_00000000000000000000000000", "--as", h.ID("ann")}, "there is no work order wo_00000000000000000000000000 that the person may read"},
		{"one that may not be read", []string{"hold", id, "--as", h.ID("zed")}, "there is no work order " + id + " that the person may read"},
		{"a status that does not allow it", []string{"hold", id, "--as", h.ID("ann")}, `"Sent to the consultant's review" does not allow this`},
		{"no work order", []string{"hold", "--as", h.ID("ann")}, "accepts 1 arg"},
		{"an unknown command", []string{"paint"}, `unknown command "paint"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := h.run(append([]string{"work-orders"}, test.args...)...)
			if err == nil || !strings.Contains(err.Error(), test.says) || printed(out) {
				t.Errorf("it prints %q and says %v, want %s", out, err, test.says)
			}
			for _, waiting := range []string{id, own} {
				if status := h.status("work_orders", waiting); status != "sent_to_inspection" {
					t.Errorf("the status is %s", status)
				}
			}
		})
	}
}

func TestIssuesResolve(t *testing.T) {
	h := newHarness(t)
	create := func() string {
		created, err := h.Records.CreateFeedback(t.Context(), h.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: h.ID("ahu1"), Subject: "It rattles"})
		if err != nil {
			t.Fatal(err)
		}
		return created.RecordID
	}
	id, other := create(), create()
	out, err := h.run("issues", "resolve", id, "--as", "ann@acme.example.com", "--json")
	var record models.FeedbackRecord
	if err == nil {
		err = json.Unmarshal([]byte(out), &record)
	}
	if err != nil || record.ID != id || record.ResolvedAt == nil || h.status("feedback", id) != "resolved" {
		t.Errorf("resolved: %s, %v", out, err)
	}
	for says, args := range map[string][]string{
		`"Resolved" does not allow this`: {id, "--as", h.ID("ann")},
		`"as"`:                           {other},
		"there is no feedback " + other:  {other, "--as", h.ID("bob")},
		"there is no feedback iss_x":     {"iss_x", "--as", h.ID("ann")},
	} {
		if out, err := h.run(append([]string{"issues", "resolve"}, args...)...); err == nil || !strings.Contains(err.Error(), says) || printed(out) {
			t.Errorf("%v prints %q and says %v", args, out, err)
		}
	}
	if status := h.status("feedback", other); status != "open" {
		t.Errorf("the feedback whose resolution failed is %s", status)
	}
	if out, err := h.run("issues", "resolve", other, "--as", h.ID("ann")); err != nil || !strings.Contains(out, "Resolved") || !strings.Contains(out, "It rattles") {
		t.Errorf("for people: %q, %v", out, err)
	}
}
