package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/activities"
	"millwright/models"
	"millwright/service"
	"millwright/webhook"
)

func webhooksCommand() *cobra.Command {
	return commands("webhooks", "Look after webhook addresses",
		listWebhooksCommand(),
		createWebhookCommand(),
		changeWebhookCommand(),
		enableWebhookCommand(),
		disableWebhookCommand(),
		webhookCommand("renew-secret ID", "Give the address a new signing secret, shown this once; the old one stays valid for 24 hours",
			(*service.Service).RenewWebhookSecret),
		deleteWebhookCommand(),
		testWebhookCommand(),
	)
}

func listWebhooksCommand() *cobra.Command {
	var out output
	var filter service.WebhookFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List webhook addresses, the oldest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				found, err := svc.Webhooks(ctx, filter)
				if err != nil {
					return sentence(err, "integration "+filter.IntegrationID)
				}
				if found == nil {
					found = []service.Webhook{}
				}
				return out.show(cmd, found, func(w io.Writer) { webhooksTable(w, found) })
			})
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&filter.IntegrationID, "integration", "", "only those of the integration with this id")
	return cmd
}

func createWebhookCommand() *cobra.Command {
	var out output
	var by acting
	var integration, url string
	var events []string
	cmd := &cobra.Command{
		Use:   "create --integration ID --url URL --event TYPE...",
		Short: "Create a webhook address; its signing secret is shown this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := by.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				made, err := svc.CreateWebhook(ctx, actor, integration, service.NewWebhook{URL: url, Events: eventTypes(events)})
				if err != nil {
					return sentence(err, by.within("integration "+integration))
				}
				return showWebhook(cmd, out, made)
			})
		},
	}
	out.flag(cmd)
	by.flag(cmd)
	cmd.Flags().StringVar(&integration, "integration", "", "id of the integration it belongs to")
	cmd.Flags().StringVar(&url, "url", "", "where deliveries go, https://…")
	eventsFlag(cmd, &events)
	require(cmd, "integration", "url", "event")
	return cmd
}

func changeWebhookCommand() *cobra.Command {
	var url string
	var events []string
	var cmd *cobra.Command
	cmd = webhookCommand("change ID [--url URL] [--event TYPE...]", "Give the address another URL, or other event types in place of those it has",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.Webhook, error) {
			var change service.WebhookChange
			if cmd.Flags().Changed("url") {
				change.URL = &url
			}
			if cmd.Flags().Changed("event") {
				change.Events = eventTypes(events)
			}
			return svc.ChangeWebhook(ctx, actor, id, change)
		})
	cmd.Flags().StringVar(&url, "url", "", "where deliveries go from now on, https://…")
	eventsFlag(cmd, &events)
	cmd.MarkFlagsOneRequired("url", "event")
	return cmd
}

func eventsFlag(cmd *cobra.Command, events *[]string) {
	cmd.Flags().StringSliceVar(events, "event", nil, "an event type, such as work_order.created; once for each, or separated by commas")
}

func eventTypes(names []string) []models.EventType {
	types := make([]models.EventType, len(names))
	for i, name := range names {
		types[i] = models.EventType(name)
	}
	return types
}

// enabled is an address that was turned on, and how many deliveries were released.
type enabled struct {
	service.Webhook
	Released int `json:"released"`
}

func enableWebhookCommand() *cobra.Command {
	var since string
	const short = "Turn the address on; with --since, send what failed or was held since then"
	cmd := actOnWebhook("enable ID [--since TIME]", short, func(ctx context.Context, a acted) error {
		var from *models.Time
		if a.cmd.Flags().Changed("since") {
			at, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			from = new(models.TimeOf(at))
		}
		on, released, err := a.svc.EnableWebhook(ctx, a.actor, a.id, from)
		if err != nil {
			return err
		}
		return a.out.show(a.cmd, enabled{on, released}, func(w io.Writer) {
			webhookLines(w, on)
			fmt.Fprintf(w, "released\t%s\t\n", deliveriesNumber(released))
		})
	})
	sinceFlag(cmd, &since)
	return cmd
}

func sinceFlag(cmd *cobra.Command, since *string) {
	cmd.Flags().StringVar(since, "since", "", "the deliveries of events since this time, or so long ago: 2026-03-01T08:00:00Z, 36h")
}

