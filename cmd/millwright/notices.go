package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/people"
)

func noticesCommand() *cobra.Command {
	return commandGroup("notices", "List the notices in people's inboxes", listNoticesCommand())
}

func listNoticesCommand() *cobra.Command {
	var as actorFlag
	var limit limitFlag
	var filter people.NoticeFilter
	cmd := listCommand("list --as PERSON", "List a person's unread notices, newest first", func(ctx context.Context, cmd *cobra.Command, svc *service.Service) ([]people.NoticeView, error) {
		person, err := as.actor(ctx, cmd, svc)
		if err != nil {
			return nil, err
		}
		return upTo(limit, func(size int) ([]people.NoticeView, error) {
			filter.Limit = size
			page, err := svc.People.Notices(ctx, person, filter)
			if len(page) > 0 {
				filter.Before = page[len(page)-1].ID
			}
			return page, err
		})
	}, noticesTable)
	as.flag(cmd)
	limit.flag(cmd)
	cmd.Flags().BoolVar(&filter.Read, "read", false, "those that were read instead")
	require(cmd, "as")
	return cmd
}

func noticesTable(w io.Writer, found []people.NoticeView) {
	fmt.Fprintln(w, "TIME\tKIND\tRECORD\tABOUT\t")
	for _, n := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", n.CreatedAt, n.Kind, n.RecordID, short(n.Title))
	}
}
