package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/worker"
)

// operate runs one operator's command on the service: connected to the database,
// which must have the current schema, and with a poker, so that what the command
// asks for begins at once; without Temporal the sweep finds it.
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
	poker := worker.NewWaker(ctx, temporal, s.logger())
	defer stopPoker(poker)
	svc, pool, err := openService(ctx, s, "millwright "+cmd.Name(), poker, requireSchema)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(ctx, s, svc)
}

// output is how an operator's command shows what it found: a table for people,
// JSON for programs.
type output struct{ json bool }

// flag adds --json to the command.
func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON, for programs")
}

// show prints value as JSON when that was asked for, otherwise the table that
// the function writes: cells end with a tab, lines with a newline.
func (o *output) show(cmd *cobra.Command, value any, table func(w io.Writer)) error {
	if o.json {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	table(w)
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(line, " \n"))
	}
	return nil
}

// orDash writes an optional value of a table's cell.
func orDash[T any](value *T) string {
	if value == nil {
		return "-"
	}
	return fmt.Sprint(*value)
}

// parseSince reads a point in time for people: an RFC 3339 time, or how long
// ago, such as 36h.
func parseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%q is neither a time such as 2026-03-01T08:00:00Z nor how long ago, such as 36h", text)
	}
	return at, nil
}

// commands is a command that does nothing itself and has others below it.
func commands(name, short string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs, // a command there is none of shall not pass for help
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	return cmd
}
