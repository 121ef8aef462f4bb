package imports_test

import (
	"fmt"
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// manyNodes returns a file with count nodes below the headquarters, and one with an assignment of the integration reader
// on each.
func manyNodes(count int) (nodes, assignments string) {
	var places, assigned strings.Builder
	places.WriteString("organization: {key: acme}\ninventory:\n  - key: hq\n    kind: location\n    children:\n")
	assigned.WriteString("organization: {key: acme}\nassignments:\n")
	for n := range count {
		fmt.Fprintf(&places, "      - {key: n%d, kind: equipment, name: N}\n", n)
		fmt.Fprintf(&assigned, "  - {node: n%d, identity: reader, definition: reading}\n", n)
	}
	return places.String(), assigned.String()
}

// accessEpochs are the access epochs of all integrations: each end of their sync tokens raises one.
func accessEpochs(f *servicetest.Fixture) string {
	return servicetest.Value[string](f, `SELECT string_agg(name || ' ' || access_epoch, ', ' ORDER BY name) FROM integrations JOIN identities USING (id)`)
}

// An import ends the tokens of integrations whose reading it changes: once for each statement, not for each of their
// assignments, and not for what it leaves as it was.
func TestImportsOfAssignmentsEndTokens(t *testing.T) {
	f := servicetest.New(t)
	nodes, assignments := manyNodes(1201) // more than two statements write
	importFile(t, f, nodes+"permission_definitions: [{key: watching, name: Watching, grants: [work_orders.read]}]\n")
	before := accessEpochs(f)
	importFile(t, f, assignments)
	after := accessEpochs(f)
	servicetest.Expect(t, "after new assignments", after, strings.Replace(before, "Reader 2", "Reader 5", 1))
	for what, file := range map[string]string{
		"the same assignments":                                assignments,
		"definitions with the same rights of reading":         strings.ReplaceAll(assignments, "definition: reading", "definition: watching"),
		"the service company assigned with another":           "organization: {key: acme}\nassignments: [{node: ahu1, identity: polar, definition: reading}]",
		"the service company assigned to more nodes":          "organization: {key: acme}\nassignments: [{node: hq, identity: polar, definition: reading}]",
		"another name and permission to write of definitions": "organization: {key: acme}\npermission_definitions: [{key: reading, name: Seeing, grants: [work_orders.read, work_orders.forward]}]",
	} {
		servicetest.Must(t, servicetest.ErrorOf(f.Imports.Overwrite(t.Context(), []byte(file))))
		servicetest.Expect(t, "after "+what, accessEpochs(f), after)
	}
}
