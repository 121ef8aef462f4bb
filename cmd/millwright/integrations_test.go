package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"millwright/service"
	"millwright/service/servicetest"
)

// shell runs the program's commands on the fixture of a test.
type shell struct {
	*servicetest.Fixture
	t *testing.T
}

func newShell(t *testing.T) shell {
	t.Helper()
	f := servicetest.New(t)
	t.Setenv("DATABASE_URL", f.Pool.Config().ConnString())
	t.Setenv("TOKEN_SIGNING_KEYS", servicetest.TokenKeys)
	t.Setenv("SECRET_SEALING_KEYS", servicetest.SealingKeys)
	return shell{f, t}
}

// run runs `millwright integrations` with the arguments.
func (s shell) run(args ...string) (out string, err error) {
	s.t.Helper()
	cmd := integrationsCommand()
	var printed bytes.Buffer
	cmd.SetOut(&printed)
	cmd.SetErr(&printed)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true // as the program's root does
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(s.t.Context())
	return printed.String(), err
}

// json runs a command that must work with --json.
func (s shell) json(args ...string) any {
	s.t.Helper()
	out, err := s.run(append(args, "--json")...)
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	var value any
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		s.t.Fatalf("%v: %v in %s", args, err, out)
	}
	return value
}

func (s shell) one(args ...string) map[string]any {
	s.t.Helper()
	return s.json(args...).(map[string]any)
}

func (s shell) lastLog(id string) string {
	return servicetest.Value[string](s.Fixture, `SELECT actor_name || ' ' || action FROM log_records WHERE record_id = $1 ORDER BY id DESC LIMIT 1`, id)
}

func TestIntegrationsCommands(t *testing.T) {
	s := newShell(t)
	acme, reader := s.Acme.OrganizationID, s.ID("reader")
	for _, step := range []struct {
		name   string
		args   []string
		field  string
		value  any
		logged string
	}{
		{"turn-off", []string{"turn-off", reader}, "enabled", false, "Millwright integration.turned_off"},
		{"turn-on, as a person by id", []string{"turn-on", reader, "--as", s.ID("ann")}, "enabled", true, "Ann Field integration.turned_on"},
		{"disable", []string{"disable", reader}, "disabled_by_service", true, "Millwright integration.disabled_by_service"},
		{"enable", []string{"enable", reader}, "disabled_by_service", false, "Millwright integration.enabled_by_service"},
		{"rename, as a person by e-mail address", []string{"rename", reader, "--name", "Renamed", "--as", "ANN@acme.example.com"}, "name", "Renamed", "Ann Field integration.renamed"},
		{"renew-secret", []string{"renew-secret", reader}, "client_id", "cli_reader", "Millwright integration.secret_renewed"},
		{"scopes", []string{"scopes", reader, "--scope", "people:read,work_orders:read", "--scope", "inventory:read"}, "id", reader, "Millwright integration.scopes_changed"},
		{"delete", []string{"delete", reader, "--as", s.ID("ann")}, "id", reader, "Ann Field integration.deleted"},
	} {
		record := s.one(step.args...)
		if record[step.field] != step.value {
			t.Errorf("%s: %s is %v", step.name, step.field, record[step.field])
		}
		if log := s.lastLog(reader); log != step.logged {
			t.Errorf("%s is logged as %q, want %q", step.name, log, step.logged)
		}
		_, told := record["client_secret"]
		delete(record, "client_secret")
		fields := strings.Join(slices.Sorted(maps.Keys(record)), " ")
		if fields != "client_id created_at disabled_by_service enabled id name organization_id owner_id scopes" || told != (step.name == "renew-secret") {
			t.Errorf("%s shows %s, a secret: %t", step.name, fields, told)
		}
	}
	if got := servicetest.Value[string](s.Fixture, `SELECT array_to_string(scopes, ' ') FROM integrations WHERE id = $1`, reader); got != "inventory:read work_orders:read people:read" {
		t.Errorf("the scopes are %q", got)
	}

	made := s.one("create", "--organization", acme, "--name", "New", "--scope", "work_orders:read", "--definition", s.ID("org_incoming"), "--as", s.ID("ann"))
	secret, _ := made["client_secret"].(string)
	if _, err := s.IssueToken(t.Context(), made["client_id"].(string), secret, nil); err != nil || made["owner_id"] != s.ID("ann") {
		t.Errorf("made %v: %v", made, err)
	}
	if made = s.one("create", "--organization", acme, "--name", "Ours", "--scope", "work_orders:read"); made["owner_id"] != nil {
		t.Errorf("an operator owns %v", made)
	}

	all, ours := s.json("list").([]any), s.json("list", "--organization", acme).([]any)
	if len(all) != 8 || len(ours) != 6 || strings.Contains(strings.ToLower(toText(t, all)), "secret") {
		t.Errorf("listed %d and %d: %v", len(all), len(ours), all)
	}
	s.Exec(`UPDATE integrations SET deleted_at = now()`)
	if out, err := s.run("list", "--json"); err != nil || out != "[]\n" {
		t.Errorf("a list of none is %q, %v", out, err)
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
	s := newShell(t)
	s.Exec(`UPDATE identities SET name = E'Rea\tder\x1b[2J' WHERE id = $1`, s.ID("reader"))
	if _, err := s.DisableIntegration(t.Context(), service.Operator(), s.ID("erp")); err != nil {
		t.Fatal(err)
	}
	out, err := s.run("list", "--organization", s.Acme.OrganizationID)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "ID ") || !strings.Contains(out, "Rea�der�[2J") ||
		!strings.Contains(out, "disabled by the service") || strings.ContainsAny(out, "\t\x1b") {
		t.Errorf("the table is\n%q", out)
	}
	out, err = s.run("renew-secret", s.ID("reader"))
	if err != nil || !strings.Contains(out, "client secret") || !strings.Contains(out, "mwsec_") || strings.ContainsAny(out, "\t\x1b") {
		t.Errorf("renewing shows %v\n%s", err, out)
	}
	if out, err = s.run("turn-off", s.ID("reader")); err != nil || strings.Contains(out, "secret") || !strings.Contains(out, "off") {
		t.Errorf("turning off shows %v\n%s", err, out)
	}
}

