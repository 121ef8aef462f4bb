package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"millwright/service/servicetest"
	"millwright/service/store"
)

// integration runs `millwright integrations` and returns the integration it prints.
func integration(h harness, args ...string) map[string]any {
	h.t.Helper()
	return h.json(append([]string{"integrations"}, args...)...).(map[string]any)
}

func TestIntegrationsCommands(t *testing.T) {
	h := newHarness(t)
	acme, reader := h.Acme.OrganizationID, h.ID("reader")
	for _, step := range []struct {
		name   string
		args   []string
		field  string
		value  any
		logged string
	}{
		{"turn-off", []string{"turn-off", reader}, "enabled", false, "Millwright integration.turned_off"},
		{"turn-on, as a person by id", []string{"turn-on", reader, "--as", h.ID("ann")}, "enabled", true, "Ann Field (operator) integration.turned_on"},
		{"disable", []string{"disable", reader}, "disabled_by_service", true, "Millwright integration.disabled_by_service"},
		{"enable", []string{"enable", reader}, "disabled_by_service", false, "Millwright integration.enabled_by_service"},
		{"rename, as a person by e-mail address", []string{"rename", reader, "--name", "Renamed", "--as", "ANN@acme.example.com"}, "name", "Renamed", "Ann Field (operator) integration.renamed"},
		{"renew-secret", []string{"renew-secret", reader}, "client_id", "cli_reader", "Millwright integration.secret_renewed"},
		{"scopes", []string{"scopes", reader, "--scope", "people:read,work_orders:read", "--scope", "inventory:read"}, "id", reader, "Millwright integration.scopes_changed"},
		{"owners", []string{"owners", reader, "--owner", h.ID("ann"), "--as", h.ID("ann")}, "id", reader, "Ann Field (operator) integration.owners_changed"},
		{"delete", []string{"delete", reader, "--as", h.ID("ann")}, "id", reader, "Ann Field (operator) integration.deleted"},
	} {
		record := integration(h, step.args...)
		if record[step.field] != step.value {
			t.Errorf("%s: %s is %v", step.name, step.field, record[step.field])
		}
		if log := h.lastLog(reader); log != step.logged {
			t.Errorf("%s is logged as %q, want %q", step.name, log, step.logged)
		}
		_, secretShown := record["client_secret"]
		delete(record, "client_secret")
		fields := strings.Join(slices.Sorted(maps.Keys(record)), " ")
		if fields != "client_id created_at disabled_by_service enabled id name organization_definition_id organization_id owners scopes" || secretShown != (step.name == "renew-secret") {
			t.Errorf("%s shows %s, a secret: %t", step.name, fields, secretShown)
		}
	}
	if got := servicetest.Value[string](h.Fixture, `SELECT array_to_string(scopes, ' ') FROM integrations WHERE id = $1`, reader); got != "inventory:read work_orders:read people:read" {
		t.Errorf("the scopes are %q", got)
	}

	created := integration(h, "create", "--organization", acme, "--name", "New", "--scope", "work_orders:read", "--definition", h.ID("org_incoming"), "--as", h.ID("ann"))
	secret, _ := created["client_secret"].(string)
	if _, err := h.Access.IssueToken(t.Context(), created["client_id"].(string), secret, nil); err != nil || !slices.Equal(created["owners"].([]any), []any{h.ID("ann")}) {
		t.Errorf("created %v: %v", created, err)
	}
	if created = integration(h, "create", "--organization", acme, "--name", "Ours", "--scope", "work_orders:read"); len(created["owners"].([]any)) != 0 {
		t.Errorf("an operator owns %v", created)
	}

	all, ours := h.json("integrations", "list").([]any), h.json("integrations", "list", "--organization", acme).([]any)
	if len(all) != 8 || len(ours) != 6 || strings.Contains(strings.ToLower(toText(t, all)), "secret") {
		t.Errorf("listed %d and %d: %v", len(all), len(ours), all)
	}
	h.Exec(`UPDATE integrations SET deleted_at = now()`)
	if out, err := h.run("integrations", "list", "--json"); err != nil || out != "[]\n" {
		t.Errorf("an empty list is %q, %v", out, err)
	}
}

func toText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestIntegrationsTables(t *testing.T) {
	h := newHarness(t)
	h.Exec(`UPDATE identities SET name = E'Rea\tder\x1b[2J' WHERE id = $1`, h.ID("reader"))
	if _, err := h.Integrations.DisableIntegration(t.Context(), store.Operator(), h.ID("erp")); err != nil {
		t.Fatal(err)
	}
	out, err := h.run("integrations", "list", "--organization", h.Acme.OrganizationID)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(out, "Rea�der�[2J") ||
		!strings.Contains(out, "disabled by the service") || strings.ContainsAny(out, "\t\x1b") {
		t.Errorf("the table is\n%q", out)
	}
	out, err = h.run("integrations", "renew-secret", h.ID("reader"))
	if err != nil || !strings.Contains(out, "client secret") || !strings.Contains(out, "mwsec_") || strings.ContainsAny(out, "\t\x1b") {
		t.Errorf("renewing shows %v\n%s", err, out)
	}
	if out, err = h.run("integrations", "turn-off", h.ID("reader")); err != nil || strings.Contains(out, "secret") || !strings.Contains(out, "off") {
		t.Errorf("turning off shows %v\n%s", err, out)
	}
}

func TestIntegrationsCommandsThatFail(t *testing.T) {
	h := newHarness(t)
	reader := h.ID("reader")
	const nothing = "idn_00000000000000000000000001"
	h.reject(map[string]string{
		"integrations disable " + nothing:                                                      "there is no integration " + nothing,
		"integrations turn-off " + h.ID("dispatch") + " --as " + h.ID("ann"):                   "there is no integration " + h.ID("dispatch") + " in the person's organization",
		"integrations renew-secret " + h.ID("ann"):                                             "there is no integration " + h.ID("ann"),
		"integrations list --organization " + nothing:                                          "there is no organization " + nothing,
		"integrations create --organization " + nothing + " --name x --scope people:read":      "there is no organization " + nothing,
		"integrations turn-off " + reader + " --as ''":                                         "--as: there is no person",
		"integrations turn-off " + reader + " --as " + h.ID("erp"):                             "--as: there is no person",
		"integrations turn-off " + reader + " --as " + h.ID("bob"):                             "permission",
		"integrations scopes " + reader:                                                        `"scope"`,
		"integrations scopes " + reader + " --scope ''":                                        "at least one scope",
		"integrations create --organization acme --name x --scope people:read --definition ''": "no such role",
		"integrations create --name x --scope people:read":                                     `"organization"`,
		"integrations delete":                                                                  "1 arg",
		"integrations delete " + reader + " " + reader:                                         "1 arg",
		"integrations disable " + reader + " --as " + h.ID("ann"):                              "unknown flag",
	})
	if _, err := h.run("integrations", "turn-off", reader, "--as", "nemo@acme.example.com"); err == nil || strings.Contains(err.Error(), "@") {
		t.Errorf("an unknown person's address is printed: %v", err)
	}
	t.Setenv("DATABASE_URL", "postgres://nemo@127.0.0.1:1/nothing")
	h.reject(map[string]string{"integrations disable " + reader: "does not respond"})
}
