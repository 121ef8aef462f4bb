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
	return commands("work-orders", "Do with work orders, as a person, what the app alone does",
		reviewCommand(),
		workOrderCommand("hold ID --as PERSON", "Put the work order on hold: it takes no changes and no answers",
			func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
				return svc.HoldWorkOrder(ctx, actor, id)
			}),
		workOrderCommand("resume ID --as PERSON", "Take the work order off hold, back to the status it had",
			func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
				return svc.ResumeWorkOrder(ctx, actor, id)
			}),
	)
}

func reviewCommand() *cobra.Command {
	var review service.Review
	var sendBack bool
	cmd := workOrderCommand("review ID --approve|--send-back [--comment TEXT] --as PERSON", "Review the work as a consultant: approve it, or send it back to its workers",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
			return svc.ReviewWorkOrder(ctx, actor, id, review)
		})
	cmd.Flags().BoolVar(&review.Approve, "approve", false, "the work order is complete")
	cmd.Flags().BoolVar(&sendBack, "send-back", false, "the work goes back to its workers")
	cmd.Flags().StringVar(&review.Comment, "comment", "", "what there is to say, up to 1,000 characters; it stays in the history")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if review.Approve == sendBack {
			return errors.New("a review takes either --approve or --send-back")
		}
		return nil
	}
	return cmd
}

// recordChange is what a command does to one record as a person.
type recordChange func(*service.Service, context.Context, service.Actor, string) (service.WriteResult, error)

// workOrderCommand is a command that changes one work order and shows it.
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

// personCommand is a command that changes one record as the person of --as, and
// shows the record: to people as the table says.
func personCommand(use, short, what string, do recordChange, table func(io.Writer, []byte) error) *cobra.Command {
	by := acting{where: "that the person may read"}
	cmd := actOn(use, short, what, &by, func(ctx context.Context, a acted) error {
		answer, err := do(a.svc, ctx, a.actor, a.id)
		if err != nil {
			return err
		}
		var wrong error
		err = a.out.show(a.cmd, json.RawMessage(answer.Body), func(w io.Writer) { wrong = table(w, answer.Body) })
		return errors.Join(err, wrong)
	})
	by.flag(cmd)
	require(cmd, "as")
	return cmd
}
