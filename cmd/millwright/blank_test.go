package main

import (
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// Invisible text is blank in commands too: a required argument is rejected, others count as left
// out.
func TestBlankTextInCommands(t *testing.T) {
	h := newHarness(t)
	const blank = "\u200b" // a zero-width space; models knows all kinds
	h.reject(map[string]string{
		"integrations create --organization acme --scope work_orders:read --name " + blank:                "Enter a name.",
		"integrations rename " + h.ID("erp") + " --name " + blank:                                         "Enter a name.",
		"people invite " + blank + " --organization acme":                                                 "Enter an e-mail address",
		"work-orders review " + h.inReview() + " --send-back --comment " + blank + " --as " + h.ID("cat"): "requires a comment",
	})
	approved := h.inReview()
	h.json("work-orders", "review", approved, "--approve", "--comment", blank, "--as", h.ID("cat"))
	if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM history WHERE record_id = $1 AND changes ? 'comment'`, approved); n != 0 {
		t.Error("a blank comment is in the history")
	}
	h.json("webhooks", "disable", h.ID("erp_hook"), "--reason", blank)
	if reason := servicetest.Value[string](h.Fixture, `SELECT off_reason FROM webhooks WHERE id = $1`, h.ID("erp_hook")); !strings.HasPrefix(reason, "Turned off by ") {
		t.Errorf("turned off for a blank reason: %q", reason)
	}
	h.json("people", "invite", "nia@acme.example.com", "--organization", "acme", "--name", blank)
	if name := servicetest.Value[string](h.Fixture, `SELECT i.name FROM identities i JOIN people p ON p.id = i.id WHERE p.email = 'nia@acme.example.com'`); name != "nia" {
		t.Errorf("a person invited with a blank name is named %q", name)
	}
	if all, found := h.table("people", "list", "--organization", "acme"), h.table("people", "list", "--organization", "acme", "--search", blank); len(found) != len(all) {
		t.Errorf("a blank search finds %q, not all people", found)
	}
}
