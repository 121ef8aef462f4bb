package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
)

func issuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issues",
		Short: "Do with feedback, as a person, what the app alone does",
		Args:  cobra.NoArgs, // a command there is none of shall not pass for help
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(personCommand("resolve ID --as PERSON", "Resolve the feedback", "feedback",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.Answer, error) {
			return svc.ResolveFeedback(ctx, actor, id)
		}, issueTable))
	return cmd
}

func issueTable(w io.Writer, body []byte) error {
	var record models.FeedbackRecord
	if err := json.Unmarshal(body, &record); err != nil {
		return fmt.Errorf("read the feedback: %w", err)
	}
	fmt.Fprintf(w, "id\t%s\t\nsubject\t%s\t\nstatus\t%s\t\nchanged\t%s\t\n",
		record.ID, oneLine(record.Subject), record.Status.Name, record.ChangedAt)
	return nil
}
