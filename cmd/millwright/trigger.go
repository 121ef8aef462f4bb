package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/worker"
)

func triggerCommand() *cobra.Command {
	var out output
	var as actorFlag
	var address string
	types := strings.Join(textsOf(models.AllEventTypes), ", ")
	cmd := &cobra.Command{
		Use:   "trigger EVENT_TYPE --address ID",
		Short: "Send an example event to a webhook address and show the receiver's response; exits 0 only on 2xx",
		Long: `Send a signed event of a type to one webhook address, once, and show the receiver's response.
It is marked as a test, and its record is made up: no GET finds it. It is sent even if
the address is off or does not subscribe to the type. A worker process must be running.

Event types: ` + types + ".",
		Args:      cobra.ExactArgs(1),
		ValidArgs: textsOf(models.AllEventTypes),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := models.EventType(args[0])
			if !kind.Known() {
				return fmt.Errorf("there is no event type %q; choose from %s", kind, types)
			}
			return operate(cmd, func(ctx context.Context, s settings, svc *service.Service) error {
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				return describeError(sendTest(ctx, commandTarget{cmd, s, svc, actor, address, out}, kind), as.within("webhook address "+address))
			})
		},
	}
	out.flag(cmd)
	as.flag(cmd)
	cmd.Flags().StringVar(&address, "address", "", "id of the webhook address")
	require(cmd, "address")
	return cmd
}

// sendTest has a worker send an event of the type to the address and shows the response.
// Only a 2xx is no error.
func sendTest(ctx context.Context, target commandTarget, kind models.EventType) error {
	test, err := target.svc.Webhooks.BeginWebhookTest(ctx, target.actor, store.NoKey, target.id)
	if err != nil {
		return err
	}
	temporal, err := newTemporalClient(target.settings, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	if err := (worker.Tester{Client: temporal}).Send(ctx, test, kind); err != nil {
		return err
	}
	sent, err := target.svc.Webhooks.WebhookTest(ctx, target.actor, target.id, test.EventID)
	if err != nil {
		return err
	}
	if err := target.out.show(target.cmd, sent, func(w io.Writer) { attemptLines(w, sent.AttemptRecord) }); err != nil {
		return err
	}
	if sent.Failure != "" {
		return errors.New(sent.Failure)
	}
	return nil
}
