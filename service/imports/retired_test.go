package imports_test

import (
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// wantProblem fails the test unless the import of the file is rejected with the sentence.
func wantProblem(t *testing.T, f *servicetest.Fixture, file, sentence string) {
	t.Helper()
	if _, err := f.Import(t.Context(), []byte(file)); err == nil || !strings.Contains(err.Error(), sentence) {
		t.Errorf("the error is %v, want %q", err, sentence)
	}
}

// An import leaves a retired node retired, and chooses it for nothing new.
func TestImportsLeaveNodesRetired(t *testing.T) {
	f := servicetest.New(t)
	const (
		node   = "organization: {key: acme}\ninventory: [{key: annex, kind: location, name: North annex"
		retire = `UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`
	)
	f.Exec(retire, f.ID("annex"))
	importFile(t, f, node+"}]\nassignments: [{node: annex, identity: eve, definition: manager}]")
	if n := servicetest.Value[int](f, `SELECT count(*) FROM inventory_nodes WHERE name = 'North annex' AND retired_at IS NOT NULL`); n != 1 {
		t.Error("the import brought the node back")
	}
	wantProblem(t, f, node+", children: [{key: room, kind: location, name: Room}]}]", `inventory node "room": the node "annex" above it is retired`)
	wantProblem(t, f, node+", children: [{key: mast, kind: system}]}]", `inventory node "mast": the node "annex" above it is retired`)
	wantProblem(t, f, "organization: {key: acme}\nassignments: [{node: annex, identity: dan, definition: reading}]", `assignment of "dan" on "annex": the node is retired`)
	wantProblem(t, f, "organization: {key: acme}\nassignments: [{node: annex, identity: eve, definition: reading}]", `assignment of "eve" on "annex": the node is retired`)
	f.Exec(retire, f.ID("mast"))
	importFile(t, f, node+", children: [{key: mast, kind: system}]}]")
}
