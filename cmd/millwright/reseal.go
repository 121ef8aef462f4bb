package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"millwright/service"
)

func resealCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reseal",
		Short: "Reseal all signing secrets with the first of SECRET_SEALING_KEYS, so that the others can be removed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				addresses, err := svc.Upkeep.Reseal(ctx)
				fmt.Fprintf(cmd.OutOrStdout(), "webhook addresses resealed: %d\n", addresses)
				return err
			})
		},
	}
}
