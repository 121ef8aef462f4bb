package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The baselines of workflows: from the call that starts one until its end is known.
const (
	baselineEmptyWorkflows = "baseline: Temporal workflow that does nothing, 32 at a time"
	baselineWorkflows      = "baseline: Temporal workflow with a local activity, 32 at a time"
)

func emptyWorkflow(workflow.Context) error { return nil }

func oneActivityWorkflow(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteLocalActivity(ctx, emptyActivity).Get(ctx, nil)
}

func emptyActivity(context.Context) error { return nil }

// benchBareWorkflows measures workflows that do nothing for the product.
func (in *installation) benchBareWorkflows(ctx context.Context, r *report, load time.Duration) error {
	const queue = "baseline"
	w := sdkworker.New(in.temporal, queue, sdkworker.Options{
		MaxConcurrentWorkflowTaskPollers: 8, DisableRegistrationAliasing: true,
	})
	w.RegisterWorkflow(emptyWorkflow)
	w.RegisterWorkflow(oneActivityWorkflow)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	for _, baseline := range []struct {
		name string
		flow any
	}{{baselineEmptyWorkflows, emptyWorkflow}, {baselineWorkflows, oneActivityWorkflow}} {
		err := phase(ctx, baseline.name, 5*load+time.Minute, func(ctx context.Context) error {
			run := func(ctx context.Context) error {
				started, err := in.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, baseline.flow)
				if err != nil {
					return err
				}
				return started.Get(ctx, nil)
			}
			var alone waits
			for range max(10, int(5*load.Seconds())) {
				started := time.Now()
				if err := run(ctx); err != nil {
					return err
				}
				alone = append(alone, time.Since(started))
			}
			before := in.usage()
			started := time.Now()
			rate, err := sideBySide(ctx, load/2, run)
			if err != nil {
				return err
			}
			n := int(rate * time.Since(started).Seconds())
			used := in.usage().since(before)
			r.add(baseline.name, rate, "/s")
			alone.report(r, baseline.name+": alone")
			used.report(r, baseline.name, n)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return in.awaitIdle(ctx)
}
