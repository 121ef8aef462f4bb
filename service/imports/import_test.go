package imports_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/service/imports"
	"millwright/service/servicetest"
)

func TestImportAgainChangesNothing(t *testing.T) {
	f := servicetest.New(t)
	first := importFile(t, f, servicetest.Small)
	erp := first.Integrations["erp"]
	if erp.ClientID == "" || !strings.HasPrefix(erp.ClientSecret, "mwsec_") || !strings.HasPrefix(erp.Webhooks["hook"].Secret, "whsec_") {
		t.Errorf("the first import does not return its secrets: %+v", erp)
	}
	snapshot := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT max(changed_xid::text::bigint) FROM identities),
			(SELECT max(changed_xid::text::bigint) FROM inventory_nodes), (SELECT max(changed_xid::text::bigint) FROM forms),
			(SELECT count(*) FROM import_keys), (SELECT sum(token_epoch) FROM integrations), (SELECT sum(access_epoch) FROM integrations))`)
	}
	before := snapshot()
	f.Clock.Advance(1)
	second := importFile(t, f, servicetest.Small)
	servicetest.Expect(t, "what the second import left", snapshot(), before)
	again := second.Integrations["erp"]
	if again.ClientSecret != "" || again.Webhooks["hook"].Secret != "" {
		t.Error("the second import returns secrets")
	}
	if again.ClientID != erp.ClientID || second.IDs["below"] != first.IDs["below"] || second.OrganizationID != first.OrganizationID {
		t.Error("the second import has other ids")
	}
}

func TestImportUpdatesWhatTheFileSays(t *testing.T) {
	f := servicetest.New(t)
	first := importFile(t, f, servicetest.Small)
	importFile(t, f, `
organization: {key: tiny, plan: {api: false}}
people: [{key: ann, phone: "+12025550100"}]
inventory: [{key: top, kind: location, children: [{key: middle, kind: location, name: Middle, children: [{key: below, kind: system}]}]}]
`)
	for what, sql := range map[string]string{
		"the name stayed":             `SELECT count(*) FROM identities WHERE id = $1 AND name = 'Ann'`,
		"the phone came":              `SELECT count(*) FROM people WHERE id = $1 AND phone = '+12025550100' AND email = 'ann@tiny.example.com'`,
		"the plan lost the API alone": `SELECT count(*) FROM plans JOIN people USING (organization_id) WHERE people.id = $1 AND NOT api AND calls_per_minute = 10`,
		"its tokens are void":         `SELECT count(*) FROM integrations JOIN people USING (organization_id) WHERE people.id = $1 AND token_epoch = 2`,
	} {
		servicetest.Expect(t, what, servicetest.Value[int](f, sql, first.IDs["ann"]), 1)
	}
	depth := servicetest.Value[int](f, `SELECT depth FROM inventory_closure WHERE node_id = $1 AND ancestor_id = $2`, first.IDs["below"], first.IDs["top"])
	servicetest.Expect(t, "the depth of the moved node below the top", depth, 2)
}

func TestImportRepositionsARecordWhenItsPartsChange(t *testing.T) {
	f := servicetest.New(t)
	file := func(label, phone string) {
		t.Helper()
		f.Clock.Advance(time.Second)
		importFile(t, f, servicetest.Small+`
