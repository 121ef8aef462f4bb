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
	return commandGroup("issues", "Act on feedback as a person, as in the app", personCommand("resolve ID --as PERSON", "Resolve the feedback", "feedback",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.WriteResult, error) {
			return svc.ResolveFeedback(ctx, actor, service.Call{}, id)
		}, issueTable))
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
