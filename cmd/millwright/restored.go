package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"millwright/service"
)

func restoredCommand() *cobra.Command {
	return commandGroup("restored", "Make the service consistent after restoring a backup",
		restoredOf("postgres", "Postgres was restored to an earlier time: reload every open record's workflow"),
		restoredOf("temporal", "Temporal lost data: reload every open record's workflow, starting those that are missing"),
	)
}

func restoredOf(what, short string) *cobra.Command {
	return &cobra.Command{
		Use:   what,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
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
