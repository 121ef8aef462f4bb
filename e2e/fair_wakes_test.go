package e2e

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"millwright/workflows"
)

const otherOrganization = `
organization: {key: borealis, name: Borealis, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000, integrations: 10}}
permission_definitions:
  - {key: full, name: Full access, applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create]}
inventory: [{key: ahu1, kind: location, name: Elsewhere}]
assignments: [{node: ahu1, identity: erp, definition: full}]
integrations: [{key: erp, name: ERP, scopes: ["work_orders:read", "work_orders:write"], webhooks: []}]
`

func TestNewWorkOrderOvertakesManyOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	// The sweep would come to the work orders that still wait.
	h := newHarness(t, settings{"SWEEP_INTERVAL": "1m"})
	h.startAPI(nil)
	busy := h.integrator()
	imported := h.importFile(otherOrganization)
	erp := imported.Integrations["erp"]
	other := h.integratorAs(erp.ClientID, erp.ClientSecret)
	other.node = imported.IDs["ahu1"]
	other.token()

	busy.createMany(300)
	id := other.create("Replace filter")
	h.startWorker() // now, so that many wait however fast it is
	waiting := 0
	eventually(t, time.Minute, "the workflow of the other organization's work order loads it", func() bool {
		// Both at one moment, by one statement.
		loaded := false
		if err := h.db.QueryRow(t.Context(), `SELECT count(*), NOT coalesce(bool_or(record_id = $1), false) FROM dirty_records`, id).Scan(&waiting, &loaded); err != nil {
			t.Fatal(err)
		}
		return loaded
	})
	if t.Logf("%d work orders wait", waiting); waiting < 200 {
		t.Errorf("only %d of the busy organization's 300 work orders wait: it did not overtake them", waiting)
	}
	// Its workflow does not wait for others; workflows of the busy organization may.
	described, err := h.temporal.DescribeWorkflowExecution(t.Context(), workflows.WorkOrderID(id), "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing || described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Fatalf("the workflow is %v (%v)", described.GetWorkflowExecutionInfo().GetStatus(), err)
	}
	if p := described.GetWorkflowExecutionInfo().GetPriority(); p.GetPriorityKey() != 0 || p.GetFairnessKey() == "" {
		t.Errorf("its priority is %v", p)
	}
}
