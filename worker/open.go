package worker

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"millwright/service/store"
)

// openOf returns the query that finds the open workflows with the type.
func openOf(workflowType string) string {
	return fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflowType)
}

// openWorkflows lists open workflows. It implements activities.WorkflowLister.
type openWorkflows struct{ client client.Client }

// OpenAmong asks for the workflow ids: unlike a search attribute, each workflow has its id
// from the first moment.
func (o openWorkflows) OpenAmong(ctx context.Context, targets []store.WakeTarget) (map[string]bool, error) {
	kind, ids := workflowKinds[targets[0].Kind], make([]string, len(targets))
	for i, target := range targets {
		ids[i] = "'" + kind.id(target.ID) + "'"
	}
	page, err := o.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("%s AND WorkflowId IN (%s)", openOf(kind.name), strings.Join(ids, ",")),
		// More than one run of a workflow is listed for a moment after it continued as new.
		PageSize: int32(2 * len(targets)), //nolint:gosec // up to 1000
	})
	if err != nil {
		return nil, fmt.Errorf("list the open workflows: %w", err)
	}
	open := make(map[string]bool, len(page.GetExecutions()))
	for _, e := range page.GetExecutions() {
		open[strings.TrimPrefix(e.GetExecution().GetWorkflowId(), kind.id(""))] = true
	}
	return open, nil
}
