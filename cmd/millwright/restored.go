package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"millwright/service"
)

func restoredCommand() *cobra.Command {
	return commandGroup("restored", "Make the service consistent after restoring a backup",
		restoredOf("postgres", "Postgres was restored to an earlier time: invalidate all sync tokens and reload every open record's workflow", voidSyncTokens),
		restoredOf("temporal", "Temporal lost data: reload every open record's workflow, starting those that are missing", keepSyncTokens),
	)
}

// syncTokenPolicy says whether sync tokens survive a restore.
type syncTokenPolicy bool

const (
	// keepSyncTokens: Postgres has every write that a token promises.
	keepSyncTokens syncTokenPolicy = false
	// voidSyncTokens: Postgres lost writes, so a token might skip their replacements.
	voidSyncTokens syncTokenPolicy = true
)

func restoredOf(what, short string, tokens syncTokenPolicy) *cobra.Command {
	return &cobra.Command{
		Use:   what,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				if tokens == voidSyncTokens {
					if err := svc.VoidSyncTokens(ctx); err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), "all sync tokens are invalid")
				}
				records, err := svc.MarkAllDirty(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "open records whose workflows reload, from the next sweep on: %d\n", records)
				return nil
			})
		},
	}
}
