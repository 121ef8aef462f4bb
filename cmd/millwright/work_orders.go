package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

func workOrdersCommand() *cobra.Command {
	return commandGroup("work-orders", "List and show work orders, and act on them as a person, as in the console",
		listWorkOrdersCommand(),
		showRecordCommand("Show a work order", "work order", (*records.Records).WorkOrder, workOrderLines),
		reviewCommand(),
		workOrderCommand("hold ID --as PERSON", "Put the work order on hold: it accepts no changes and no answers",
			func(s *records.Records, ctx context.Context, actor store.Actor, id string) (store.WriteResult, error) {
				return s.HoldWorkOrder(ctx, actor, store.NoKey, id)
			}),
		workOrderCommand("resume ID --as PERSON", "Take the work order off hold, back to its previous status",
			func(s *records.Records, ctx context.Context, actor store.Actor, id string) (store.WriteResult, error) {
				return s.ResumeWorkOrder(ctx, actor, store.NoKey, id)
			}),
	)
}

func listWorkOrdersCommand() *cobra.Command {
	var filter records.WorkOrderFilter
	cmd := listRecordsCommand("List work orders, newest first",
		func(ctx context.Context, svc *service.Service, reader store.Actor, page lists.ListRequest) ([]byte, error) {
			return svc.Records.WorkOrders(ctx, reader, filter, page)
		}, workOrdersTable)
	choiceFlag(cmd, &filter.Statuses, models.WorkOrderStatuses, "status", "work order status")
	cmd.Flags().StringVar(&filter.AssigneeID, "assignee", "", "only those with this identity id among their workers or consultants")
	cmd.Flags().StringVar(&filter.ExternalID, "external-id", "", "only those with this external_id")
	return cmd
}

func workOrdersTable(w io.Writer, found []models.WorkOrderRecord) {
	fmt.Fprintln(w, "ID\tNUMBER\tSTATUS\tPRIORITY\tDUE\tTITLE\t")
	for _, r := range found {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", r.ID, r.Number, r.Status.Code, r.Priority, orDash(r.TargetDate), short(r.Title))
	}
}

func workOrderLines(w io.Writer, r models.WorkOrderRecord) {
	fmt.Fprintf(w, "id\t%s\t\nnumber\t%d\t\norganization\t%s\t\ntitle\t%s\t\n", r.ID, r.Number, r.OrganizationID, oneLine(r.Title))
	textLines(w, "description", r.Description)
	fmt.Fprintf(w, "status\t%s\t\npriority\t%s\t\ndue\t%s\t\n", r.Status.Name, r.Priority, orDash(r.TargetDate))
	fmt.Fprintf(w, "node\t%s\t\n", nodeCell(r.Inventory))
	fmt.Fprintf(w, "workers\t%s\t\nconsultants\t%s\t\n", identitiesCell(r.Assignees, r.People), identitiesCell(r.Consultants, r.People))
	fmt.Fprintf(w, "form\t%s\t\nexternal id\t%s\t\ncreated\t%s by %s\t\nchanged\t%s\t\n",
		orDash(r.FormID), textCell(r.ExternalID), r.CreatedAt, identitiesCell([]string{r.CreatedBy}, r.People), r.ChangedAt)
	if r.CompletedAt != nil {
		fmt.Fprintf(w, "completed\t%s\t\n", r.CompletedAt)
	}
	if r.CancelledAt != nil {
		fmt.Fprintf(w, "cancelled\t%s\t\n", r.CancelledAt)
		textLines(w, "reason", r.CancelReason)
	}
}

func reviewCommand() *cobra.Command {
	var review records.Review
	var sendBack bool
	cmd := workOrderCommand("review ID --approve|--send-back [--comment TEXT] --as PERSON", "Review the work as a consultant: approve it, or send it back to its workers",
		func(s *records.Records, ctx context.Context, actor store.Actor, id string) (store.WriteResult, error) {
			return s.ReviewWorkOrder(ctx, actor, store.NoKey, id, review)
		})
	cmd.Flags().BoolVar(&review.Approve, "approve", false, "complete the work order")
	cmd.Flags().BoolVar(&sendBack, "send-back", false, "send the work back to its workers")
	cmd.Flags().StringVar(&review.Comment, "comment", "", "comment of up to 1,000 characters, kept in the history; --send-back requires one")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if review.Approve == sendBack {
			return errors.New("give either --approve or --send-back")
		}
		return nil
	}
	return cmd
}

// workOrderCommand returns a command that changes a work order and shows it.
func workOrderCommand(use, short string, do recordChange) *cobra.Command {
	return changeRecordCommand(use, short, "work order", do, func(w io.Writer, r models.WorkOrderRecord) {
		fmt.Fprintf(w, "id\t%s\t\nnumber\t%d\t\ntitle\t%s\t\nstatus\t%s\t\nchanged\t%s\t\n",
			r.ID, r.Number, oneLine(r.Title), r.Status.Name, r.ChangedAt)
	})
}
