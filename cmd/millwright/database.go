package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"millwright/service/store"
)

func migrateCommand() *cobra.Command {
	var role string
	cmd := &cobra.Command{
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
			applied, equal, err := store.Migrate(cmd.Context(), url, role)
			if err != nil {
				return err
			}
			for _, e := range equal {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s and %s of %s have e-mail addresses that count as the same; only the second signs in with it until the first has another\n", e.PersonID, e.OtherID, e.OrganizationID)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the schema is current; %d migrations applied\n", applied)
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "grant-to", "", "role that API servers, worker processes and commands connect as: may read and write rows, but define nothing (default: they connect as the same role as this command)")
	return cmd
}
