package worker

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"millwright/service"
	"millwright/workflows"
)

// openWorkflows lists open workflows. It implements activities.WorkflowLister.
type openWorkflows struct{ client client.Client }

// openPage is how many workflows one call lists.
const openPage = 1000

func (o openWorkflows) OpenWorkflows(ctx context.Context, kind service.TargetKind) (map[string]bool, error) {
	name, prefix := workflows.WebhookAddressName, workflows.WebhookAddressID("")
	if kind == service.TargetDelivery {
		name, prefix = workflows.DeliveryName, workflows.DeliveryID("")
	}
	open := map[string]bool{}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running'", name), PageSize: openPage,
	}
	for {
		page, err := o.client.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the open workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			open[strings.TrimPrefix(e.GetExecution().GetWorkflowId(), prefix)] = true
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return open, nil
		}
	}
}
