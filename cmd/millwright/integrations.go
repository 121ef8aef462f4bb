package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/integrations"
	"millwright/service/store"
)

func integrationsCommand() *cobra.Command {
	return commandGroup("integrations", "Manage the integrations of organizations",
		listIntegrationsCommand(),
		createIntegrationCommand(),
		renameIntegrationCommand(),
		integrationScopesCommand(),
		integrationOwnersCommand(),
		renewIntegrationSecretCommand(),
		actorIntegrationCommand("end-old-secret ID", "End the client secret before the last renewal, and the integration's tokens",
			(*integrations.Integrations).EndPreviousSecret),
		actorIntegrationCommand("turn-off ID", "Turn the integration off, as its organization can; its tokens stop working",
			(*integrations.Integrations).TurnIntegrationOff),
		actorIntegrationCommand("turn-on ID", "Turn the integration on; it needs new tokens",
			(*integrations.Integrations).TurnIntegrationOn),
		actorIntegrationCommand("delete ID", "Delete the integration; logs keep its name",
			(*integrations.Integrations).DeleteIntegration),
		operatorIntegrationCommand("disable ID", "Disable the integration; only operators can enable it again",
			(*integrations.Integrations).DisableIntegration),
		operatorIntegrationCommand("enable ID", "Undo disable; an integration that its organization turned off stays off",
			(*integrations.Integrations).EnableIntegration),
	)
}

func listIntegrationsCommand() *cobra.Command {
	var organization string
	cmd := listCommand("list", "List integrations, oldest first", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]integrations.Record, error) {
		id, err := anyOrganizationID(ctx, svc, organization)
		if err != nil {
			return nil, err
		}
		return svc.Integrations.List(ctx, id)
	}, integrationsTable)
	cmd.Flags().StringVar(&organization, "organization", "", "only integrations of the organization with this id or key")
	return cmd
}

func createIntegrationCommand() *cobra.Command {
	var out output
	var as actorFlag
	var in integrations.NewIntegration
	var scopes []models.Scope
	var organization, definition string
	cmd := &cobra.Command{
		Use:   "create --organization ID --name NAME --scope SCOPE...",
		Short: "Create an integration and show its client secret, this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("definition") {
				in.OrganizationDefinitionID = &definition
			}
			in.Scopes = textsOf(scopes)
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				id, err := organizationID(ctx, svc, organization)
				if err != nil {
					return err
				}
				created, err := svc.Integrations.CreateIntegration(ctx, actor, store.NoKey, id, in)
				if err != nil {
					return describeError(err, as.within("organization "+organization))
				}
				return showIntegration(cmd, out, created)
			})
		},
	}
	out.flag(cmd)
	as.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "id or key of the organization it belongs to")
	cmd.Flags().StringVar(&in.Name, "name", "", "its name, for the activity log and lists of assignees")
	cmd.Flags().StringVar(&definition, "definition", "", "id of its organization permission definition")
	scopesFlag(cmd, &scopes)
	require(cmd, "organization", "name", "scope")
	return cmd
}

func renameIntegrationCommand() *cobra.Command {
	var name string
	cmd := actorIntegrationCommand("rename ID --name NAME", "Rename the integration",
		func(s *integrations.Integrations, ctx context.Context, actor store.Actor, _ store.Key, id string) (integrations.Record, error) {
			return s.RenameIntegration(ctx, actor, id, name)
		})
	cmd.Flags().StringVar(&name, "name", "", "its new name")
	require(cmd, "name")
	return cmd
}

func integrationScopesCommand() *cobra.Command {
	var scopes []models.Scope
	cmd := actorIntegrationCommand("scopes ID --scope SCOPE...", "Replace the integration's scopes; removing one invalidates its tokens",
		func(s *integrations.Integrations, ctx context.Context, actor store.Actor, _ store.Key, id string) (integrations.Record, error) {
			return s.ChangeIntegrationScopes(ctx, actor, id, textsOf(scopes))
		})
	scopesFlag(cmd, &scopes)
	require(cmd, "scope")
	return cmd
}

