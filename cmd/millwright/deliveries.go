package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/service/webhooks"
)

func deliveriesCommand() *cobra.Command {
	return commandGroup("deliveries", "List, show and redeliver webhook deliveries", listDeliveriesCommand(), showDeliveryCommand(), redeliverCommand())
}

func listDeliveriesCommand() *cobra.Command {
	var filter webhooks.DeliveryFilter
	var limit limitFlag
	cmd := listCommand("list", "List deliveries, newest first", func(ctx context.Context, _ *cobra.Command, svc *service.Service) ([]webhooks.DeliveryView, error) {
		found, err := upTo(limit, func(size int) ([]webhooks.DeliveryView, error) {
			filter.Limit = size
			page, err := svc.Webhooks.Deliveries(ctx, filter)
			if len(page) > 0 {
				filter.Before = page[len(page)-1].ID
			}
			return page, err
		})
		return found, describeError(err, "webhook address "+filter.WebhookID)
	}, deliveriesTable)
	choiceFlag(cmd, &filter.Statuses, models.DeliveryStatuses, "status", "delivery status")
	cmd.Flags().StringVar(&filter.WebhookID, "address", "", "only those to the webhook address with this id")
	limit.flag(cmd)
	return cmd
}

func showDeliveryCommand() *cobra.Command {
	const short = "Show a delivery, its attempts and the first 4 KiB of each response"
	return targetCommand("show ID", short, "delivery", nil, func(ctx context.Context, target commandTarget) error {
		found, err := target.svc.Webhooks.DeliveryWithAttempts(ctx, target.id)
		if err != nil {
			return err
		}
		return target.out.show(target.cmd, found, func(w io.Writer) {
			deliveryLines(w, found.DeliveryView)
			for _, a := range found.AttemptsMade {
				fmt.Fprintf(w, "\t\nattempt %d\t%s\t\n", a.Number, a.StartedAt)
				attemptLines(w, a)
			}
		})
	})
}

// redeliverResult counts an address's deliveries that are due again.
type redeliverResult struct {
	WebhookID string `json:"webhook_id"`
	webhooks.Released
}

// orderedResult are the addresses that redeliver what failed or is retrying.
type orderedResult struct {
	WebhookIDs []string `json:"webhook_ids"`
}

func redeliverCommand() *cobra.Command {
	var out output
	var as actorFlag
	var address, since string
	var everywhere bool
	cmd := &cobra.Command{
		Use:   "redeliver ID | redeliver --address ID --since TIME | redeliver --all-addresses --since TIME",
		Short: "Redeliver one delivery, an address's failed, retrying and held deliveries, or the failed and retrying ones of all addresses",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Flags().Changed("address")
			many := at || everywhere
			if many == (len(args) == 1) || many != cmd.Flags().Changed("since") {
				return errors.New("give a delivery's id, or an address or all of them and a time: --address ID --since TIME, --all-addresses --since TIME")
			}
			var from time.Time
			if many {
				var err error
				if from, err = parseSince(since, time.Now()); err != nil {
					return err
				}
			}
			return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
				if everywhere {
					ordered, err := svc.Webhooks.RedeliverEverywhere(ctx, models.TimeOf(from))
					if err != nil {
						return err
					}
					return out.show(cmd, orderedResult{append([]string{}, ordered...)}, func(w io.Writer) {
						fmt.Fprintf(w, "ordered\t%d addresses\t\n", len(ordered))
					})
				}
				actor, err := as.actor(ctx, cmd, svc)
				if err != nil {
					return err
				}
				if at {
					released, err := svc.Webhooks.RedeliverSince(ctx, actor, store.NoKey, address, models.TimeOf(from))
					if err != nil {
						return describeError(err, as.within("webhook address "+address))
					}
					return out.show(cmd, redeliverResult{address, released}, func(w io.Writer) {
						releasedLines(w, released)
					})
				}
				found, err := svc.Webhooks.RedeliverDelivery(ctx, actor, store.NoKey, args[0])
				if err != nil {
					return describeError(err, as.within("delivery "+args[0]))
				}
				return out.show(cmd, found, func(w io.Writer) { deliveryLines(w, found) })
			})
		},
	}
	out.flag(cmd)
	as.flag(cmd)
	cmd.Flags().StringVar(&address, "address", "", "id of the webhook address")
	cmd.Flags().BoolVar(&everywhere, "all-addresses", false, "redeliver what failed or is retrying at all addresses that are on, of all organizations")
	sinceFlag(cmd, &since)
	cmd.MarkFlagsMutuallyExclusive("address", "all-addresses")
	cmd.MarkFlagsMutuallyExclusive("as", "all-addresses")
	return cmd
}

func releasedLines(w io.Writer, released webhooks.Released) {
	fmt.Fprintf(w, "released\t%s\t\n", deliveriesNumber(released.Due))
	if released.Expired > 0 {
		fmt.Fprintf(w, "left out\t%s\tevents older than 30 days\t\n", deliveriesNumber(released.Expired))
	}
}

func deliveriesNumber(n int) string {
	if n == 1 {
		return "1 delivery"
	}
	return strconv.Itoa(n) + " deliveries"
}

func deliveriesTable(w io.Writer, found []webhooks.DeliveryView) {
	fmt.Fprintln(w, "ID\tEVENT\tADDRESS\tSTATUS\tATTEMPTS\tCREATED\tNEXT ATTEMPT\tLAST RESULT\t")
	for _, d := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t\n",
			d.ID, d.EventType, d.WebhookID, d.Status, d.Attempts, d.CreatedAt, orDash(d.NextAttemptAt), lastResult(d))
	}
}

func deliveryLines(w io.Writer, d webhooks.DeliveryView) {
	fmt.Fprintf(w, "id\t%s\t\nevent\t%s %s\t\naddress\t%s\t\ncreated\t%s\t\nstatus\t%s\t\nattempts\t%d\t\nnext attempt\t%s\t\nlast result\t%s\t\n",
		d.ID, d.EventType, d.EventID, d.WebhookID, d.CreatedAt, d.Status, d.Attempts, orDash(d.NextAttemptAt), lastResult(d))
}

func lastResult(d webhooks.DeliveryView) string {
	if d.LastStatus != nil {
		return strconv.Itoa(*d.LastStatus)
	}
	return textCell(d.LastError)
}

// attemptLines writes the result of an attempt, and the response line by line.
func attemptLines(w io.Writer, a webhooks.AttemptRecord) {
	if a.Status != nil {
		fmt.Fprintf(w, "status\t%d\t\n", *a.Status)
	} else {
		fmt.Fprintf(w, "error\t%s\t\n", textCell(a.Error))
	}
	fmt.Fprintf(w, "latency\t%d ms\t\nremote ip\t%s\t\n", a.LatencyMS, orDash(a.RemoteIP))
	if a.ResponseBody == nil || *a.ResponseBody == "" {
		return
	}
	name := "response"
	if a.ResponseBodyBase64 {
		name = "response (base64)"
	}
	textLines(w, name, a.ResponseBody)
}
