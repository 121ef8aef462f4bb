package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

func issuesCommand() *cobra.Command {
	return commandGroup("issues", "List and show feedback, and resolve it as a person, as in the console",
		listIssuesCommand(),
		showRecordCommand("Show feedback", "feedback", (*records.Records).Feedback, issueLines),
		changeRecordCommand("resolve ID --as PERSON", "Resolve the feedback", "feedback",
			func(s *records.Records, ctx context.Context, actor store.Actor, id string) (store.WriteResult, error) {
				return s.ResolveFeedback(ctx, actor, store.NoKey, id)
			}, resolvedLines))
}

func listIssuesCommand() *cobra.Command {
	var filter records.FeedbackFilter
	cmd := listRecordsCommand("List feedback, newest first",
		func(ctx context.Context, svc *service.Service, reader store.Actor, page lists.ListRequest) ([]byte, error) {
			return svc.Records.FeedbackList(ctx, reader, filter, page)
		}, issuesTable)
	choiceFlag(cmd, &filter.Statuses, models.FeedbackStatuses, "status", "feedback status")
	cmd.Flags().StringVar(&filter.ExternalID, "external-id", "", "only that with this external_id")
	return cmd
}

func issuesTable(w io.Writer, found []models.FeedbackRecord) {
	fmt.Fprintln(w, "ID\tSTATUS\tCREATED\tSUBJECT\t")
	for _, r := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", r.ID, r.Status.Code, r.CreatedAt, short(r.Subject))
	}
}

func issueLines(w io.Writer, r models.FeedbackRecord) {
	fmt.Fprintf(w, "id\t%s\t\norganization\t%s\t\nsubject\t%s\t\n", r.ID, r.OrganizationID, oneLine(r.Subject))
	textLines(w, "description", r.Description)
	fmt.Fprintf(w, "status\t%s\t\nnode\t%s\t\nexternal id\t%s\t\ncreated\t%s by %s\t\nchanged\t%s\t\nresolved\t%s\t\n",
		r.Status.Name, nodeCell(r.Inventory), textCell(r.ExternalID), r.CreatedAt, identitiesCell([]string{r.CreatedBy}, r.People), r.ChangedAt, orDash(r.ResolvedAt))
}

func resolvedLines(w io.Writer, r models.FeedbackRecord) {
	fmt.Fprintf(w, "id\t%s\t\nsubject\t%s\t\nstatus\t%s\t\nchanged\t%s\t\n", r.ID, oneLine(r.Subject), r.Status.Name, r.ChangedAt)
}
