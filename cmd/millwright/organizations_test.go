package main

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
)

// The emergency way in is a command, which the organization's log and administrators know of.
func TestOpenIDCommands(t *testing.T) {
	h := newHarness(t)
	if _, err := h.run("organizations", "require-openid", "acme"); err == nil || err.Error() != "No OpenID Connect provider is configured." {
		t.Errorf("without a provider: %v", err)
	}
	t.Setenv("OIDC_ISSUER", "https://login.example.com")
	t.Setenv("OIDC_CLIENT_ID", "console")
	if _, err := h.run("organizations", "require-openid", "acme"); err == nil || !strings.Contains(err.Error(), "The administrators have no linked account") {
		t.Errorf("without a linked administrator: %v", err)
	}
	h.Exec(`INSERT INTO openid_accounts (issuer, subject, person_id, created_at) VALUES ('https://login.example.com', 'a', $1, now())`, h.ID("ann"))
	for _, c := range []struct {
		command  string
		required bool
		kind     models.NoticeKind
	}{{"require-openid", true, models.NoticeOpenIDRequired}, {"lift-openid", false, models.NoticeOpenIDLifted}} {
		for range 2 { // the second time has no effect
			if got := h.json("organizations", c.command, "acme").(map[string]any); got["openid_required"] != c.required || got["id"] != h.Acme.OrganizationID {
				t.Errorf("%s: %v", c.command, got)
			}
		}
		if got := h.lastLog(h.Acme.OrganizationID); got != "Millwright "+string(c.kind) {
			t.Errorf("%s is logged as %s", c.command, got)
		}
		if n := servicetest.Value[int](h.Fixture, `SELECT count(*) FROM notices WHERE kind = $1 AND person_id = $2`, string(c.kind), h.ID("ann")); n != 1 {
			t.Errorf("%s: the administrator has %d notices", c.command, n)
		}
		if out, err := h.run("organizations", "list"); err != nil || strings.Contains(out, "no passwords") != c.required {
			t.Errorf("after %s: %v\n%s", c.command, err, out)
		}
	}
	if _, err := h.run("organizations", "lift-openid", "nowhere"); err == nil || !strings.Contains(err.Error(), "there is no organization nowhere") {
		t.Errorf("an unknown organization: %v", err)
	}
}