func TestIntegrationsCommandsThatFail(t *testing.T) {
	s := newShell(t)
	acme, reader := s.Acme.OrganizationID, s.ID("reader")
	const nothing = "idn_00000000000000000000000001"
	s.Exec(`UPDATE plans SET integrations = 5 WHERE organization_id = $1`, acme)
	before := servicetest.Value[string](s.Fixture, `SELECT string_agg(i::text, ' ' ORDER BY id) || (SELECT count(*) FROM log_records) FROM integrations i`)
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"an unknown integration":           {[]string{"disable", nothing}, "there is no integration " + nothing},
		"another organization's":           {[]string{"turn-off", s.ID("dispatch"), "--as", s.ID("ann")}, "there is no integration " + s.ID("dispatch") + " in the person's organization"},
		"a person for an integration":      {[]string{"renew-secret", s.ID("ann")}, "there is no integration " + s.ID("ann")},
		"a list of no organization":        {[]string{"list", "--organization", nothing}, "there is no organization " + nothing},
		"a creation in no organization":    {[]string{"create", "--organization", nothing, "--name", "x", "--scope", "people:read"}, "there is no organization " + nothing},
		"a person nobody knows":            {[]string{"turn-off", reader, "--as", "nobody@acme.example.com"}, "--as: there is no person"},
		"a person left empty":              {[]string{"turn-off", reader, "--as", ""}, "--as: there is no person"},
		"a person without the permission":  {[]string{"turn-off", reader, "--as", s.ID("bob")}, "permission"},
		"an unknown scope":                 {[]string{"scopes", reader, "--scope", "root"}, `There is no scope "root".`},
		"no scope":                         {[]string{"scopes", reader}, `"scope"`},
		"an empty scope":                   {[]string{"scopes", reader, "--scope", ""}, "at least one scope"},
		"an empty name":                    {[]string{"rename", reader, "--name", ""}, "has a name"},
		"one more than the plan has":       {[]string{"create", "--organization", acme, "--name", "x", "--scope", "people:read"}, "no more than 5"},
		"an unknown definition":            {[]string{"create", "--organization", acme, "--name", "x", "--scope", "people:read", "--definition", ""}, "no such organization permission definition"},
		"no organization":                  {[]string{"create", "--name", "x", "--scope", "people:read"}, `"organization"`},
		"no id":                            {[]string{"delete"}, "1 arg"},
		"two ids":                          {[]string{"delete", reader, reader}, "1 arg"},
		"a command there is none of":       {[]string{"destroy", reader}, "unknown command"},
		"disabling as a person":            {[]string{"disable", reader, "--as", s.ID("ann")}, "unknown flag"},
		"an integration acting as another": {[]string{"turn-off", reader, "--as", s.ID("erp")}, "--as: there is no person"},
	} {
		out, err := s.run(test.args...)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: the error is %v, want one that says %s", name, err, test.says)
		}
		if out != "" || err != nil && strings.Contains(err.Error(), "@") {
			t.Errorf("%s prints %q and says %v", name, out, err)
		}
	}
	after := servicetest.Value[string](s.Fixture, `SELECT string_agg(i::text, ' ' ORDER BY id) || (SELECT count(*) FROM log_records) FROM integrations i`)
	if after != before {
		t.Errorf("what failed changed something:\n%s\nbefore\n%s", after, before)
	}
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing")
	if _, err := s.run("disable", reader); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("without a database the error is %v", err)
	}
}
