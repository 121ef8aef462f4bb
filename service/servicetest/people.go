package servicetest

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/store"
)

// Person returns a person of the fixture as an actor.
func Person(t testing.TB, f *Fixture, key string) store.Actor {
	t.Helper()
	actor, err := f.Access.PersonActor(t.Context(), f.ID(key))
	Must(t, err)
	return actor
}

// Session starts a session of a person of the fixture, without the checks of a password that
// make signing in slow, and returns its token.
func Session(f *Fixture, key string) (token string) {
	f.t.Helper()
	token = f.Store.Vault.SessionToken(rand.Text() + "~" + f.ID(key))
	f.Exec(`INSERT INTO sessions (token_hash, id, person_id, method, created_at, seen_at, network, user_agent, authenticated_at, recent_until)
		SELECT hash, 'ses_' || left(encode(hash, 'hex'), 26), $2, 'password', $3, $3, '127.0.0.1', 'servicetest', $3, $4 FROM sha256($1::text::bytea) hash`,
		token, f.ID(key), f.Clock.Now(), f.Clock.Now().Add(models.RecentSignIn))
	return token
}

// Managers adds people to the fixture: ivy has the integrations permission and no
// other, ray has every permission but that. Ann, an administrator, has it too.
func Managers(t *testing.T, f *Fixture) {
	t.Helper()
	imported, err := f.Imports.Run(t.Context(), []byte(`
organization: {key: acme}
organization_permission_definitions:
  - {key: org_integrations, name: Integrations, grants: [integrations]}
  - {key: org_rest, name: The rest, grants: [incoming_work_orders, log_records, people]}
people:
  - {key: ivy, name: Ivy Marsh, email: ivy@acme.example.com, organization_definition: org_integrations}
  - {key: ray, name: Ray Banks, email: ray@acme.example.com, organization_definition: org_rest}
`))
	Must(t, err)
	f.Acme.IDs = imported.IDs
}

// LogOf returns the Log Records of a record, one per line: name, id and action.
func LogOf(f *Fixture, id string) string {
	return Value[string](f, `
		SELECT coalesce(string_agg(actor_name || coalesce(' ' || actor_id, '') || ' ' || action, E'\n' ORDER BY id), '')
		FROM log_records WHERE record_id = $1`, id)
}

// WantCode checks the code of an error.
func WantCode(t *testing.T, what string, err error, want models.Code) {
	t.Helper()
	if got := models.CodeOf(err); got != want {
		t.Errorf("%s: the error is %q (%v), want %q", what, got, err, want)
	}
}

// AssignmentsOf returns the assignments on a node, as identity=definition in keys of the fixture.
func AssignmentsOf(f *Fixture, node string) string {
	lines := strings.Fields(f.WithKeys(Value[string](f, `
		SELECT coalesce(string_agg(identity_id || '=' || definition_id, ' '), '') FROM assignments WHERE node_id = $1`, f.ID(node))))
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// Small is the file of an organization with one of everything that an import needs.
const Small = `
organization: {key: tiny, name: Tiny, plan: {name: free, api: true, manual_work_orders: true, calls_per_minute: 10, integrations: 1}}
permission_definitions:
  - {key: all, name: All, grants: [inventory.read]}
people: [{key: ann, name: Ann, email: ann@tiny.example.com}]
inventory: [{key: top, kind: location, name: Top, children: [{key: below, kind: system, name: Below}]}]
integrations:
  - {key: erp, name: ERP, scopes: ["work_orders:read"], webhooks: [{key: hook, url: "http://127.0.0.1:9/", events: [ping]}]}
assignments: [{node: top, identity: ann, definition: all}]
`
