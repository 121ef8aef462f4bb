package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/people"
	"millwright/service/store"
)

func organizationsCommand() *cobra.Command {
	return commandGroup("organizations", "List the organizations, and decide how their people sign in",
		listOrganizationsCommand(), requireOpenIDCommand(), liftOpenIDCommand())
}

func listOrganizationsCommand() *cobra.Command {
	return listCommand("list", "List organizations, oldest first", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]people.OrganizationRecord, error) {
		return svc.People.Organizations(ctx)
	}, organizationsTable)
}

func organizationsTable(w io.Writer, found []people.OrganizationRecord) {
	fmt.Fprintln(w, "ID\tKEY\tNAME\tPLAN\tSTATE\tCREATED\t")
	for _, o := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", o.ID, oneLine(o.Key), short(o.Name), oneLine(o.Plan.Name), organizationState(o), o.CreatedAt)
	}
}

// organizationState lists an organization's restrictions.
func organizationState(o people.OrganizationRecord) string {
	var limits []string
	for _, limit := range []struct {
		set  bool
		name string
	}{{o.Suspended, "suspended"}, {o.ReadOnly, "read-only"}, {!o.Plan.API, "no API"}, {o.OpenIDRequired, "no passwords"}} {
		if limit.set {
			limits = append(limits, limit.name)
		}
	}
	if len(limits) == 0 {
		return "active"
	}
	return strings.Join(limits, ", ")
}

func requireOpenIDCommand() *cobra.Command {
	return openIDRequirementCommand(true, &cobra.Command{
		Use:   "require-openid KEY",
		Short: "Let the people of an organization sign in only with OpenID Connect",
		Long: `Let the people of an organization, by key or id, sign in only with the OpenID Connect provider
of the settings. Sessions that began in another way end, passwords and links for forgotten passwords
let no one in. Some administrator needs a linked account of the provider, so that someone can sign in.`,
	}, func(ctx context.Context, s settings, svc *service.Service, id string) error {
		return svc.People.RequireOpenID(ctx, store.Operator(), store.NoKey, id, s.OIDCIssuer)
	})
}

func liftOpenIDCommand() *cobra.Command {
	return openIDRequirementCommand(false, &cobra.Command{
		Use:   "lift-openid KEY",
		Short: "Let the people of an organization sign in with passwords again",
		Long: `Let the people of an organization, by key or id, sign in with passwords again, including their
old ones. This is the way in if the OpenID Connect provider fails: the organization's log has it,
and its administrators get a notice. "people set-password" gives someone a password.`,
	}, func(ctx context.Context, _ settings, svc *service.Service, id string) error {
		return svc.People.LiftOpenID(ctx, store.Operator(), store.NoKey, id)
	})
}

// openIDRequirementCommand completes a command that changes how the people of an organization
// sign in.
func openIDRequirementCommand(required bool, cmd *cobra.Command, change func(context.Context, settings, *service.Service, string) error) *cobra.Command {
	var out output
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
			id, err := organizationID(ctx, svc, args[0])
			if err != nil {
				return err
			}
			if err := change(ctx, s, svc, id); err != nil {
				return describeError(err, "organization "+args[0])
			}
			value := map[string]any{"id": id, "openid_required": required}
			return out.show(cmd, value, func(w io.Writer) { fmt.Fprintf(w, "organization\t%s\t\nOpenID required\t%t\t\n", id, required) })
		})
	}
	out.flag(cmd)
	return cmd
}
