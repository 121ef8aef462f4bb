package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
)

func webhooksCommand() *cobra.Command {
	return commandGroup("webhooks", "Manage webhook addresses",
		listWebhooksCommand(),
		showWebhookCommand(),
		createWebhookCommand(),
		changeWebhookCommand(),
		enableWebhookCommand(),
		disableWebhookCommand(),
		webhookCommand("renew-secret ID", "Renew the signing secret and show it, this once; each old one stays valid for its 24 hours, at most two of them",
			(*webhooks.Webhooks).RenewWebhookSecret),
		deleteWebhookCommand(),
		testWebhookCommand(),
	)
}

func listWebhooksCommand() *cobra.Command {
	var integrationID string
	cmd := listCommand("list", "List webhook addresses, oldest first", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]webhooks.WebhookHealth, error) {
		found, err := svc.Webhooks.List(ctx, integrationID)
		// JSON shows no addresses as [].
		return append([]webhooks.WebhookHealth{}, found...), describeError(err, "integration "+integrationID)
	}, webhooksTable)
	cmd.Flags().StringVar(&integrationID, "integration", "", "only addresses of the integration with this id")
	return cmd
}

func showWebhookCommand() *cobra.Command {
	return targetCommand("show ID", "Show a webhook address and how its deliveries fare", "webhook address", nil, func(ctx context.Context, target commandTarget) error {
		found, err := target.svc.Webhooks.Get(ctx, target.id)
		if err != nil {
			return err
		}
		return target.out.show(target.cmd, found, func(w io.Writer) {
			webhookLines(w, found.Webhook)
			healthLines(w, found)
		})
	})
}

func createWebhookCommand() *cobra.Command {
	var out output
	var as actorFlag
	var integration, url string
	var events []models.EventType
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
				created, err := svc.Webhooks.CreateWebhook(ctx, actor, store.NoKey, integration, webhooks.NewWebhook{URL: url, Events: events})
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
	var events []models.EventType
	var cmd *cobra.Command
	cmd = webhookCommand("change ID [--url URL] [--event TYPE...]", "Change the address's URL, or replace its event types",
		func(s *webhooks.Webhooks, ctx context.Context, actor store.Actor, key store.Key, id string) (webhooks.Webhook, error) {
			var change webhooks.WebhookChange
			if cmd.Flags().Changed("url") {
				change.URL = &url
			}
			if cmd.Flags().Changed("event") {
				change.Events = events
			}
			return s.ChangeWebhook(ctx, actor, key, id, change)
		})
	cmd.Flags().StringVar(&url, "url", "", "new URL that deliveries are sent to, https://…")
	eventsFlag(cmd, &events)
	cmd.MarkFlagsOneRequired("url", "event")
	return cmd
}

func eventsFlag(cmd *cobra.Command, events *[]models.EventType) {
	choiceFlag(cmd, events, models.AllEventTypes, "event", "event type")
}

// enableResult is an address that was turned on, and how many deliveries were released.
type enableResult struct {
	webhooks.Webhook
	webhooks.Released
}

func enableWebhookCommand() *cobra.Command {
	var since string
	const short = "Turn the address on; with --since, redeliver what failed, is retrying or was held since then"
	cmd := webhookTargetCommand("enable ID [--since TIME]", short, func(ctx context.Context, target commandTarget) error {
		var from *models.Time
		if target.cmd.Flags().Changed("since") {
			at, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			from = new(models.TimeOf(at))
		}
		on, released, err := target.svc.Webhooks.EnableWebhook(ctx, target.actor, store.NoKey, target.id, from)
		if err != nil {
			return err
		}
		return target.out.show(target.cmd, enableResult{on, released}, func(w io.Writer) {
			webhookLines(w, on)
			releasedLines(w, released)
		})
	})
	sinceFlag(cmd, &since)
	return cmd
}

func sinceFlag(cmd *cobra.Command, since *string) {
	cmd.Flags().StringVar(since, "since", "", "only deliveries of events since then: "+timeFlagHelp)
}

