package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
)

func integrationsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "integrations",
		Short: "Look after the integrations of organizations",
		Args:  cobra.NoArgs, // a command there is none of shall not pass for help
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		listIntegrationsCommand(),
		createIntegrationCommand(),
		renameIntegrationCommand(),
		integrationScopesCommand(),
		actorIntegrationCommand("renew-secret ID", "Give the integration a new client secret, shown this once; the old one and its tokens end",
			(*service.Service).RenewIntegrationSecret),
		actorIntegrationCommand("turn-off ID", "Turn the integration off, as its organization may; its tokens end",
			(*service.Service).TurnIntegrationOff),
		actorIntegrationCommand("turn-on ID", "Turn the integration on again; it needs new tokens",
			(*service.Service).TurnIntegrationOn),
		actorIntegrationCommand("delete ID", "Delete the integration for good; what it did keeps its name",
			(*service.Service).DeleteIntegration),
		operatorIntegrationCommand("disable ID", "Disable the integration as the service; nobody in its organization can lift that",
			(*service.Service).DisableIntegration),
		operatorIntegrationCommand("enable ID", "Lift what disable did; one that its organization turned off stays off",
			(*service.Service).EnableIntegration),
	)
	return cmd
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
					return sentence(err, "organization "+filter.OrganizationID)
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
	var by acting
	var in service.NewIntegration
	var organization, definition string
	cmd := &cobra.Command{
		Use:   "create --organization ID --name NAME --scope SCOPE...",
		Short: "Create an integration; its client secret is shown this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("definition") {
				in.OrganizationDefinitionID = &definition
			}
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := by.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				made, err := svc.CreateIntegration(ctx, actor, organization, in)
				if err != nil {
					return sentence(err, by.within("organization "+organization))
				}
				return showIntegration(cmd, out, made)
			})
		},
	}
	out.flag(cmd)
	by.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "id of the organization it belongs to")
	cmd.Flags().StringVar(&in.Name, "name", "", "its name, for the activity log and lists of assignees")
	cmd.Flags().StringVar(&definition, "definition", "", "id of its organization permission definition; none without it")
	scopesFlag(cmd, &in.Scopes)
	require(cmd, "organization", "name", "scope")
	return cmd
}

func renameIntegrationCommand() *cobra.Command {
	var name string
	cmd := actorIntegrationCommand("rename ID --name NAME", "Give the integration another name",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.IntegrationRecord, error) {
			return svc.RenameIntegration(ctx, actor, id, name)
		})
	cmd.Flags().StringVar(&name, "name", "", "its new name")
	require(cmd, "name")
	return cmd
}

func integrationScopesCommand() *cobra.Command {
	var scopes []string
	cmd := actorIntegrationCommand("scopes ID --scope SCOPE...", "Replace the integration's scopes; its tokens end when one is taken away",
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

// require marks flags without which the command does nothing.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined a few lines above
		}
	}
}

// integrationChange is what a command does to one integration.
type integrationChange func(*service.Service, context.Context, service.Actor, string) (service.IntegrationRecord, error)

// actorIntegrationCommand is a command that an organization's people may do in the app.
func actorIntegrationCommand(use, short string, do integrationChange) *cobra.Command {
	var by acting
	cmd := integrationCommand(use, short, &by, do)
	by.flag(cmd)
	return cmd
}

// operatorIntegrationCommand is a command that is the service's own.
func operatorIntegrationCommand(use, short string, do integrationChange) *cobra.Command {
	return integrationCommand(use, short, &acting{}, do)
}

func integrationCommand(use, short string, by *acting, do integrationChange) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := by.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				changed, err := do(svc, ctx, actor, args[0])
				if err != nil {
					return sentence(err, by.within("integration "+args[0]))
				}
				return showIntegration(cmd, out, changed)
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// acting is who a command acts as: the operator, or a person with --as.
type acting struct{ person string }

func (a *acting) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.person, "as", "", "act as the person with this id or e-mail address, with that person's rights")
}

func (a *acting) actor(ctx context.Context, cmd *cobra.Command, svc *service.Service) (service.Actor, error) {
	if !cmd.Flags().Changed("as") {
		return service.Operator(), nil
	}
	actor, err := svc.PersonActor(ctx, a.person)
	if models.CodeOf(err) == models.CodeNotFound {
		return actor, errors.New("--as: there is no person with this id, or not exactly one with this e-mail address")
	}
	return actor, err
}

// within is what was looked for, and where a person looks.
func (a *acting) within(what string) string {
	if a.person != "" {
		return what + " in the person's organization"
	}
	return what
}

// sentence is a refusal as a sentence for people; what was looked for is named
// when there is no such thing.
func sentence(err error, what string) error {
	refusal, ok := errors.AsType[*models.Error](err)
	switch {
	case !ok:
		return err
	case refusal.Code == models.CodeNotFound:
		return fmt.Errorf("there is no %s", what)
	case len(refusal.Fields) > 0:
		details := make([]string, len(refusal.Fields))
		for i, field := range refusal.Fields {
			details[i] = field.Detail
		}
		return errors.New(strings.Join(details, " "))
	}
	return err
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

// oneLine keeps what others wrote from doing anything to a terminal or a table.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