func disableWebhookCommand() *cobra.Command {
	var reason string
	cmd := webhookCommand("disable ID [--reason TEXT]", "Turn the address off; its deliveries are held until it is on again",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.Webhook, error) {
			return svc.DisableWebhook(ctx, actor, id, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who find it off")
	return cmd
}

// deleted is an address that is no more.
type deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func deleteWebhookCommand() *cobra.Command {
	return actOnWebhook("delete ID", "Delete the address with its deliveries", func(ctx context.Context, a acted) error {
		if err := a.svc.DeleteWebhook(ctx, a.actor, a.id); err != nil {
			return err
		}
		return a.out.show(a.cmd, deleted{a.id, true}, func(w io.Writer) { fmt.Fprintf(w, "deleted\t%s\t\n", a.id) })
	})
}

// tested is the one attempt that a test is.
type tested struct {
	WebhookID string `json:"webhook_id"`
	EventID   string `json:"event_id"`
	service.AttemptRecord
}

func testWebhookCommand() *cobra.Command {
	const short = "Send a ping, on or off, and show what the receiver answers; succeeds when that is 2xx"
	return actOnWebhook("test ID", short, func(ctx context.Context, a acted) error {
		address, ping, err := a.svc.TestWebhook(ctx, a.actor, a.id)
		if err != nil {
			return err
		}
		attempt, err := sendOnce(ctx, a.settings, address, ping)
		if err != nil {
			return err
		}
		result := tested{address.ID, ping.EventID, attempt.Record()}
		if err := a.out.show(a.cmd, result, func(w io.Writer) { attemptLines(w, result.AttemptRecord) }); err != nil {
			return err
		}
		if failure := attempt.Failure(); failure != "" {
			return errors.New(failure)
		}
		return nil
	})
}

// sendOnce makes one attempt with a sender of its own.
func sendOnce(ctx context.Context, s settings, address service.Address, d service.RenderedDelivery) (service.Attempt, error) {
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		return service.Attempt{}, err
	}
	sender := s.sender()
	defer sender.Close()
	return activities.Send(ctx, sender, signer, time.Now, address.URL, d), nil
}

// webhookCommand is a command that changes one address and shows it.
func webhookCommand(use, short string, do func(*service.Service, context.Context, service.Actor, string) (service.Webhook, error)) *cobra.Command {
	return actOnWebhook(use, short, func(ctx context.Context, a acted) error {
		changed, err := do(a.svc, ctx, a.actor, a.id)
		if err != nil {
			return err
		}
		return showWebhook(a.cmd, a.out, changed)
	})
}

func actOnWebhook(use, short string, do func(ctx context.Context, a acted) error) *cobra.Command {
	var by acting
	cmd := actOn(use, short, "webhook address", &by, do)
	by.flag(cmd)
	return cmd
}

func webhooksTable(w io.Writer, found []service.Webhook) {
	fmt.Fprintln(w, "ID\tINTEGRATION\tSTATE\tURL\tEVENTS\tOFF SINCE\tREASON\t")
	for _, h := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", h.ID, h.IntegrationID, webhookState(h), h.URL, eventsCell(h), orDash(h.OffAt), textCell(h.OffReason))
	}
}

func showWebhook(cmd *cobra.Command, out output, h service.Webhook) error {
	return out.show(cmd, h, func(w io.Writer) { webhookLines(w, h) })
}

func webhookLines(w io.Writer, h service.Webhook) {
	fmt.Fprintf(w, "id\t%s\t\nintegration\t%s\t\nurl\t%s\t\nevents\t%s\t\nstate\t%s\t\n", h.ID, h.IntegrationID, h.URL, eventsCell(h), webhookState(h))
	if !h.Enabled {
		fmt.Fprintf(w, "off since\t%s\t\nreason\t%s\t\n", orDash(h.OffAt), textCell(h.OffReason))
	}
	if h.Secret != "" {
		fmt.Fprintf(w, "secret\t%s\t(shown this once)\n", h.Secret)
	}
}

func webhookState(h service.Webhook) string {
	if h.Enabled {
		return "on"
	}
	return "off"
}

func eventsCell(h service.Webhook) string {
	names := make([]string, len(h.Events))
	for i, e := range h.Events {
		names[i] = string(e)
	}
	return strings.Join(names, " ")
}

// textCell is orDash for what others wrote.
func textCell(text *string) string { return oneLine(orDash(text)) }
