package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
)

// actorFlag is --as: whom a command acts as. Without it, that is the operator.
type actorFlag struct {
	person string
	// scope describes where a person's command looks, if not in the person's organization.
	scope string
}

func (f *actorFlag) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.person, "as", "", "act as the person with this id or e-mail address, with that person's permissions")
}

// actor returns the person of --as, or the operator.
func (f *actorFlag) actor(ctx context.Context, cmd *cobra.Command, svc *service.Service) (store.Actor, error) {
	if !cmd.Flags().Changed("as") {
		return store.Operator(), nil
	}
	actor, err := svc.Access.PersonActor(ctx, f.person)
	if models.CodeOf(err) == models.CodeNotFound {
		return actor, errors.New("--as: there is no person with this id, or not exactly one with this e-mail address")
	}
	actor.Operated = true
	return actor, err
}

// within adds where a person's command looked to what it looked for. f is nil for commands
// without --as.
func (f *actorFlag) within(what string) string {
	if f == nil || f.person == "" {
		return what
	}
	return what + " " + cmp.Or(f.scope, "in the person's organization")
}

// commandTarget is the thing that a command acts on, with all that acting needs.
type commandTarget struct {
	cmd      *cobra.Command
	settings settings
	svc      *service.Service
	actor    store.Actor
	id       string
	out      output
}

// targetCommand returns a command that acts on the thing its argument names, such
// as an integration. Error sentences call the thing what. as is nil if only the operator does that.
func targetCommand(use, short, what string, as *actorFlag, do func(ctx context.Context, target commandTarget) error) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				return describeError(do(ctx, commandTarget{cmd, s, svc, actor, args[0], out}), as.within(what+" "+args[0]))
			})
		},
	}
	out.flag(cmd)
	if as != nil {
		as.flag(cmd)
	}
	return cmd
}
