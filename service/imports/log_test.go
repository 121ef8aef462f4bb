package imports_test

import (
	"strings"
	"testing"

	"millwright/service/imports"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// An import leaves one Log Record for each difference, by "Import", and none without a difference:
// not when it is repeated, compared or rejected.
func TestImportsAreLogged(t *testing.T) {
	f := servicetest.New(t)
	logged := func(do func() (imports.Result, error)) string {
		t.Helper()
		f.Exec(`DELETE FROM log`)
		imported, err := do()
		n := servicetest.Value[int](f, `SELECT count(*) FROM log_records WHERE actor_name = 'Import' AND actor_id IS NULL`)
		if err == nil && n != len(imported.Differences) || err != nil && n != 0 {
			t.Errorf("%d Log Records of %d differences, %v", n, len(imported.Differences), err)
		}
		return servicetest.Value[string](f, `SELECT coalesce(string_agg(coalesce(k.key, l.record_id) || ' ' || l.action, E'\n' ORDER BY l.id), '')
			FROM log_records l LEFT JOIN import_keys k ON k.id = l.record_id`)
	}
	run := func(file string) func() (imports.Result, error) {
		return func() (imports.Result, error) { return f.Imports.Run(t.Context(), []byte(file)) }
	}
	for _, step := range []struct{ when, file, want string }{
		{"a new organization", servicetest.Small, `
			tiny organization.created
			all definition.created
			ann person.created
			top node.created
			below node.created
			erp integration.created
			hook webhook.created
			top assignment.created`},
		{"the same again", servicetest.Small, ""},
		{"changes", `
organization: {key: tiny, read_only: true, plan: {api: false}}
permission_definitions: [{key: all, grants: [inventory.read, feedback.read]}, {key: other, name: Other}]
people: [{key: ann, name: Anna, email: anna@tiny.example.com, phone: "+12025550100", admin: true}]
teams: [{key: crew, name: Crew, members: [ann]}]
inventory: [{key: top, kind: location, external_id: TOP}]
forms: [{key: form, name: Form, questions: [{key: q, label: Filter, type: text}]}]
service_companies: [{key: polar}]
assignments: [{node: top, identity: ann, definition: other}, {node: top, identity: crew, definition: all}]
integrations: [{key: erp, name: SAP, client_secret: a-secret-of-more-than-enough-characters, scopes: ["people:read"], webhooks: [{key: hook, url: "http://127.0.0.1:9/new"}]}]
`, `
			tiny organization.read_only_changed
			tiny organization.plan_api_changed
			all definition.grants_changed
			other definition.created
			ann person.name_changed
			ann person.email_changed
			ann person.phone_changed
			ann person.access_changed
			crew team.created
			top node.external_id_changed
			form form.created
			q form.created
			tiny organization.company_added
			erp integration.renamed
			erp integration.secret_renewed
			erp integration.scopes_changed
			hook webhook.changed
			top assignment.changed
			top assignment.created`},
	} {
		servicetest.Expect(t, step.when, logged(run(step.file)), strings.TrimSpace(strings.ReplaceAll(step.want, "\t", "")))
	}
	const compared = `{organization: {key: tiny, name: Tiny Two}}`
	if got := logged(func() (imports.Result, error) {
		_, err := f.Imports.Compare(t.Context(), []byte(compared))
		return imports.Result{}, err
	}); got != "" {
		t.Errorf("a comparison is logged: %s", got)
	}
	ann := servicetest.Value[string](f, `SELECT id FROM import_keys WHERE key = 'ann' AND organization_id = (SELECT id FROM organizations WHERE key = 'tiny')`)
	_, err := f.People.ChangePersonEmail(t.Context(), store.Operator(), store.NoKey, ann, "ann.two@tiny.example.com")
	servicetest.Must(t, err)
	undoing := `{organization: {key: tiny}, people: [{key: ann, email: anna@tiny.example.com}]}`
	servicetest.Expect(t, "the log of a rejected import", logged(run(undoing)), "")
	servicetest.Expect(t, "overwriting", logged(func() (imports.Result, error) { return f.Imports.Overwrite(t.Context(), []byte(undoing)) }), "ann person.email_changed")
}
