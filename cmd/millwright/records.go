package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

// findRecords returns a page of records that the reader may read, encoded.
type findRecords func(ctx context.Context, svc *service.Service, reader store.Actor, page lists.ListRequest) ([]byte, error)

// listRecordsCommand returns a command that lists records of type R as a GET shows them.
// table writes them for people.
func listRecordsCommand[R any](short string, find findRecords, table func(io.Writer, []R)) *cobra.Command {
	var out output
	var reader readerFlags
	var limit limitFlag
	cmd := &cobra.Command{
		Use:   "list" + readerUsage,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := reader.reader(ctx, cmd, svc)
				if err != nil {
					return err
				}
				cursor := ""
				found, err := upTo(limit, func(size int) ([]json.RawMessage, error) {
					body, err := find(ctx, svc, actor, lists.ListRequest{Limit: size, Cursor: cursor})
					var page lists.Page[json.RawMessage]
					if err == nil {
						err = json.Unmarshal(body, &page)
					}
					cursor = page.NextCursor
					return page.Data, err
				})
				if err != nil {
					return err
				}
				records := make([]R, len(found))
				for i, body := range found {
					if records[i], err = decode[R](body); err != nil {
						return err
					}
				}
				return out.show(cmd, found, func(w io.Writer) { table(w, records) })
			})
		},
	}
	out.flag(cmd)
	reader.flag(cmd)
	limit.flag(cmd)
	return cmd
}

// showRecordCommand returns a command that shows a record of type R as a GET shows it:
// to the operator, or to the person of --as.
func showRecordCommand[R any](short, what string, read func(*records.Records, context.Context, store.Actor, string) ([]byte, error), lines func(io.Writer, R)) *cobra.Command {
	return targetCommand("show ID", short, what, &actorFlag{scope: "that the person may read"}, func(ctx context.Context, target commandTarget) error {
		body, err := read(target.svc.Records, ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		return showRecord(target, body, lines)
	})
}

// recordChange changes a record as a person.
type recordChange func(*records.Records, context.Context, store.Actor, string) (store.WriteResult, error)

// changeRecordCommand returns a command that changes a record of type R as the person of --as
// and shows it.
func changeRecordCommand[R any](use, short, what string, do recordChange, lines func(io.Writer, R)) *cobra.Command {
	cmd := targetCommand(use, short, what, &actorFlag{scope: "that the person may read"}, func(ctx context.Context, target commandTarget) error {
		result, err := do(target.svc.Records, ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		return showRecord(target, result.Body, lines)
	})
	require(cmd, "as")
	return cmd
}

// showRecord shows a record of type R that is encoded as a GET shows it.
func showRecord[R any](target commandTarget, body []byte, lines func(io.Writer, R)) error {
	record, err := decode[R](body)
	if err != nil {
		return err
	}
	return target.out.show(target.cmd, json.RawMessage(body), func(w io.Writer) { lines(w, record) })
}

// textLines writes an optional text line by line.
func textLines(w io.Writer, name string, text *string) {
	if text == nil || *text == "" {
		fmt.Fprintf(w, "%s\t-\t\n", name)
		return
	}
	for line := range strings.Lines(*text) {
		fmt.Fprintf(w, "%s\t%s\t\n", name, oneLine(strings.TrimRight(line, "\r\n")))
		name = ""
	}
}

// nodeCell formats a node with its path and its id.
func nodeCell(node models.NodeReference) string {
	path := ""
	for _, above := range node.Path {
		path += above.Name + " › "
	}
	return oneLine(path+node.Name) + " (" + node.ID + ")"
}

// identitiesCell formats identities by their ids, and by their names if the record shows
// its people.
func identitiesCell(ids []string, people []models.NamedIdentity) string {
	if len(ids) == 0 {
		return "-"
	}
	cells := make([]string, len(ids))
	for i, id := range ids {
		cells[i] = id
		if at := slices.IndexFunc(people, func(p models.NamedIdentity) bool { return p.IdentityID == id }); at >= 0 {
			cells[i] = oneLine(people[at].Name) + " (" + id + ")"
		}
	}
	return strings.Join(cells, ", ")
}

func decode[R any](body []byte) (record R, err error) {
	if err := json.Unmarshal(body, &record); err != nil {
		return record, fmt.Errorf("read the record: %w", err)
	}
	return record, nil
}