func disableWebhookCommand() *cobra.Command {
	var reason string
	cmd := webhookCommand("disable ID [--reason TEXT]", "Turn the address off; its deliveries are held until it is turned on",
		func(s *webhooks.Webhooks, ctx context.Context, actor store.Actor, key store.Key, id string) (webhooks.Webhook, error) {
			return s.DisableWebhook(ctx, actor, key, id, reason)
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
		if err := target.svc.Webhooks.DeleteWebhook(ctx, target.actor, store.NoKey, target.id); err != nil {
			return err
		}
		return target.out.show(target.cmd, deleteResult{ID: target.id, Deleted: true}, func(w io.Writer) { fmt.Fprintf(w, "deleted\t%s\t\n", target.id) })
	})
}

func testWebhookCommand() *cobra.Command {
	const short = "Send a ping, even if the address is off, and show the receiver's response; exits 0 only on 2xx"
	return webhookTargetCommand("test ID", short, func(ctx context.Context, target commandTarget) error {
		return sendTest(ctx, target, models.EventPing)
	})
}

// webhookCommand returns a command that changes an address and shows it.
func webhookCommand(use, short string, do func(*webhooks.Webhooks, context.Context, store.Actor, store.Key, string) (webhooks.Webhook, error)) *cobra.Command {
	return webhookTargetCommand(use, short, func(ctx context.Context, target commandTarget) error {
		changed, err := do(target.svc.Webhooks, ctx, target.actor, store.NoKey, target.id)
		if err != nil {
			return err
		}
		return showWebhook(target.cmd, target.out, changed)
	})
}

func webhookTargetCommand(use, short string, do func(ctx context.Context, target commandTarget) error) *cobra.Command {
	return targetCommand(use, short, "webhook address", &actorFlag{}, do)
}

func webhooksTable(w io.Writer, found []webhooks.WebhookHealth) {
	fmt.Fprintln(w, "ID\tSTATE\tSINCE\tURL\t")
	for _, h := range found {
		state, since := webhookState(h.Webhook), h.OffAt
		switch {
		case h.HeldReason != nil:
			state = "held"
		case h.Enabled && h.FailingSince != nil:
			state, since = "failing", h.FailingSince
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", h.ID, state, orDash(since), h.URL)
	}
}

// healthLines write how the deliveries to an address fare.
func healthLines(w io.Writer, h webhooks.WebhookHealth) {
	if h.HeldReason != nil {
		fmt.Fprintf(w, "held\t%s\t\n", textCell(h.HeldReason))
	}
	if h.WaitsUntil != nil {
		fmt.Fprintf(w, "pending ones\twait: very many failed and none has been delivered since; the oldest is tried at %s\t\n", h.WaitsUntil)
	}
	fmt.Fprintf(w, "failing since\t%s\t\nlast success\t%s\t\n", orDash(h.FailingSince), orDash(h.LastSuccessAt))
	switch {
	case h.LastAt == nil:
		fmt.Fprintf(w, "last response\t-\t\n")
	case h.LastStatus != nil:
		fmt.Fprintf(w, "last response\t%d at %s\t\n", *h.LastStatus, h.LastAt)
	default:
		fmt.Fprintf(w, "last response\tnone at %s: %s\t\n", h.LastAt, textCell(h.LastError))
	}
}

func showWebhook(cmd *cobra.Command, out output, h webhooks.Webhook) error {
	return out.show(cmd, h, func(w io.Writer) { webhookLines(w, h) })
}

func webhookLines(w io.Writer, h webhooks.Webhook) {
	fmt.Fprintf(w, "id\t%s\t\nintegration\t%s\t\nurl\t%s\t\nevents\t%s\t\nstate\t%s\t\n", h.ID, h.IntegrationID, h.URL, strings.Join(textsOf(h.Events), " "), webhookState(h))
	if !h.Enabled {
		fmt.Fprintf(w, "off since\t%s\t\nreason\t%s\t\n", orDash(h.OffAt), textCell(h.OffReason))
	}
	if h.Secret != "" {
		fmt.Fprintf(w, "secret\t%s\t(shown this once)\n", h.Secret)
	}
}

func webhookState(h webhooks.Webhook) string {
	if h.Enabled {
		return "on"
	}
	return "off"
}
