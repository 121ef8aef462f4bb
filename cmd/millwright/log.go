package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/pages"
	"millwright/service/store"
)

func logCommand() *cobra.Command {
	return commandGroup("log", "List Log Records: who did what to which record", listLogCommand())
}

func listLogCommand() *cobra.Command {
	var reader readerFlags
	var limit limitFlag
	var filter pages.LogFilter
	var since string
	cmd := listCommand("list"+readerUsage, "List an organization's Log Records, newest first", func(ctx context.Context, cmd *cobra.Command, svc *service.Service) ([]pages.LogRecord, error) {
		actor, err := reader.reader(ctx, cmd, svc)
		if err != nil {
			return nil, err
		}
		return upTo(limit, func(size int) ([]pages.LogRecord, error) { return nextLogRecords(ctx, svc, actor, &filter, size) })
	}, logTable)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		if topic, _, _ := strings.Cut(filter.Action, "."); topic != "" && !slices.Contains(pages.LogTopics, topic) {
			return fmt.Errorf("--action: there is no action %q; choose from %s, or one of their actions, such as webhook.created", filter.Action, strings.Join(pages.LogTopics, ", "))
		}
		if cmd.Flags().Changed("since") {
			filter.From, err = parseSince(since, time.Now())
		}
		return err
	}
	reader.flag(cmd)
	limit.flag(cmd)
	cmd.Flags().StringVar(&filter.RecordID, "record", "", "only those about the record with this id")
	cmd.Flags().StringVar(&filter.Action, "action", "", "only this action, such as webhook.created, or all about one of "+strings.Join(pages.LogTopics, ", "))
	cmd.Flags().StringVar(&since, "since", "", "only those since then: "+timeFlagHelp)
	return cmd
}

// nextLogRecords returns the next Log Records and moves the filter to after them. The
// service's pages of a rare action may have fewer than there are.
func nextLogRecords(ctx context.Context, svc *service.Service, reader store.Actor, filter *pages.LogFilter, size int) ([]pages.LogRecord, error) {
	var found []pages.LogRecord
	for {
		filter.Limit = size - len(found)
		page, err := svc.Pages.LogRecords(ctx, reader, reader.OrganizationID, *filter)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Records...)
		filter.Before = page.Next
		if page.Next == 0 || len(found) == size {
			return found, nil
		}
	}
}

func logTable(w io.Writer, found []pages.LogRecord) {
	fmt.Fprintln(w, "TIME\tWHO\tACTION\tRECORD\t")
	for _, l := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", l.At, actorCell(l), l.Action, recordCell(l))
	}
}

// actorCell formats who made a Log Record.
func actorCell(l pages.LogRecord) string {
	if l.ActorNow == nil {
		return short(l.ActorName)
	}
	return short(l.ActorName) + " (now " + short(*l.ActorNow) + ")"
}

// recordCell formats the record of a Log Record.
func recordCell(l pages.LogRecord) string {
	if l.RecordName == nil {
		return l.RecordID
	}
	return short(*l.RecordName) + " (" + l.RecordID + ")"
}
