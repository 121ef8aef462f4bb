package worker

import (
	"slices"
	"testing"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"millwright/workflows"
)

// registered collects the names of workflows.
type registered struct {
	sdkworker.WorkflowRegistry
	names []string
}

func (r *registered) RegisterWorkflowWithOptions(_ any, options workflow.RegisterOptions) {
	r.names = append(r.names, options.Name)
}

// A type that is missing in Names would not be replayed before an upgrade.
func TestNamesAreThoseRegistered(t *testing.T) {
	var r registered
	Register(&r)
	slices.Sort(r.names)
	if names := slices.Sorted(slices.Values(workflows.Names)); !slices.Equal(names, r.names) {
		t.Errorf("Names are %v, registered are %v", names, r.names)
	}
}
