package main

import (
	"strings"
	"testing"

	"millwright/service/servicetest"
)

func TestPeopleCommands(t *testing.T) {
	h := newHarness(t)
	invited := h.json("people", "invite", "nia@acme.example.com", "--organization", "acme", "--admin").(map[string]any)
	if url, _ := invited["url"].(string); !strings.HasPrefix(url, "http://127.0.0.1:8080/console/invite/") || len(url) < 70 {
		t.Errorf("the link is %q", url)
	}
	id, _ := invited["person_id"].(string)
	if h.lastLog(id) != "Millwright person.invited" {
		t.Errorf("logged: %s", h.lastLog(id))
	}
	again := h.json("people", "invite", "NIA@acme.example.com", "--organization", h.Acme.OrganizationID).(map[string]any)
	if again["person_id"] != id || again["url"] == invited["url"] {
		t.Errorf("the second invitation is %v after %v", again, invited)
	}
	set := h.json("people", "set-password", "nia@acme.example.com", "--generate").(map[string]any)
	if password, _ := set["password"].(string); len(password) < 20 || set["person_id"] != id {
		t.Errorf("set: %v", set)
	}
	if _, err := h.run("people", "invite", "nia@acme.example.com", "--organization", "acme"); err == nil || err.Error() != "A person with this e-mail address can sign in already." {
		t.Errorf("inviting someone with a password: %v", err)
	}
	list := h.json("people", "list", "--organization", "acme", "--search", "nia").([]any)
	if len(list) != 1 || list[0].(map[string]any)["admin"] != true {
		t.Errorf("the list is %v", list)
	}
	if out, err := h.run("people", "list", "--organization", "acme"); err != nil || !strings.Contains(out, "Ann Field") || !strings.Contains(out, "administrator") {
		t.Errorf("the table: %v\n%s", err, out)
	}
	h.json("people", "deactivate", id)
	if h.lastLog(id) != "Millwright person.deactivated" || servicetest.Value[bool](h.Fixture, `SELECT deactivated_at IS NULL FROM people WHERE id = $1`, id) {
		t.Errorf("deactivated: %s", h.lastLog(id))
	}
	if list := h.json("people", "list", "--organization", "acme", "--deactivated").([]any); len(list) != 1 {
		t.Errorf("deactivated people: %v", list)
	}
	h.json("people", "activate", id)
	if changed := h.json("people", "change-email", id, "nia.two@acme.example.com").(map[string]any); changed["email"] != "nia.two@acme.example.com" || h.lastLog(id) != "Millwright person.email_changed" {
		t.Errorf("changed: %v, %s", changed, h.lastLog(id))
	}
}

func TestPeopleCommandsRejectMistakes(t *testing.T) {
	h := newHarness(t)
	h.Exec(`UPDATE people SET email = 'pia@acme.example.com' WHERE id = $1`, h.ID("pia"))
	h.Exec(`UPDATE people SET email = 'Pia@acme.example.com' WHERE id = $1`, h.ID("bob"))
	h.reject(map[string]string{
		"people invite ann@acme --organization nowhere": "there is no organization nowhere; `millwright organizations list` shows their keys",
		"people list": "required flag(s) \"organization\" not set",
		"people deactivate no.one@acme.example.com":                                                            "there is no person no.one@acme.example.com",
		"people deactivate pia@acme.example.com":                                                               "several organizations have a person pia@acme.example.com: name one with --organization",
		"people deactivate dan@acme.example.com --replace-with bob@acme.example.com --as ann@acme.example.com": "--replace-with: there is no person bob@acme.example.com",
		"people deactivate dan@acme.example.com --replace-with eve@acme.example.com":                           "--replace-with requires --as: work orders are assigned with that person's permissions",
		"people deactivate dan@acme.example.com --replace-with " + h.ID("pia") + " --as ann@acme.example.com":  "Choose another active person of the organization.",
		"people invite x@acme.example.com --organization acme --definition x":                                  "There is no such role.",
	})
}
