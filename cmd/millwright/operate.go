package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/worker"
)

// operate runs an operator's command: it connects to the database, which must have
// the current schema, and sets up a waker, so that the effects of the command start
// at once. Without Temporal, the sweep starts them.
func operate(cmd *cobra.Command, do func(ctx context.Context, s settings, svc *service.Service) error) error {
	ctx := cmd.Context()
	s, err := loadSettings()
	if err != nil {
		return err
	}
	temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	waker := worker.NewWaker(ctx, temporal, s.logger())
	defer stopWaker(waker)
	svc, pools, err := openService(ctx, s, "millwright "+cmd.Name(), requireSchema, func(o *store.Options, _ store.Pools) { o.Waker = waker })
	if err != nil {
		return err
	}
	defer pools.Close()
	return do(ctx, s, svc)
}

// listCommand returns a command that lists what find returns. table writes it for people.
func listCommand[T any](use, short string, find func(ctx context.Context, cmd *cobra.Command, svc *service.Service) ([]T, error), table func(io.Writer, []T)) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				found, err := find(ctx, cmd, svc)
				if err != nil {
					return err
				}
				return out.show(cmd, found, func(w io.Writer) { table(w, found) })
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// commandGroup returns a command that only has subcommands.
func commandGroup(name, short string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// require marks flags as required.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined a few lines above
		}
	}
}

// describeError returns the error as a sentence for people. What a command looked
// for is named if it does not exist.
func describeError(err error, what string) error {
	known, ok := errors.AsType[*models.Error](err)
	switch {
	case !ok:
		return err
	case known.Code == models.CodeNotFound:
		return fmt.Errorf("there is no %s", what)
	case len(known.Fields) > 0:
		details := make([]string, len(known.Fields))
		for i, field := range known.Fields {
			details[i] = field.Detail
		}
		return errors.New(strings.Join(details, " "))
	}
	return err
}

// timeFlagHelp describes the values that parseSince accepts.
const timeFlagHelp = "a time, 2026-03-01T08:00:00Z, or a duration before now, 36h"

// parseSince parses a time that people write: RFC 3339, or how long ago, such as 36h.
func parseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := models.ParseTime(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-03-01T08:00:00Z nor a duration such as 36h", text)
	}
	return at.Time, nil
}
