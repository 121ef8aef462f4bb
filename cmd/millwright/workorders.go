package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
)

func workOrdersCommand() *cobra.Command {
	return commandGroup("work-orders", "Act on work orders as a person, as in the app",
		reviewCommand(),
		workOrderCommand("hold ID --as PERSON", "Put the work order on hold: it accepts no changes and no answers",
			func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
				return svc.HoldWorkOrder(ctx, actor, service.Call{}, id)
			}),
		workOrderCommand("resume ID --as PERSON", "Take the work order off hold, back to its previous status",
			func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
				return svc.ResumeWorkOrder(ctx, actor, service.Call{}, id)
			}),
	)
}

func reviewCommand() *cobra.Command {
	var review service.Review
	var sendBack bool
	cmd := workOrderCommand("review ID --approve|--send-back [--comment TEXT] --as PERSON", "Review the work as a consultant: approve it, or send it back to its workers",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
			return svc.ReviewWorkOrder(ctx, actor, service.Call{}, id, review)
		})
	cmd.Flags().BoolVar(&review.Approve, "approve", false, "complete the work order")
	cmd.Flags().BoolVar(&sendBack, "send-back", false, "send the work back to its workers")
	cmd.Flags().StringVar(&review.Comment, "comment", "", "comment of up to 1,000 characters, kept in the history")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if review.Approve == sendBack {
			return errors.New("give either --approve or --send-back")
		}
		return nil
	}
	return cmd
}

// recordChange changes a record as a person.
type recordChange func(*service.Service, context.Context, service.Actor, string) (service.WriteResult, error)

// workOrderCommand returns a command that changes a work order and shows it.
func workOrderCommand(use, short string, do recordChange) *cobra.Command {
	return personCommand(use, short, "work order", do, func(w io.Writer, body []byte) error {
		var record models.WorkOrderRecord
		if err := json.Unmarshal(body, &record); err != nil {
			return fmt.Errorf("read the work order: %w", err)
		}
		fmt.Fprintf(w, "id\t%s\t\nnumber\t%d\t\ntitle\t%s\t\nstatus\t%s\t\nchanged\t%s\t\n",
			record.ID, record.Number, oneLine(record.Title), record.Status.Name, record.ChangedAt)
		return nil
	})
}

// personCommand returns a command that changes a record as the person of --as and
// shows it.
func personCommand(use, short, what string, do recordChange, table func(io.Writer, []byte) error) *cobra.Command {
	as := actorFlag{scope: "that the person may read"}
	cmd := targetCommand(use, short, what, &as, func(ctx context.Context, target commandTarget) error {
		result, err := do(target.svc, ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		var tableErr error
		err = target.out.show(target.cmd, json.RawMessage(result.Body), func(w io.Writer) { tableErr = table(w, result.Body) })
		return errors.Join(err, tableErr)
	})
	as.flag(cmd)
	require(cmd, "as")
	return cmd
}
