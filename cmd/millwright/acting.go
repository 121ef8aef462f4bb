package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
)

// acted is one thing that a command acts on, and all that acting takes.
type acted struct {
	cmd      *cobra.Command
	settings settings
	svc      *service.Service
	actor    service.Actor
	id       string
	out      output
}

// actOn is a command that does something to the one thing of its argument, such
// as an integration, as whoever by says.
func actOn(use, short, what string, by *acting, do func(ctx context.Context, a acted) error) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
				actor, err := by.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				return sentence(do(ctx, acted{cmd, s, svc, actor, args[0], out}), by.within(what+" "+args[0]))
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// acting is who a command acts as: the operator, or a person with --as.
type acting struct {
	person string
	// where a person looks, when it is not the person's organization.
	where string
}

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
	if a.person == "" {
		return what
	}
	return what + " " + cmp.Or(a.where, "in the person's organization")
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

// require marks flags without which the command does nothing.
func require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined a few lines above
		}
	}
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
