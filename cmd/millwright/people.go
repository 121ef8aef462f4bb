package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"millwright/service"
	"millwright/service/people"
	"millwright/service/store"
)

func peopleCommand() *cobra.Command {
	return commandGroup("people", "Manage who can sign in to the console",
		listPeopleCommand(), invitePersonCommand(), setPasswordCommand(), changeEmailCommand(),
		deactivatePersonCommand(),
		personAccessCommand("activate PERSON", "Give a deactivated person access again", func(ctx context.Context, _ *cobra.Command, svc *service.Service, id, _ string) (people.PersonAccess, error) {
			return svc.People.ActivatePerson(ctx, store.Operator(), store.NoKey, id)
		}),
	)
}

// findPerson returns the id of the person that an argument names: an id, or an e-mail
// address, for which an organization may have to be given.
func findPerson(ctx context.Context, svc *service.Service, reference, organization string) (string, error) {
	ids, err := svc.People.Find(ctx, reference, organization)
	switch {
	case err != nil:
		return "", describeError(err, "organization "+organization)
	case len(ids) == 0:
		return "", fmt.Errorf("there is no person %s", oneLine(reference))
	case len(ids) > 1:
		return "", fmt.Errorf("several organizations have a person %s: name one with --organization", oneLine(reference))
	}
	return ids[0], nil
}

func listPeopleCommand() *cobra.Command {
	var organization string
	var filter people.PersonFilter
	cmd := listCommand("list --organization KEY", "List the people of an organization by name, with their access", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]people.PersonSummary, error) {
		id, err := organizationID(ctx, svc, organization)
		if err != nil {
			return nil, err
		}
		return upTo(math.MaxInt, func(size int) ([]people.PersonSummary, error) {
			filter.Limit = size
			page, err := svc.People.ListForPerson(ctx, store.Operator(), id, filter)
			if len(page) > 0 {
				last := page[len(page)-1]
				filter.AfterName, filter.AfterID = last.Name, last.ID
			}
			return page, err
		})
	}, peopleTable)
	cmd.Flags().StringVar(&organization, "organization", "", "key or id of the organization")
	cmd.Flags().StringVar(&filter.Search, "search", "", "only people with these words in their name or e-mail address")
	cmd.Flags().BoolVar(&filter.Deactivated, "deactivated", false, "people who lost access instead of those who have it")
	require(cmd, "organization")
	return cmd
}

func peopleTable(w io.Writer, found []people.PersonSummary) {
	fmt.Fprintln(w, "ID\tNAME\tE-MAIL\tPERMISSIONS\tSIGNS IN\tSTATE\t")
	for _, p := range found {
		permissions, state := textCell(p.Definition), "on"
		if p.Admin {
			permissions = "administrator"
		}
		switch {
		case p.DeactivatedAt != nil:
			state = "deactivated"
		case p.Invited:
			state = "invited"
		}
		signsIn := "-"
		if len(p.SignsIn) > 0 {
			signsIn = strings.Join(p.SignsIn, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", p.ID, oneLine(p.Name), oneLine(p.Email), permissions, signsIn, state)
	}
}

func invitePersonCommand() *cobra.Command {
	var out output
	var in people.Invitation
	var organization, definition string
	cmd := &cobra.Command{
		Use:   "invite EMAIL --organization KEY",
		Short: "Invite a person and print a link, which works once, for a week",
		Long: `Invite a person and print a link with which the person chooses a password. The link works
once, for a week; it is a secret. A person who is there without a way to sign in gets a new link.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Email = args[0]
			if cmd.Flags().Changed("definition") {
				in.DefinitionID = &definition
			}
			return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
				id, err := organizationID(ctx, svc, organization)
				if err != nil {
					return err
				}
				person, link, err := svc.People.InvitePerson(ctx, store.Operator(), store.NoKey, id, in)
				if err != nil {
					return describeError(err, "organization "+organization)
				}
				url := link.URL(s.PublicURL)
				value := map[string]any{"person_id": person.ID, "url": url, "expires_at": link.ExpiresAt}
				return out.show(cmd, value, func(w io.Writer) {
					fmt.Fprintf(w, "person\t%s\t\nlink\t%s\t\nexpires\t%s\t(works once)\n", person.ID, url, link.ExpiresAt)
				})
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "key or id of the organization")
	cmd.Flags().StringVar(&in.Name, "name", "", "the person's name; the person can change it")
	cmd.Flags().BoolVar(&in.Admin, "admin", false, "make the person an administrator")
	cmd.Flags().StringVar(&definition, "definition", "", "id of the person's organization permission definition")
	require(cmd, "organization")
	return cmd
}

func setPasswordCommand() *cobra.Command {
	var out output
	var organization string
	var generate bool
	cmd := &cobra.Command{
		Use:   "set-password PERSON",
		Short: "Set a person's password; the person's sessions end",
		Long: `Set the password of a person, by id or e-mail address, to the first line of standard input,
or to a random one that is printed. The person's sessions, links and linked accounts end. While the
organization requires OpenID Connect, the password lets no one in: "organizations lift-openid" lifts that.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			password := strings.ToLower(rand.Text())
			if !generate {
				line, err := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), 4096)).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return fmt.Errorf("cannot read the password from standard input: %w", err)
				}
				password = strings.TrimRight(line, "\r\n")
			}
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				id, err := findPerson(ctx, svc, args[0], organization)
				if err != nil {
					return err
				}
				if err := svc.People.SetPassword(ctx, store.Operator(), id, password); err != nil {
					return describeError(err, "person "+args[0])
				}
				value := map[string]any{"person_id": id}
				if generate {
					value["password"] = password
				}
				return out.show(cmd, value, func(w io.Writer) {
					fmt.Fprintf(w, "person\t%s\t\n", id)
					if generate {
						fmt.Fprintf(w, "password\t%s\t(shown this once)\n", password)
					}
				})
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "key or id of the organization, if several have a person with the e-mail address")
	cmd.Flags().BoolVar(&generate, "generate", false, "make a random password and print it")
	return cmd
}

