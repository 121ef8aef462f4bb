package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"millwright/service"
)

func integrationsCommand() *cobra.Command {
	return commandGroup("integrations", "Manage the integrations of organizations",
		listIntegrationsCommand(),
		createIntegrationCommand(),
		renameIntegrationCommand(),
		integrationScopesCommand(),
		actorIntegrationCommand("renew-secret ID", "Renew the client secret and show it, this once; the old secret and the integration's tokens stop working",
			(*service.Service).RenewIntegrationSecret),
		actorIntegrationCommand("turn-off ID", "Turn the integration off, as its organization can; its tokens stop working",
			(*service.Service).TurnIntegrationOff),
		actorIntegrationCommand("turn-on ID", "Turn the integration on; it needs new tokens",
			(*service.Service).TurnIntegrationOn),
		actorIntegrationCommand("delete ID", "Delete the integration; logs keep its name",
			(*service.Service).DeleteIntegration),
		operatorIntegrationCommand("disable ID", "Disable the integration; only operators can enable it again",
			(*service.Service).DisableIntegration),
		operatorIntegrationCommand("enable ID", "Undo disable; an integration that its organization turned off stays off",
			(*service.Service).EnableIntegration),
	)
}

func listIntegrationsCommand() *cobra.Command {
	var out output
	var filter service.IntegrationFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List integrations, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				found, err := svc.Integrations(ctx, filter)
				if err != nil {
					return describeError(err, "organization "+filter.OrganizationID)
				}
				return out.show(cmd, found, func(w io.Writer) { integrationsTable(w, found) })
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&filter.OrganizationID, "organization", "", "only those of the organization with this id")
	return cmd
}

func createIntegrationCommand() *cobra.Command {
	var out output
	var as actorFlag
	var in service.NewIntegration
	var organization, definition string
	cmd := &cobra.Command{
		Use:   "create --organization ID --name NAME --scope SCOPE...",
		Short: "Create an integration and show its client secret, this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("definition") {
				in.OrganizationDefinitionID = &definition
			}
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				created, err := svc.CreateIntegration(ctx, actor, organization, in)
				if err != nil {
					return describeError(err, as.within("organization "+organization))
				}
				return showIntegration(cmd, out, created)
			})
		},
	}
	out.flag(cmd)
	as.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "id of the organization it belongs to")
	cmd.Flags().StringVar(&in.Name, "name", "", "its name, for the activity log and lists of assignees")
	cmd.Flags().StringVar(&definition, "definition", "", "id of its organization permission definition")
	scopesFlag(cmd, &in.Scopes)
	require(cmd, "organization", "name", "scope")
	return cmd
}

func renameIntegrationCommand() *cobra.Command {
	var name string
	cmd := actorIntegrationCommand("rename ID --name NAME", "Rename the integration",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error) {
			return svc.RenameIntegration(ctx, actor, id, name)
		})
	cmd.Flags().StringVar(&name, "name", "", "its new name")
	require(cmd, "name")
	return cmd
}

func integrationScopesCommand() *cobra.Command {
	var scopes []string
	cmd := actorIntegrationCommand("scopes ID --scope SCOPE...", "Replace the integration's scopes; removing one invalidates its tokens",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error) {
			return svc.ChangeIntegrationScopes(ctx, actor, id, scopes)
		})
	scopesFlag(cmd, &scopes)
	require(cmd, "scope")
	return cmd
}

func scopesFlag(cmd *cobra.Command, scopes *[]string) {
	cmd.Flags().StringSliceVar(scopes, "scope", nil, "a scope, such as work_orders:read; once for each, or separated by commas")
}

// integrationChange is what a command does to one integration.
type integrationChange func(*service.Service, context.Context, service.Actor, string) (service.IntegrationRecord, error)

// actorIntegrationCommand is a command that an organization's people may do in the app.
func actorIntegrationCommand(use, short string, do integrationChange) *cobra.Command {
	var as actorFlag
	cmd := integrationCommand(use, short, &as, do)
	as.flag(cmd)
	return cmd
}

// operatorIntegrationCommand is a command that is the service's own.
func operatorIntegrationCommand(use, short string, do integrationChange) *cobra.Command {
	return integrationCommand(use, short, &actorFlag{}, do)
}

func integrationCommand(use, short string, as *actorFlag, do integrationChange) *cobra.Command {
	return targetCommand(use, short, "integration", as, func(ctx context.Context, target commandTarget) error {
		changed, err := do(target.svc, ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		return showIntegration(target.cmd, target.out, changed)
	})
}

func integrationsTable(w io.Writer, found []service.IntegrationRecord) {
	fmt.Fprintln(w, "ID\tNAME\tSTATE\tSCOPES\tORGANIZATION\tCREATED\t")
	for _, i := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", i.ID, oneLine(i.Name), integrationState(i), strings.Join(i.Scopes, " "), i.OrganizationID, i.CreatedAt)
	}
}

func showIntegration(cmd *cobra.Command, out output, i service.IntegrationRecord) error {
	return out.show(cmd, i, func(w io.Writer) {
		fmt.Fprintf(w, "id\t%s\t\norganization\t%s\t\nname\t%s\t\nscopes\t%s\t\nstate\t%s\t\nowner\t%s\t\ncreated\t%s\t\nclient id\t%s\t\n",
			i.ID, i.OrganizationID, oneLine(i.Name), strings.Join(i.Scopes, " "), integrationState(i), orDash(i.OwnerID), i.CreatedAt, i.ClientID)
		if i.ClientSecret != "" {
			fmt.Fprintf(w, "client secret\t%s\t(shown this once)\n", i.ClientSecret)
		}
	})
}

func integrationState(i service.IntegrationRecord) string {
	switch {
	case i.DisabledByService:
		return "disabled by the service"
	case !i.Enabled:
		return "off"
	}
	return "on"
}