forms: [{key: form, name: Form, questions: [{key: q, label: "`+label+`", type: single_choice, options: [{key: o, label: "`+label+`"}]}]}]
`)
		importFile(t, f, `{organization: {key: tiny}, people: [{key: ann, phone: "`+phone+`"}]}`)
	}
	positions := func() string {
		return servicetest.Value[string](f, `SELECT concat_ws(' ', (SELECT changed_xid FROM forms WHERE name = 'Form'),
			(SELECT changed_xid FROM identities WHERE name = 'Ann'), (SELECT changed_at FROM forms WHERE name = 'Form'))`)
	}
	file("first", "+1")
	first := positions()
	file("first", "+1")
	servicetest.Expect(t, "the positions after the same file again", positions(), first)
	file("second", "+2")
	second := positions()
	for i, what := range []string{"form", "person"} {
		if strings.Fields(first)[i] == strings.Fields(second)[i] {
			t.Errorf("the %s was not repositioned with its part", what)
		}
	}
}

// Hashing many passwords takes longer than Postgres lets a transaction be idle.
func TestImportHashesPasswordsOutsideItsTransaction(t *testing.T) {
	f := servicetest.New(t)
	config := f.Pool.Config()
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "1s"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	servicetest.Must(t, err)
	t.Cleanup(pool.Close)
	f.Pool = pool
	f.Service = f.NewInstance()
	text := strings.Builder{}
	text.WriteString("organization: {key: acme}\npeople:\n")
	for n := range 60 {
		fmt.Fprintf(&text, "  - {key: new%d, name: New, email: new%d@acme.example.com, password: password-%d}\n", n, n, n)
	}
	importFile(t, f, text.String())
	servicetest.Expect(t, "people have a password",
		servicetest.Value[int](f, `SELECT count(*) FROM people WHERE password_hash LIKE '$argon2id$v=19$m=64,t=2,p=1$%'`), 60)
}

func TestImportIsAllOrNothing(t *testing.T) {
	f := servicetest.New(t)
	tests := map[string]struct{ old, new, complaint string }{
		"an unknown field":                {"name: Tiny,", "nam: Tiny,", "unknown field"},
		"not YAML":                        {"organization:", "organization: [", ""},
		"a key twice":                     {"key: below", "key: top", `"top"`},
		"no key":                          {"key: ann, ", "", "no key"},
		"an unknown grant":                {"inventory.read", "inventory.write", `"inventory.write"`},
		"an unknown scope":                {"work_orders:read", "work_orders:all", `"work_orders:all"`},
		"an unknown event":                {"[ping]", "[pong]", `"pong"`},
		"an unknown kind of node":         {"kind: system", "kind: planet", `"planet"`},
		"a node below the wrong kind":     {"kind: location", "kind: equipment", "cannot be"},
		"an assignment to no identity":    {"identity: ann", "identity: ghost", `"ghost"`},
		"an assignment of a node":         {"identity: ann", "identity: below", `"below"`},
		"an assignment on no node":        {"node: top,", "node: moon,", `"moon"`},
		"a malformed e-mail address":      {"ann@tiny.example.com", "ann", "e-mail"},
		"a new person without a name":     {"name: Ann, ", "", "needs a name"},
		"an address that is not allowed":  {"http://127.0.0.1:9/", "http://10.0.0.1/", "webhook"},
		"a missing service company":       {"assignments:", "service_companies: [{key: ghost}]\nassignments:", `"ghost"`},
		"a short client secret":           {"name: ERP,", "name: ERP, client_secret: short,", "20 characters"},
		"more integrations than the plan": {"integrations: 1}", "integrations: 0}", "the plan allows 0 integrations"},
		"six addresses": {`[{key: hook, url: "http://127.0.0.1:9/", events: [ping]}]`,
			`[` + strings.Repeat(`{key: hX, url: "http://127.0.0.1:9/", events: [ping]},`, 6) + `]`, "at most 5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(servicetest.Small, test.old, test.new, 1)
			for _, n := range "123456" {
				text = strings.Replace(text, "hX", "h"+string(n), 1)
			}
			_, err := f.Imports.Run(t.Context(), []byte(text))
			problem, ok := errors.AsType[*imports.FileError](err)
			if !ok || !strings.Contains(problem.Error(), test.complaint) {
				t.Errorf("the error is %v, want one that names %s", err, test.complaint)
			}
		})
	}
	servicetest.Expect(t, "organizations that a rejected import left",
		servicetest.Value[int](f, `SELECT count(*) FROM organizations WHERE key = 'tiny'`), 0)
}

func TestImportOfTheDemo(t *testing.T) {
	f := servicetest.New(t)
	for _, name := range []string{"service-company.yaml", "campus.yaml"} {
		text, err := os.ReadFile("../../demo/" + name)
		servicetest.Must(t, err)
		imported := importFile(t, f, string(text))
		if name != "campus.yaml" {
			continue
		}
		for from, want := range map[string]int{"inventory_nodes": 300, "people": 40, "identities WHERE kind = 'team'": 6, "forms": 8, "integrations": 2} {
			sql := `SELECT count(*) FROM (SELECT * FROM ` + from + `) r WHERE organization_id = $1`
			if n := servicetest.Value[int](f, sql, imported.OrganizationID); n < want {
				t.Errorf("the demo has %d %s, want at least %d", n, from, want)
			}
		}
	}
}
