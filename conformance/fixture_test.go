package conformance

import (
	"slices"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
)

// grant limits the ERP's definition "full" to these grants, or none, until the test ends.
func (h *harness) grant(t *testing.T, grants ...models.Grant) {
	t.Helper()
	names := func(grants []models.Grant) []string {
		names := []string{}
		for _, g := range grants {
			names = append(names, string(g))
		}
		return names
	}
	const sql = `UPDATE permission_definitions SET grants = $2 WHERE id = $1`
	h.Exec(sql, h.ID("full"), names(grants))
	t.Cleanup(func() { h.Exec(sql, h.ID("full"), names(models.AllGrants)) })
}

// changeUntilEnd runs do now and undo when the test ends. The change may invalidate
// tokens, so all are requested again afterwards.
func (h *harness) changeUntilEnd(t *testing.T, do, undo string, args ...any) {
	t.Helper()
	h.Exec(do, args...)
	t.Cleanup(func() {
		h.Exec(undo, args...)
		h.ForgetTokens()
	})
}

// limit sets the calls per minute of each integration until the test ends, in a new minute.
func (h *harness) limit(t *testing.T, calls int) {
	t.Helper()
	h.Exec(`UPDATE plans SET calls_per_minute = $1`, calls)
	h.Clock.Advance(models.RateWindow)
	t.Cleanup(func() { h.Exec(`UPDATE plans SET calls_per_minute = 100000`) })
}

// readOnly makes the organization read-only until the test ends.
func (h *harness) readOnly(t *testing.T) {
	t.Helper()
	h.changeUntilEnd(t, `UPDATE organizations SET read_only = true WHERE id = $1`, `UPDATE organizations SET read_only = false WHERE id = $1`, h.Acme.OrganizationID)
}

// removeAPIFromPlan removes the API from the organization's plan until the test ends.
func (h *harness) removeAPIFromPlan(t *testing.T) {
	t.Helper()
	h.changeUntilEnd(t, `UPDATE plans SET api = false WHERE organization_id = $1`, `UPDATE plans SET api = true WHERE organization_id = $1`, h.Acme.OrganizationID)
}

// setScopes sets an integration's scopes until the test ends.
func (h *harness) setScopes(t *testing.T, key, scopes string) {
	t.Helper()
	const sql = `UPDATE integrations SET scopes = string_to_array($2, ' ') WHERE id = $1`
	before := servicetest.Value[string](h.Fixture, `SELECT array_to_string(scopes, ' ') FROM integrations WHERE id = $1`, h.ID(key))
	h.Exec(sql, h.ID(key), scopes)
	h.ForgetTokens()
	t.Cleanup(func() {
		h.Exec(sql, h.ID(key), before)
		h.ForgetTokens()
	})
}

// removeAssignment removes an integration's assignment until the test ends.
func (h *harness) removeAssignment(t *testing.T, key string) {
	t.Helper()
	node := servicetest.Value[string](h.Fixture, `DELETE FROM assignments WHERE identity_id = $1 RETURNING node_id || ' ' || definition_id`, h.ID(key))
	at, definition, _ := strings.Cut(node, " ")
	t.Cleanup(func() { h.assignTo(key, at, definition) })
}

// assignTo assigns the identity of a key to a node with a definition, both by id.
func (h *harness) assignTo(key, node, definition string) {
	h.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		node, h.ID(key), definition, h.Acme.OrganizationID)
}

// allBut returns all grants except one.
func allBut(missing models.Grant) []models.Grant {
	return slices.DeleteFunc(slices.Clone(models.AllGrants), func(g models.Grant) bool { return g == missing })
}
