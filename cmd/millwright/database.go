package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"millwright/service"
)

func migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database to this program's schema",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := lookup("DATABASE_URL")
			if err != nil {
				return err
			}
			if url == "" {
				return errors.New("DATABASE_URL is not set; it is a Postgres URL, postgres://user:password@host:port/database")
			}
			applied, err := service.Migrate(cmd.Context(), url)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the schema is current; %d migrations applied\n", applied)
			return nil
		},
	}
}

func importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE.yaml",
		Short: "Create or update one organization from a file and print its ids and new secrets as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the file: %w", err)
			}
			svc, pools, err := openService(cmd.Context(), s, "millwright import", nil, requireSchema)
			if err != nil {
				return err
			}
			defer pools.Close()
			imported, err := svc.Import(cmd.Context(), text)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(imported)
		},
	}
}