func changeEmailCommand() *cobra.Command {
	const short = "Change a person's e-mail address; sessions and links end, and the former address is told"
	cmd := personAccessCommand("change-email PERSON EMAIL", short, func(ctx context.Context, cmd *cobra.Command, svc *service.Service, id, _ string) (people.PersonAccess, error) {
		return svc.People.ChangePersonEmail(ctx, store.Operator(), store.NoKey, id, cmd.Flags().Arg(1))
	})
	cmd.Args = cobra.ExactArgs(2)
	return cmd
}

func personTable(w io.Writer, p people.PersonAccess) {
	fmt.Fprintf(w, "person\t%s\t\nname\t%s\t\ne-mail\t%s\t\ndeactivated\t%s\t\n", p.ID, oneLine(p.Name), oneLine(p.Email), orDash(p.DeactivatedAt))
}

func deactivatePersonCommand() *cobra.Command {
	var as actorFlag
	var replacement string
	cmd := personAccessCommand("deactivate PERSON", "Take a person's access away; sessions end at once, records keep the name", func(ctx context.Context, cmd *cobra.Command, svc *service.Service, id, organization string) (people.PersonAccess, error) {
		actor, err := as.actor(ctx, cmd, svc)
		if err != nil {
			return people.PersonAccess{}, err
		}
		replacementID := ""
		if replacement != "" {
			if actor.IsOperator() {
				return people.PersonAccess{}, errors.New("--replace-with requires --as: work orders are assigned with that person's permissions")
			}
			if replacementID, err = findPerson(ctx, svc, replacement, organization); err != nil {
				return people.PersonAccess{}, fmt.Errorf("--replace-with: %w", err)
			}
		}
		return svc.People.DeactivatePerson(ctx, actor, store.NoKey, id, replacementID)
	})
	as.flag(cmd)
	cmd.Flags().StringVar(&replacement, "replace-with", "", "id or e-mail address of who replaces the person in teams, as owner of integrations and on open work orders; requires --as")
	return cmd
}

// personAccessCommand is a command that changes one person. change gets the value of
// --organization too.
func personAccessCommand(use, short string, change func(ctx context.Context, cmd *cobra.Command, svc *service.Service, id, organization string) (people.PersonAccess, error)) *cobra.Command {
	var out output
	var organization string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				id, err := findPerson(ctx, svc, args[0], organization)
				if err != nil {
					return err
				}
				person, err := change(ctx, cmd, svc, id, organization)
				if err != nil {
					return describeError(err, "person "+args[0])
				}
				return out.show(cmd, person, func(w io.Writer) { personTable(w, person) })
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&organization, "organization", "", "key or id of the organization, if several have a person with the e-mail address")
	return cmd
}
