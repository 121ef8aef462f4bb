package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"millwright/api"
)

func openAPICommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "openapi",
		Short: "Print the OpenAPI document of the API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			document, err := api.Document()
			if err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(document)
				return err
			}
			if err := os.WriteFile(output, document, 0o644); err != nil { //nolint:gosec // everyone may read it
				return fmt.Errorf("write the document: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "write to this file instead")
	return command
}