func renewIntegrationSecretCommand() *cobra.Command {
	var overlap time.Duration
	cmd := actorIntegrationCommand("renew-secret ID", "Renew the client secret and show it, this once; the integration's tokens stop working, and the old secret, at once or after the overlap",
		func(s *integrations.Integrations, ctx context.Context, actor store.Actor, key store.Key, id string) (integrations.Record, error) {
			return s.RenewIntegrationSecret(ctx, actor, key, id, overlap)
		})
	cmd.Flags().DurationVar(&overlap, "overlap", 0, "how long the old secret still works, 1h to 72h")
	return cmd
}

func integrationOwnersCommand() *cobra.Command {
	var owners []string
	cmd := actorIntegrationCommand("owners ID --owner PERSON...", "Replace the integration's owners, who may renew its secrets and give it more; without --owner it has none",
		func(s *integrations.Integrations, ctx context.Context, actor store.Actor, key store.Key, id string) (integrations.Record, error) {
			return s.SetIntegrationOwners(ctx, actor, key, id, owners)
		})
	cmd.Flags().StringSliceVar(&owners, "owner", nil, "identity id of a person with the Integrations permission; repeat it for several")
	return cmd
}

func scopesFlag(cmd *cobra.Command, scopes *[]models.Scope) {
	choiceFlag(cmd, scopes, models.AllScopes, "scope", "scope")
}

// integrationChange is what a command does to one integration.
type integrationChange func(*integrations.Integrations, context.Context, store.Actor, store.Key, string) (integrations.Record, error)

// actorIntegrationCommand is a command that an organization's people may do in the console.
func actorIntegrationCommand(use, short string, do integrationChange) *cobra.Command {
	return integrationCommand(use, short, &actorFlag{}, do)
}

// operatorIntegrationCommand is a command that is the service's own.
func operatorIntegrationCommand(
	use, short string, do func(*integrations.Integrations, context.Context, store.Actor, string) (integrations.Record, error),
) *cobra.Command {
	return integrationCommand(use, short, nil,
		func(s *integrations.Integrations, ctx context.Context, actor store.Actor, _ store.Key, id string) (integrations.Record, error) {
			return do(s, ctx, actor, id)
		})
}

func integrationCommand(use, short string, as *actorFlag, do integrationChange) *cobra.Command {
	return targetCommand(use, short, "integration", as, func(ctx context.Context, target commandTarget) error {
		changed, err := do(target.svc.Integrations, ctx, target.actor, store.NoKey, target.id)
		if err != nil {
			return err
		}
		return showIntegration(target.cmd, target.out, changed)
	})
}

func integrationsTable(w io.Writer, found []integrations.Record) {
	fmt.Fprintln(w, "ID\tNAME\tSTATE\tORGANIZATION\tCREATED\tSCOPES\t")
	for _, i := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", i.ID, oneLine(i.Name), integrationState(i), i.OrganizationID, i.CreatedAt, strings.Join(i.Scopes, " "))
	}
}

func showIntegration(cmd *cobra.Command, out output, i integrations.Record) error {
	return out.show(cmd, i, func(w io.Writer) {
		fmt.Fprintf(w, "id\t%s\t\norganization\t%s\t\nname\t%s\t\nscopes\t%s\t\nstate\t%s\t\nowners\t%s\t\ncreated\t%s\t\nclient id\t%s\t\n",
			i.ID, i.OrganizationID, oneLine(i.Name), strings.Join(i.Scopes, " "), integrationState(i), cmp.Or(strings.Join(i.Owners, " "), "-"), i.CreatedAt, i.ClientID)
		if i.ClientSecret != "" {
			fmt.Fprintf(w, "client secret\t%s\t(shown this once)\n", i.ClientSecret)
		}
		if i.PreviousSecretUntil != nil {
			fmt.Fprintf(w, "old secret until\t%s\t\n", i.PreviousSecretUntil)
		}
	})
}

func integrationState(i integrations.Record) string {
	switch {
	case i.DisabledByService:
		return "disabled by the service"
	case !i.Enabled:
		return "off"
	}
	return "on"
}
