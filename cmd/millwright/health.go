package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"millwright/workflows"
)

// The bounds of a health check. A worker asks Temporal for work at least once a
// minute; one that did not for longer does none.
const (
	healthTimeout = 5 * time.Second
	pollerSilence = 2 * time.Minute
)

func healthCommand() *cobra.Command {
	return commands("health", "Tell by the exit status whether the api or the worker of this host works, for health checks",
		healthOf("api", "Healthy when the API with these settings answers and has its database", checkAPI),
		healthOf("worker", "Healthy when a worker of this host asks Temporal for work", checkWorker),
	)
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

func checkAPI(ctx context.Context, s settings) error {
	host, port, err := net.SplitHostPort(s.Addr)
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
	answer, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		return errors.New("it does not answer")
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(answer.Body, 1024))
		return fmt.Errorf("it answers %d: %s", answer.StatusCode, oneLine(strings.TrimSpace(string(reason))))
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

// polls reports whether a worker of the host has asked Temporal for work a while
// ago at the most: nil, or why not.
func polls(ctx context.Context, temporal client.Client, host string, now time.Time) error {
	queue, err := temporal.DescribeTaskQueue(ctx, workflows.TaskQueue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return fmt.Errorf("Temporal does not tell who works: %w", err) //nolint:staticcheck // a name
	}
	for _, poller := range queue.GetPollers() {
		// The SDK signs as process@host@.
		if strings.Contains(poller.GetIdentity(), "@"+host+"@") && now.Sub(poller.GetLastAccessTime().AsTime()) < pollerSilence {
			return nil
		}
	}
	return fmt.Errorf("no worker of %s has asked Temporal for work in the last %s", host, pollerSilence)
}
