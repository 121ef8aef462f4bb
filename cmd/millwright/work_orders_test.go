package main

import (
	"strings"
	"testing"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// The other commands of work orders print what a review prints.
func TestReviewCommand(t *testing.T) {
	h := newHarness(t)
	id, other := h.inReview(), h.inReview()
	cat := " --as " + h.ID("cat")
	h.reject(map[string]string{
		"work-orders review " + id + cat:                                                       "either --approve or --send-back",
		"work-orders review " + id + " --approve --send-back" + cat:                            "either --approve or --send-back",
		"work-orders review " + id + " --approve=false" + cat:                                  "either --approve or --send-back",
		"work-orders review " + id + " --approve":                                              `"as"`,
		"work-orders review " + id + " --approve --as " + h.ID("ann"):                          "Only a consultant",
		"work-orders review " + id + " --approve --comment " + strings.Repeat("x", 1001) + cat: "at most 1,000 characters",
		"work-orders hold wo_00000000000000000000000000" + cat:                                 "there is no work order wo_00000000000000000000000000 that the person may read",
		"work-orders hold " + id + " --as " + h.ID("zed"):                                      "there is no work order " + id + " that the person may read",
		"work-orders hold " + id + " --as " + h.ID("ann"):                                      `"Sent to the consultant's review" does not allow this`,
	})
	if status := h.status("work_orders", id); status != "sent_to_inspection" {
		t.Errorf("the status is %s", status)
	}
	record := h.json("work-orders", "review", id, "--send-back", "--comment", "Loose", "--as", "CAT@acme.example.com").(map[string]any)
	if record["id"] != id || record["status"].(map[string]any)["code"] != "back_from_inspection" || h.status("work_orders", id) != "back_from_inspection" {
		t.Errorf("sent back: %v", record)
	}
	comment := servicetest.Value[string](h.Fixture, `SELECT changes -> 'comment' ->> 'to' FROM history WHERE record_id = $1 AND action = 'work_order.sent_back'`, id)
	if comment != "Loose" {
		t.Errorf("the comment is %q", comment)
	}
	out, err := h.run("work-orders", "review", other, "--approve", "--as", h.ID("cat"))
	if err != nil || !strings.Contains(out, other) || !strings.Contains(out, "Complete") || strings.Contains(out, "Replace\tfilter") {
		t.Errorf("approved: %q, %v", out, err)
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
	record := h.json("issues", "resolve", id, "--as", "ann@acme.example.com").(map[string]any)
	if record["id"] != id || record["resolved_at"] == nil || h.status("feedback", id) != "resolved" {
		t.Errorf("resolved: %v", record)
	}
	h.reject(map[string]string{
		"issues resolve " + id + " --as " + h.ID("ann"):    `"Resolved" does not allow this`,
		"issues resolve " + other:                          `"as"`,
		"issues resolve " + other + " --as " + h.ID("bob"): "there is no feedback " + other,
	})
	if status := h.status("feedback", other); status != "open" {
		t.Errorf("the feedback whose resolution failed is %s", status)
	}
	if out, err := h.run("issues", "resolve", other, "--as", h.ID("ann")); err != nil || !strings.Contains(out, "Resolved") || !strings.Contains(out, "It rattles") {
		t.Errorf("for people: %q, %v", out, err)
	}
}
