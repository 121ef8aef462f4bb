package imports_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/imports"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// compared compares the file and returns its differences as sentences, those that
// conflict with a "! " before them.
func compared(t *testing.T, f *servicetest.Fixture, text string) []string {
	t.Helper()
	comparison, err := f.Imports.Compare(t.Context(), []byte(text))
	servicetest.Must(t, err)
	var sentences []string
	for _, d := range comparison.Differences {
		mark := ""
		if d.Conflict {
			mark = "! "
		}
		sentences = append(sentences, mark+d.String())
	}
	return sentences
}

// importFile imports a file that must succeed.
func importFile(t *testing.T, f *servicetest.Fixture, text string) imports.Result {
	t.Helper()
	result, err := f.Imports.Run(t.Context(), []byte(text))
	servicetest.Must(t, err)
	return result
}

func wantSentences(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s, the differences are\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// What an operator or a person changed since the last import is not undone, unless the
// import overwrites.
func TestImportDoesNotUndoWhatWasChanged(t *testing.T) {
	f := servicetest.New(t)
	first := importFile(t, f, servicetest.Small)
	hook, erp := first.Integrations["erp"].Webhooks["hook"].ID, first.IDs["erp"]
	url := "http://127.0.0.1:9/moved"
	_, err := f.Webhooks.ChangeWebhook(t.Context(), store.Operator(), store.NoKey, hook, webhooks.WebhookChange{URL: &url, Events: []models.EventType{models.EventIssueCreated}})
	servicetest.Must(t, err)
	_, err = f.Integrations.RenameIntegration(t.Context(), store.Operator(), erp, "ERP of the operator")
	servicetest.Must(t, err)
	// A renewed secret is not the file's business, which gives none.
	_, err = f.Integrations.RenewIntegrationSecret(t.Context(), store.Operator(), store.NoKey, erp, 0)
	servicetest.Must(t, err)
	file := strings.Replace(servicetest.Small, "name: Top,", "name: Roof,", 1)
	conflicts := []string{
		`integration "erp", name: "ERP of the operator" is stored, the file has "ERP"`,
		`webhook "hook", url: "http://127.0.0.1:9/moved" is stored, the file has "http://127.0.0.1:9/"`,
		`webhook "hook", events: "issue.created" is stored, the file has "ping"`,
	}
	wantSentences(t, "after the operator's changes", compared(t, f, file),
		`inventory node "top", name: "Top" is stored, the file has "Roof"`, "! "+conflicts[0], "! "+conflicts[1], "! "+conflicts[2])
	_, err = f.Imports.Run(t.Context(), []byte(file))
	rejected, ok := errors.AsType[*imports.ConflictError](err)
	if !ok || len(rejected.Conflicts) != 3 {
		t.Fatalf("the import returns %v", err)
	}
	for _, line := range conflicts {
		if !strings.Contains(rejected.Error(), line) {
			t.Errorf("%q is missing in %s", line, rejected)
		}
	}
	names := `SELECT string_agg(name, ', ' ORDER BY name) FROM (SELECT name FROM inventory_nodes WHERE id = $1 UNION ALL SELECT name FROM identities WHERE id = $2) n`
	servicetest.Expect(t, "the names after the rejected import",
		servicetest.Value[string](f, names, first.IDs["top"], erp), "ERP of the operator, Top")
	servicetest.Must(t, servicetest.ErrorOf(f.Imports.Overwrite(t.Context(), []byte(file))))
	servicetest.Expect(t, "the names after overwriting",
		servicetest.Value[string](f, names, first.IDs["top"], erp), "ERP, Roof")
	wantSentences(t, "after overwriting", compared(t, f, file))
	importFile(t, f, servicetest.Small) // what the last import left may be changed
}

// What the file says too is no conflict, and counts as imported from then on; a field
// that a file leaves out is not imported.
func TestImportOfWhatWasChangedToo(t *testing.T) {
	f := servicetest.New(t)
	erp := importFile(t, f, servicetest.Small).IDs["erp"]
	named := func(name string) string {
		return strings.Replace(servicetest.Small, "name: ERP,", "name: "+name+",", 1)
	}
	rename := func(name string) {
		t.Helper()
		servicetest.Must(t, servicetest.ErrorOf(f.Integrations.RenameIntegration(t.Context(), store.Operator(), erp, name)))
	}
	rename("Both")
	importFile(t, f, named("Both"))
	importFile(t, f, named("Third"))
	rename("Fourth")
	importFile(t, f, "organization: {key: tiny}\nintegrations: [{key: erp}]\n")
	wantSentences(t, "after a file without the name", compared(t, f, named("Third")), `! integration "erp", name: "Fourth" is stored, the file has "Third"`)
	rename("Third")
	importFile(t, f, named("Fifth")) // changed there and back
}

// Entries, assignments and members that somebody removed are not made again unasked.
func TestImportDoesNotMakeAgainWhatWasRemoved(t *testing.T) {
	f := servicetest.New(t)
	text := strings.NewReplacer("people: [", "people: [{key: bob, name: Bob, email: bob@tiny.example.com}, ",
		"inventory:", "teams: [{key: crew, name: Crew, members: [ann, bob]}]\nservice_companies: [{key: polar}]\ninventory:").Replace(servicetest.Small)
	text = strings.Replace(text, "definition: all}]", "definition: all}, {node: top, identity: erp, definition: all}, {node: below, identity: polar, definition: all}]", 1)
	first := importFile(t, f, text)
	wantSentences(t, "the same file", compared(t, f, text))
	f.Exec(`DELETE FROM assignments WHERE node_id = $1 AND identity_id = $2`, first.IDs["top"], first.IDs["ann"])
	f.Exec(`DELETE FROM team_members WHERE team_id = $1 AND member_id = $2`, first.IDs["crew"], first.IDs["bob"])
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1 AND node_id = $2`, f.Polar.OrganizationID, first.IDs["below"])
	f.Exec(`DELETE FROM service_companies WHERE customer_id = $1`, first.OrganizationID)
	_, err := f.Integrations.DeleteIntegration(t.Context(), store.Operator(), store.NoKey, first.IDs["erp"])
	servicetest.Must(t, err)
	wantSentences(t, "after the removals", compared(t, f, text),
		`! team "crew", members: "ann" is stored, the file has "ann, bob"`,
		`! organization "tiny", service company polar: nothing is stored, the file has "polar"`,
		`! integration "erp": it was deleted; the file creates it again`,
		`! webhook "hook": it was deleted; the file creates it again`,
		`! inventory node "top", assignment of ann: nothing is stored, the file has "all"`,
		`inventory node "top", assignment of erp: nothing is stored, the file has "all"`,
		`! inventory node "below", assignment of polar: nothing is stored, the file has "all"`)
	if _, err := f.Imports.Run(t.Context(), []byte(text)); err == nil {
		t.Error("the import makes all of it again")
	}
	servicetest.Must(t, servicetest.ErrorOf(f.Imports.Overwrite(t.Context(), []byte(text))))
	wantSentences(t, "after overwriting", compared(t, f, text))
	// The key of a deleted entry may name something else.
	second := importFile(t, f, text)
	servicetest.Must(t, f.Webhooks.DeleteWebhook(t.Context(), store.Operator(), store.NoKey, second.Integrations["erp"].Webhooks["hook"].ID))
	importFile(t, f, "organization: {key: tiny}\nteams: [{key: hook, name: Hook}]\n")
}

// An assignment that a person gave is not replaced unasked.
func TestImportDoesNotReplaceAssignmentsOfPeople(t *testing.T) {
	f := servicetest.New(t)
	servicetest.Must(t, f.Inventory.Assign(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, f.ID("annex"), f.ID("bob"), f.ID("reading")))
	for identity, want := range map[string]string{
		"bob": `! inventory node "annex", assignment of bob: "reading" is stored, the file has "full"`,
		"eve": `inventory node "annex", assignment of eve: "manager" is stored, the file has "full"`,
		"dan": `inventory node "annex", assignment of dan: nothing is stored, the file has "full"`,
	} {
		wantSentences(t, identity, compared(t, f, "organization: {key: acme}\nassignments: [{node: annex, identity: "+identity+", definition: full}]\n"), want)
	}
}

// Secrets and personal data are neither shown nor stored in clear.
func TestImportHidesSecretsAndPersonalData(t *testing.T) {
	f := servicetest.New(t)
	ann := importFile(t, f, servicetest.Small).IDs["ann"]
	f.Exec(`UPDATE people SET phone = '+358401234567', email = 'private@tiny.example.com' WHERE id = $1`, ann)
	f.Exec(`UPDATE identities SET name = 'Secret Agent' WHERE id = $1`, ann)
	file := strings.NewReplacer("name: Ann,", `name: Ann Longfellow, phone: "+12025550100",`, "name: ERP,", "name: ERP, client_secret: secret-of-the-importer,",
		"events: [ping]", "events: [ping], secret: whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=").Replace(servicetest.Small)
	wantSentences(t, "hidden", compared(t, f, file), `! person "ann": the file has another name`, `! person "ann": the file has another email`,
		`! person "ann": the file has another phone`, `integration "erp": the file has another client_secret`, `webhook "hook": the file has another secret`)
	comparison, err := f.Imports.Compare(t.Context(), []byte(file))
	servicetest.Must(t, err)
	for _, d := range comparison.Differences {
		if shown := fmt.Sprint(*d, d.Stored(), d.Given()); !d.Hidden || strings.ContainsAny(shown, "+@") || strings.Contains(shown, "ecret-of") {
			t.Errorf("shown is %s", shown)
		}
	}
	servicetest.Must(t, servicetest.ErrorOf(f.Imports.Overwrite(t.Context(), []byte(file))))
	left := servicetest.Value[string](f, `SELECT string_agg(d::text, ' ') FROM import_digests d`)
	for _, text := range []string{"Longfellow", "+12025550100", "@tiny", "secret-of-the-importer", "MTIzNDU2"} {
		if strings.Contains(left, text) {
			t.Errorf("the digests contain %q", text)
		}
	}
}

// A sealing key that was rotated is no change of the secret.
func TestImportAfterReseal(t *testing.T) {
	f := servicetest.New(t)
	file := strings.Replace(servicetest.Small, "events: [ping]", "events: [ping], secret: whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=", 1)
	importFile(t, f, file)
	f.Service = f.NewInstance(servicetest.SealedWith(t, servicetest.NewerKey+","+servicetest.SealingKeys))
	if n, err := f.Upkeep.Reseal(t.Context()); err != nil || n == 0 {
		t.Fatalf("resealed %d: %v", n, err)
	}
	wantSentences(t, "after reseal", compared(t, f, file))
}

// Rows of imports before digests were kept may be changed: it is unknown what was changed.
func TestImportOverRowsWithoutDigests(t *testing.T) {
	f := servicetest.New(t)
	erp := importFile(t, f, servicetest.Small).IDs["erp"]
	servicetest.Must(t, servicetest.ErrorOf(f.Integrations.RenameIntegration(t.Context(), store.Operator(), erp, "Changed")))
	f.Exec(`DELETE FROM import_digests`)
	importFile(t, f, servicetest.Small)
	servicetest.Must(t, servicetest.ErrorOf(f.Integrations.RenameIntegration(t.Context(), store.Operator(), erp, "Changed")))
	if _, err := f.Imports.Run(t.Context(), []byte(servicetest.Small)); err == nil {
		t.Error("the first import has left nothing to compare with")
	}
}

// A comparison writes and locks nothing, and finds what an import finds.
func TestCompareImportTouchesNothing(t *testing.T) {
	f := servicetest.New(t)
	comparison, err := f.Imports.Compare(t.Context(), []byte(servicetest.Small))
	if err != nil || comparison.OrganizationID != "" || len(comparison.Differences) != 8 {
		t.Fatalf("the differences of a new organization are %+v, %v", comparison, err)
	}
	servicetest.Expect(t, "organizations that the comparison created",
		servicetest.Value[int](f, `SELECT count(*) FROM organizations WHERE key = 'tiny'`), 0)
	first := importFile(t, f, servicetest.Small)
	gate := servicetest.Begin(t, f)
	for _, lock := range []string{
		`SELECT pg_advisory_xact_lock(hashtextextended('import tiny', 0))`,
		`SELECT FROM plans FOR UPDATE`, `SELECT FROM identities FOR UPDATE`, `SELECT FROM inventory_nodes FOR UPDATE`,
	} {
		servicetest.ExecIn(t, gate, lock)
	}
	comparison, err = f.Imports.Compare(t.Context(), []byte(strings.Replace(servicetest.Small, "name: Top,", "name: Roof,", 1)))
	if err != nil || comparison.OrganizationID != first.OrganizationID || len(comparison.Differences) != 1 {
		t.Errorf("while all is locked, the differences are %+v, %v", comparison, err)
	}
}

// Whatever an import is rejected for, its comparison is too, and both name it in words
// of the file's author.
func TestCompareImportFindsWhatTheDatabaseRejects(t *testing.T) {
	f := servicetest.New(t)
	const form = "forms: [{key: form, name: Form, questions: [{key: q1, label: One, type: text}, {key: q2, label: Two, type: text}]}]\n"
	importFile(t, f, servicetest.Small+form)
	for name, test := range map[string]struct{ text, complaint string }{
		"a long name":                      {strings.Replace(servicetest.Small, "name: Below", "name: "+strings.Repeat("x", 201), 1), "1 to 200 characters"},
		"an empty name":                    {strings.Replace(servicetest.Small, "name: Tiny,", `name: "",`, 1), "1 to 200 characters"},
		"a long description":               {strings.Replace(servicetest.Small, "name: Below", "name: Below, description: "+strings.Repeat("x", 10_001), 1), "0 to 10000 characters"},
		"no calls per minute":              {strings.Replace(servicetest.Small, "calls_per_minute: 10", "calls_per_minute: 0", 1), "1 to 2147483647"},
		"a control character":              {strings.Replace(servicetest.Small, "name: Below", `name: "Be\0low"`, 1), "line 6: A string must be UTF-8"},
		"binary text":                      {strings.Replace(servicetest.Small, "name: Below", `name: !!binary AAA=`, 1), "line 6: A string must be UTF-8"},
		"another's e-mail address":         {"organization: {key: tiny}\npeople: [{key: bea, name: Bea, email: ANN@tiny.example.com}]\n", `person "bea": another person has the e-mail address`},
		"one of two in the file":           {"organization: {key: tiny}\npeople: [{key: bea, name: Bea, email: b@x.example}, {key: cy, name: Cy, email: b@x.example}]\n", `person "bea"`},
		"another's client id":              {strings.Replace(servicetest.Small, "name: ERP,", "name: ERP, client_id: cli_erp,", 1), "another integration has the client_id"},
		"no service company":               {strings.Replace(servicetest.Small, "identity: ann,", "identity: polar,", 1), "not a service company"},
		"some of the questions":            {"organization: {key: tiny}\nforms: [{key: form, questions: [{key: q2, type: text}]}]\n", `form "form": the file must list all`},
		"too many integrations":            {"organization: {key: tiny}\nintegrations: [{key: new, name: New, scopes: []}]\n", "the plan allows 1 integrations"},
		"a password beyond 200 characters": {"organization: {key: tiny}\npeople: [{key: bea, name: Bea, email: b@x.example, password: " + strings.Repeat("ä", 201) + "}]\n", "more than 200 characters"},
		"an assignment on sub-equipment": {"organization: {key: tiny}\ninventory: [{key: top, kind: location, children: [{key: unit, kind: equipment, name: Unit, children: [{key: part, kind: sub_equipment, name: Part}]}]}]\nassignments:\n  - {node: unit, identity: ann, definition: all}\n  - {node: part, identity: ann, definition: all}\n",
			`line 5: assignment of "ann" on "part": Permissions are given on a location, a system or a piece of equipment, not on sub-equipment`},
		"a node of another kind":         {strings.Replace(servicetest.Small, "key: below, kind: system", "key: below, kind: location", 1), "cannot change its kind"},
		"the key of a person for a team": {"organization: {key: tiny}\nteams: [{key: ann, name: Crew}]\n", `the key "ann" names a team; in an earlier import it named a person`},
		"a client id twice":              {"organization: {key: tiny, plan: {integrations: 3}}\nintegrations: [{key: a, name: A, client_id: one}, {key: b, name: B, client_id: one}]\n", `integration "b": another integration has the client_id`},
		"a malformed secret":             {strings.Replace(servicetest.Small, "key: hook,", "key: hook, secret: whsec_AAAA,", 1), "at least 24 bytes"},
		"an empty name of a plan":        {strings.Replace(servicetest.Small, "name: free", `name: ""`, 1), "plan.name is blank"},
		"a question of an unknown type":  {"organization: {key: tiny}\n" + strings.Replace(form, "type: text", "type: essay", 1), `not "essay"`},
		"an unknown grant of people":     {"organization: {key: tiny}\norganization_permission_definitions: [{key: d, name: D, grants: [everything]}]\n", `there is no grant "everything"`},
		"permissions of people below":    {"organization: {key: tiny}\norganization_permission_definitions: [{key: d, name: D, grants: [people], applies_below: true}]\n", "applies_below and inventory_manager"},
		"an organization of no import":   {"organization: {key: stranger}\n", "no import created"},
	} {
		if name == "an organization of no import" {
			f.Exec(`WITH o AS (INSERT INTO organizations (id, key, created_at) VALUES ('idn_00000000000000000000000000', 'stranger', now()) RETURNING id)
				INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) SELECT id, id, 'organization', 'S', now(), now() FROM o`)
		}
		_, compareErr := f.Imports.Compare(t.Context(), []byte(test.text))
		_, importErr := f.Imports.Run(t.Context(), []byte(test.text))
		servicetest.Expect(t, name+", the comparison and the import", fmt.Sprint(compareErr), fmt.Sprint(importErr))
		if _, rejected := errors.AsType[*imports.FileError](importErr); rejected != (test.complaint != "") || !strings.Contains(fmt.Sprint(importErr), test.complaint) {
			t.Errorf("%s: %v, want %q", name, importErr, test.complaint)
		}
	}
}
