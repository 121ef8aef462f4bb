package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// postmanOrganization has a record of every kind, as docs/postman.json needs.
const postmanOrganization = `
organization: {key: postman, name: Postman, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000, integrations: 1}}
permission_definitions:
  - {key: full, name: Full access, applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update, work_orders.delete, work_orders.forward, feedback.read, feedback.create]}
people: [{key: manager, name: Manager, email: manager@postman.example.com, admin: true}]
teams: [{key: crew, name: Crew, members: [manager]}]
inventory:
  - {key: hq, kind: location, name: HQ, children: [{key: hvac, kind: system, name: HVAC, children: [{key: ahu, kind: equipment, name: AHU, children: [{key: fan, kind: sub_equipment, name: Fan}]}]}]}
forms: [{key: inspection, name: Inspection, questions: [{key: finding, label: Finding, type: text, required: false}]}]
assignments: [{node: hq, identity: manager, definition: full}, {node: hq, identity: erp, definition: full}]
integrations:
  - {key: erp, name: ERP, scopes: [inventory:read, work_orders:read, work_orders:write, issues:read, issues:write, forms:read, people:read]}
`

// newman runs every request of the Postman collection, with its tests.
func TestPostmanCollection(t *testing.T) {
	t.Parallel()
	installed(t, "node")
	installed(t, "npm")
	directory := t.TempDir()
	install := exec.Command("sh", "-c", `cp package.json package-lock.json "$1" && cd "$1" && npm ci --omit=dev --silent --no-audit --no-fund`, "sh", directory)
	install.Dir = "../tools/openapi"
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("install newman: %v\n%s", err, out)
	}
	h := newHarness(t, nil)
	h.startAPI(nil)
	erp := h.importFile(postmanOrganization).Integrations["erp"]
	run := exec.Command(filepath.Join(directory, "node_modules", ".bin", "newman"), "run", "../docs/postman.json", "--color", "off",
		"--env-var", "baseUrl="+h.settings["MILLWRIGHT_PUBLIC_URL"]+"/v1", "--env-var", "clientId="+erp.ClientID, "--env-var", "clientSecret="+erp.ClientSecret)
	out, err := run.CombinedOutput()
	if tested := strings.Count(string(out), "The status is"); err != nil || tested < 30 {
		t.Errorf("newman tested %d responses: %v\n%s", tested, err, out)
	}
}
