package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"

	"millwright/service"
	"millwright/service/pages"
	"millwright/worker"
	"millwright/workflows"
)

// A worker process polls each task queue at least once a minute; after pollerSilence without a
// poll it is not working.
const (
	healthTimeout = 5 * time.Second
	pollerSilence = 2 * time.Minute
)

func healthCommand() *cobra.Command {
	cmd := commandGroup("health", "Check the API server or the worker process of this host; exits 0 only if it is healthy",
		healthOf("api", "Check that the API with these settings responds and reaches its database", checkAPI),
		healthOf("worker", "Check that a worker process of this host polls every task queue in Temporal", checkWorker),
		healthOfWorkflows(),
	)
	var stuck bool
	var organization string
	var out output
	help := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !stuck {
			return help(cmd, args)
		}
		return operate(cmd, func(ctx context.Context, _ settings, svc *service.Service) error {
			id, err := anyOrganizationID(ctx, svc, organization)
			if err != nil {
				return err
			}
			found, err := svc.Pages.Stuck(ctx, id)
			if err != nil {
				return err
			}
			return out.show(cmd, found, func(w io.Writer) { stuckTables(w, found) })
		})
	}
	cmd.Flags().BoolVar(&stuck, "stuck", false, "list what is stuck: addresses with deliveries that have not arrived, records whose workflow is behind, mail that waits")
	cmd.Flags().StringVar(&organization, "organization", "", "with --stuck: only what the organization with this key or id has")
	out.flag(cmd)
	return cmd
}

func stuckTables(w io.Writer, found pages.Stuck) {
	if len(found.Addresses)+len(found.Records)+len(found.Mail) == 0 {
		fmt.Fprintln(w, "Nothing is stuck.")
	}
	if len(found.Addresses) > 0 {
		fmt.Fprintln(w, "ADDRESS\tORGANIZATION\tSTATE\tSINCE\tFAILED\tRETRYING\tHELD\tPENDING\t")
		for _, a := range found.Addresses {
			state, since := "on", ""
			if a.Since != nil {
				state, since = "failing", a.Since.String()
			}
			if !a.Enabled {
				state = "off"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t\n", a.WebhookID, a.OrganizationID, state, since, a.Failed, a.Retrying, a.Held, a.Pending)
		}
	}
	if len(found.Records) > 0 {
		fmt.Fprintln(w, "RECORD WHOSE WORKFLOW IS BEHIND\tORGANIZATION\tSINCE\t")
		for _, r := range found.Records {
			fmt.Fprintf(w, "%s\t%s\t%s\t\n", r.RecordID, r.OrganizationID, r.Since)
		}
	}
	if len(found.Mail) > 0 {
		waitingMailTable(w, found.Mail)
	}
}

func healthOf(name, short string, check func(context.Context, settings) error) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			if err := check(ctx, s); err != nil {
				return fmt.Errorf("the %s is not healthy: %w", name, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "healthy")
			return nil
		},
	}
}

// healthOfWorkflows checks whether workers with this program can continue what is open.
func healthOfWorkflows() *cobra.Command {
	most := 10_000
	cmd := &cobra.Command{
		Use:   "workflows",
		Short: "Check that this program can continue the open workflows, by replaying their histories",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
			if err != nil {
				return err
			}
			defer temporal.Close()
			var failed int
			for _, name := range workflows.Names {
				replayed, err := worker.Replay(cmd.Context(), temporal, s.Namespace, name, most, func(id string, err error) {
					failed++
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", id, oneLine(err.Error()))
				})
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %d open workflows were replayed\n", name, replayed)
			}
			if failed > 0 {
				return fmt.Errorf("this program cannot continue %d open workflows", failed)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&most, "limit", most, "number of each type that is replayed at most")
	return cmd
}

func checkAPI(ctx context.Context, s settings) error {
	host, port, err := net.SplitHostPort(cmp.Or(s.ProbesAddr, s.Addr))
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		return errors.New("it does not respond")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return fmt.Errorf("it responds %d: %s", response.StatusCode, oneLine(strings.TrimSpace(string(reason))))
	}
	return nil
}

func checkWorker(ctx context.Context, s settings) error {
	temporal, err := newTemporalClient(s, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return polls(ctx, temporal, host, time.Now())
}

// polls returns an error unless worker processes of the host polled each task queue within
// pollerSilence, for workflows or activities: a worker whose activities are all busy polls for
// workflows only.
func polls(ctx context.Context, temporal client.Client, host string, now time.Time) error {
	for _, queue := range workflows.TaskQueues {
		polled := false
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			description, err := temporal.DescribeTaskQueue(ctx, queue, kind)
			if err != nil {
				return fmt.Errorf("Temporal cannot list the pollers: %w", err) //nolint:staticcheck // a name
			}
			polled = polled || slices.ContainsFunc(description.GetPollers(), func(poller *taskqueue.PollerInfo) bool {
				// The SDK's identity is process@host@.
				return strings.Contains(poller.GetIdentity(), "@"+host+"@") && now.Sub(poller.GetLastAccessTime().AsTime()) < pollerSilence
			})
		}
		if !polled {
			return fmt.Errorf("no worker process of %s has polled the task queue %s in the last %s", host, queue, pollerSilence)
		}
	}
	return nil
}
