package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"millwright/activities"
	"millwright/telemetry"
	"millwright/worker"
)

// workerGCPercent is apiGCPercent for the worker, whose heap grows with the open
// workflows. At the default the collector takes a fifth of its CPU time under load.
const workerGCPercent = 200

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Run workflows and deliver webhooks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			return untilStopped(cmd.Context(), runWorker(cmd.Context(), s))
		},
	}
}

// runWorker runs the worker until the context ends, or Temporal rejects its polls for good: the
// process ends, so that its supervisor starts another, which polls again.
func runWorker(ctx context.Context, s settings) error {
	collectAt(workerGCPercent)
	deployment, err := s.deployment()
	if err != nil {
		return err
	}
	mailer, err := s.mailer()
	if err != nil {
		return err
	}
	polls := worker.NewPolls(time.Now)
	p, err := startProcess(ctx, s, "worker", waitForSchema, polls.DialOption())
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.service.Store.MakePartitions(ctx); err != nil {
		p.log.Warn("cannot make the partitions of the next days; housekeeping tries again", "error", err.Error())
	}
	instrumentation := activities.NewInstrumentation(p.registry, p.tracing.Tracer(), p.log)
	backlog := worker.NewBacklog(p.service, s.SweepEvery, p.log)
	if err := p.serveMetrics(ctx, backlog, polls); err != nil {
		return err
	}
	p.inBackground(ctx, backlog.Run)
	sender := s.sender()
	p.onStop(sender.Close)
	options := worker.Options{
		Client: p.temporal, Namespace: s.Namespace, Service: p.service, Waker: p.waker, Sender: sender, Mailer: mailer,
		OperatorActions: s.OperatorActions, IdleTimeout: s.IdleTimeout, SweepEvery: s.SweepEvery, StopTimeout: s.ResponseTimeout + 5*time.Second,
		Limits:          worker.Limits{Pollers: s.Pollers, RecordTasks: s.RecordTasks, Retries: s.Retries, CachedWorkflows: s.CachedWorkflows},
		Deployment:      deployment,
		Instrumentation: instrumentation, Log: p.log,
	}
	if err := prepare(ctx, options); err != nil {
		return err
	}
	w := worker.New(options)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	p.log.Info("the worker runs", "namespace", s.Namespace, "deployment", s.Deployment, "build_id", s.BuildID)
	err = w.Wait(ctx)
	if err != nil {
		p.log.Error("Temporal rejects the polls of the worker, which ends", "error", err.Error())
		err = fmt.Errorf("Temporal rejects the worker: %w", err) //nolint:staticcheck // a name
	}
	w.Stop()
	return err
}

// prepare waits until Temporal responds and has what the worker needs.
func prepare(ctx context.Context, options worker.Options) error {
	const wait = 2 * time.Second
	logged := ""
	for {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := worker.Prepare(attempt, options)
		cancel()
		if err == nil {
			return nil
		}
		if !telemetry.Unreachable(err) && err.Error() != logged { // that it is unreachable is logged already
			logged = err.Error()
			options.Log.Warn("Temporal is not ready; the worker process tries again every two seconds", "error", logged)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
