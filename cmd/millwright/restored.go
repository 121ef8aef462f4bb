package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"millwright/service"
)

func restoredCommand() *cobra.Command {
	return commands("restored", "After a restore, make right what a backup cannot know",
		restoredOf("postgres", "Postgres was set back to an earlier time: end all sync tokens, have every open record's workflow look again", true),
		restoredOf("temporal", "Temporal lost its data: have every open record's workflow look again, which starts those that are missing", false),
	)
}

func restoredOf(what, short string, voids bool) *cobra.Command {
	return &cobra.Command{
		Use:   what,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				if voids {
					if err := svc.VoidSyncTokens(ctx); err != nil {
						return err
					}
					fmt.Fprintln(cmd.OutOrStdout(), "all sync tokens have ended")
				}
				records, err := svc.MarkAllDirty(ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "open records whose workflows look again, from the next sweep on: %d\n", records)
				return nil
			})
		},
	}
}
