package worker

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"millwright/service/store"
)

// openWorkflows lists open workflows. It implements activities.WorkflowLister.
type openWorkflows struct{ client client.Client }

// openPage limits the workflows that one call lists.
const openPage = 1000

func (o openWorkflows) OpenWorkflows(ctx context.Context, kind store.TargetKind) (map[string]bool, error) {
	return o.list(ctx, kind, "")
}

// OpenAmong asks for the workflow ids: unlike a search attribute, each workflow has its id
// from the first moment.
func (o openWorkflows) OpenAmong(ctx context.Context, targets []store.WakeTarget) (map[string]bool, error) {
	kind, ids := targets[0].Kind, make([]string, len(targets))
	for i, target := range targets {
		ids[i] = "'" + workflowKinds[kind].id(target.ID) + "'"
	}
	return o.list(ctx, kind, " AND WorkflowId IN ("+strings.Join(ids, ",")+")")
}

// list returns the ids, without the prefix of the kind's workflows, of those that are open
// and meet the condition.
func (o openWorkflows) list(ctx context.Context, kind store.TargetKind, condition string) (map[string]bool, error) {
	open, listed := map[string]bool{}, workflowKinds[kind]
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'%s", listed.name, condition), PageSize: openPage,
	}
	for {
		page, err := o.client.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the open workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			open[strings.TrimPrefix(e.GetExecution().GetWorkflowId(), listed.id(""))] = true
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return open, nil
		}
	}
}
