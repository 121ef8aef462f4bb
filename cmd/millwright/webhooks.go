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
	return commandGroup("webhooks", "Manage webhook addresses",
		listWebhooksCommand(),
		createWebhookCommand(),
		changeWebhookCommand(),
		enableWebhookCommand(),
		disableWebhookCommand(),
		webhookCommand("renew-secret ID", "Renew the signing secret and show it, this once; the old one stays valid for 24 hours",
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
					return describeError(err, "integration "+filter.IntegrationID)
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
	var as actorFlag
	var integration, url string
	var events []string
	cmd := &cobra.Command{
		Use:   "create --integration ID --url URL --event TYPE...",
		Short: "Create a webhook address and show its signing secret, this once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				created, err := svc.CreateWebhook(ctx, actor, integration, service.NewWebhook{URL: url, Events: eventTypes(events)})
				if err != nil {
					return describeError(err, as.within("integration "+integration))
				}
				return showWebhook(cmd, out, created)
			})
		},
	}
	out.flag(cmd)
	as.flag(cmd)
	cmd.Flags().StringVar(&integration, "integration", "", "id of the integration it belongs to")
	cmd.Flags().StringVar(&url, "url", "", "URL that deliveries are sent to, https://…")
	eventsFlag(cmd, &events)
	require(cmd, "integration", "url", "event")
	return cmd
}

func changeWebhookCommand() *cobra.Command {
	var url string
	var events []string
	var cmd *cobra.Command
	cmd = webhookCommand("change ID [--url URL] [--event TYPE...]", "Change the address's URL, or replace its event types",
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
	cmd.Flags().StringVar(&url, "url", "", "new URL that deliveries are sent to, https://…")
	eventsFlag(cmd, &events)
	cmd.MarkFlagsOneRequired("url", "event")
	return cmd
}

func eventsFlag(cmd *cobra.Command, events *[]string) {
	cmd.Flags().StringSliceVar(events, "event", nil, "event type, such as work_order.created; repeat it or separate types by commas")
}

func eventTypes(names []string) []models.EventType {
	types := make([]models.EventType, len(names))
	for i, name := range names {
		types[i] = models.EventType(name)
	}
	return types
}

// enableResult is an address that was turned on, and how many deliveries were released.
type enableResult struct {
	service.Webhook
	Released int `json:"released"`
}

func enableWebhookCommand() *cobra.Command {
	var since string
	const short = "Turn the address on; with --since, redeliver what failed or was held since then"
	cmd := webhookTargetCommand("enable ID [--since TIME]", short, func(ctx context.Context, target commandTarget) error {
		var from *models.Time
		if target.cmd.Flags().Changed("since") {
			at, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			from = new(models.TimeOf(at))
		}
		on, released, err := target.svc.EnableWebhook(ctx, target.actor, target.id, from)
		if err != nil {
			return err
		}
		return target.out.show(target.cmd, enableResult{on, released}, func(w io.Writer) {
			webhookLines(w, on)
			fmt.Fprintf(w, "released\t%s\t\n", deliveriesNumber(released))
		})
	})
	sinceFlag(cmd, &since)
	return cmd
}

func sinceFlag(cmd *cobra.Command, since *string) {
	cmd.Flags().StringVar(since, "since", "", "only deliveries of events since then: a time, 2026-03-01T08:00:00Z, or a duration before now, 36h")
}

func disableWebhookCommand() *cobra.Command {
	var reason string
	cmd := webhookCommand("disable ID [--reason TEXT]", "Turn the address off; its deliveries are held until it is turned on",
		func(svc *service.Service, ctx context.Context, actor service.Actor, id string) (service.Webhook, error) {
			return svc.DisableWebhook(ctx, actor, id, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, shown with the address")
	return cmd
}

// deleteResult names a deleted address.
type deleteResult struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func deleteWebhookCommand() *cobra.Command {
	return webhookTargetCommand("delete ID", "Delete the address and its deliveries", func(ctx context.Context, target commandTarget) error {
		if err := target.svc.DeleteWebhook(ctx, target.actor, target.id); err != nil {
			return err
		}
		return target.out.show(target.cmd, deleteResult{ID: target.id, Deleted: true}, func(w io.Writer) { fmt.Fprintf(w, "deleted\t%s\t\n", target.id) })
	})
}

// testResult is the single attempt of a test.
type testResult struct {
	WebhookID string `json:"webhook_id"`
	EventID   string `json:"event_id"`
	service.AttemptRecord
}

func testWebhookCommand() *cobra.Command {
	const short = "Send a ping, even if the address is off, and show the receiver's response; exits 0 only on 2xx"
	return webhookTargetCommand("test ID", short, func(ctx context.Context, target commandTarget) error {
		address, ping, err := target.svc.TestWebhook(ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		attempt, err := sendOnce(ctx, target.settings, address, ping)
		if err != nil {
			return err
		}
		result := testResult{address.ID, ping.EventID, attempt.Record()}
		if err := target.out.show(target.cmd, result, func(w io.Writer) { attemptLines(w, result.AttemptRecord) }); err != nil {
			return err
		}
		if failure := attempt.Failure(); failure != "" {
			return errors.New(failure)
		}
		return nil
	})
}

// sendOnce makes one attempt.
func sendOnce(ctx context.Context, s settings, address service.Address, d service.RenderedDelivery) (service.Attempt, error) {
	signer, err := webhook.NewSigner(address.Secrets...)
	if err != nil {
		return service.Attempt{}, err
	}
	sender := s.sender()
	defer sender.Close()
	return activities.Send(ctx, sender, signer, time.Now, address.URL, d), nil
}

// webhookCommand returns a command that changes an address and shows it.
func webhookCommand(use, short string, do func(*service.Service, context.Context, service.Actor, string) (service.Webhook, error)) *cobra.Command {
	return webhookTargetCommand(use, short, func(ctx context.Context, target commandTarget) error {
		changed, err := do(target.svc, ctx, target.actor, target.id)
		if err != nil {
			return err
		}
		return showWebhook(target.cmd, target.out, changed)
	})
}

func webhookTargetCommand(use, short string, do func(ctx context.Context, target commandTarget) error) *cobra.Command {
	var as actorFlag
	cmd := targetCommand(use, short, "webhook address", &as, do)
	as.flag(cmd)
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
