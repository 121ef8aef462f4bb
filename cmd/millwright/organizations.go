package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"millwright/service"
)

func organizationsCommand() *cobra.Command {
	return commandGroup("organizations", "List the organizations", listOrganizationsCommand())
}

func listOrganizationsCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List organizations, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				found, err := svc.Organizations(ctx)
				if err != nil {
					return err
				}
				return out.show(cmd, found, func(w io.Writer) { organizationsTable(w, found) })
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func organizationsTable(w io.Writer, found []service.OrganizationRecord) {
	fmt.Fprintln(w, "ID\tKEY\tNAME\tPLAN\tSTATE\tCREATED\t")
	for _, o := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", o.ID, oneLine(o.Key), short(o.Name), oneLine(o.Plan.Name), organizationState(o), o.CreatedAt)
	}
}

// organizationState says what an organization cannot do.
func organizationState(o service.OrganizationRecord) string {
	var limits []string
	for _, limit := range []struct {
		set  bool
		name string
	}{{o.Suspended, "suspended"}, {o.ReadOnly, "read-only"}, {!o.Plan.API, "no API"}} {
		if limit.set {
			limits = append(limits, limit.name)
		}
	}
	if len(limits) == 0 {
		return "active"
	}
	return strings.Join(limits, ", ")
}
