package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/worker"
)

func restoredCommand() *cobra.Command {
	return commandGroup("restored", "Make the service consistent after restoring a backup",
		restoredOf("postgres", "Postgres was restored to an earlier time: reload every workflow"),
		restoredOf("temporal", "Temporal lost data: reload every workflow, starting those that are missing"),
	)
}

func restoredOf(what, short string) *cobra.Command {
	return &cobra.Command{
		Use:   what,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
				return restoreWorkflows(ctx, cmd.OutOrStdout(), s, svc)
			})
		},
	}
}

// restoreWorkflows has every workflow reload that must be open, and starts those that are
// missing: of records through the sweep, which does it in portions, of addresses and
// failing deliveries at once. It also creates the schedules that a lost Temporal lacks.
func restoreWorkflows(ctx context.Context, out io.Writer, s settings, svc *service.Service) error {
	records, err := svc.Upkeep.MarkAllDirty(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "open records whose workflows reload, from the next sweep on: %d\n", records)
	temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if err := worker.Prepare(ctx, worker.Options{Client: temporal, Namespace: s.Namespace}); err != nil {
		return err
	}
	addresses, err := svc.Upkeep.WantedAddresses(ctx)
	if err != nil {
		return err
	}
	failing, err := svc.Webhooks.Wanted(ctx)
	if err != nil {
		return err
	}
	if err := worker.WakeAll(ctx, temporal, addresses, failing); err != nil {
		return err
	}
	fmt.Fprintf(out, "workflows of webhook addresses that were woken: %d\nworkflows of failing deliveries that were woken: %d\n", len(addresses), len(failing))
	return nil
}
