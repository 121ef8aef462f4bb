package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"millwright/workflows"
)

// benchRetries measures deliveries to healthy addresses before deliveries to
// failing ones wait for their next attempt, while they come to, and beside them.
// They wait for a day, each in a workflow of its own, as in life: a mailbox has
// tried them once. The failing addresses are another organization's, so that
// the healthy ones have the same to do throughout.
func benchRetries(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "retries")
	if err != nil {
		return err
	}
	defer in.close()
	in.settings["WEBHOOK_RETRY_SCHEDULE"] = "24h,24h,24h"
	if err := in.subscribe(ctx, changesTold(manyAddresses)); err != nil {
		return err
	}
	if err := in.startAPI(ctx); err != nil {
		return err
	}
	if err := in.erp.createWorkOrders(ctx, workOrdersOfBench); err != nil {
		return err
	}
	failing := changesTold(manyAddresses)
	failing.key, failing.failing = "failing", true
	refusing, err := in.tenantOf(ctx, failing, workOrdersOfBench)
	if err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.awaitRest(ctx); err != nil {
		return err
	}
	return in.benchHealthy(ctx, r, refusing, load)
}

func (in *installation) benchHealthy(ctx context.Context, r *report, refusing *tenant, load time.Duration) error {
	const before = "healthy addresses, no retries waiting"
	beside := fmt.Sprintf("healthy addresses, beside %d retries waiting", in.options.retries)
	rate, err := in.healthy(ctx, r, before, "", 0, load)
	if err != nil {
		return err
	}
	in.memories(ctx).report(r, "no retries waiting")
	peak := in.watchMemory(ctx)
	if err := in.failMany(ctx, r, refusing, rate/4, load); err != nil {
		return err
	}
	if err := phase(ctx, "settle", 10*time.Minute, in.settle); err != nil {
		return err
	}
	if _, err := in.healthy(ctx, r, beside, before, rate, load); err != nil {
		return err
	}
	peak().report(r, fmt.Sprintf("most with %d retries", in.options.retries))
	return nil
}

// healthy measures deliveries to the healthy addresses, and their latency at
// half of the given rate of changes, or of what goes through. It returns that rate.
func (in *installation) healthy(ctx context.Context, r *report, what, to string, rate float64, load time.Duration) (float64, error) {
	err := phase(ctx, what, 20*load+2*time.Minute, func(ctx context.Context) error {
		if _, err := in.flood(ctx, manyAddresses, load/5); err != nil {
			return err
		}
		f, err := in.flood(ctx, manyAddresses, load)
		if err != nil {
			return err
		}
		if rate == 0 {
			rate = f.through()
		}
		if to == "" {
			r.add(what+": deliveries", f.arrived(), "/s")
		} else {
			r.compare(what+": deliveries", f.arrived(), "/s", to+": deliveries")
		}
		w, err := in.paced(ctx, rate/2, manyAddresses, load)
		w.fromAnswer.report(r, what+fmt.Sprintf(": answer to receiver at %.0f changes/s", rate/2))
		return err
	})
	return rate, err
}

// failMany has deliveries fail until so many wait, each in its workflow, while
// the healthy addresses are told of changes at the given rate. It goes in steps:
// pokes that wait for Temporal are bounded, and none shall be dropped.
func (in *installation) failMany(ctx context.Context, r *report, refusing *tenant, rate float64, load time.Duration) error {
	const step = 10_000
	what := fmt.Sprintf("%d retries", in.options.retries)
	limit := 5*time.Minute + time.Duration(in.options.retries)*50*time.Millisecond
	return phase(ctx, what, limit, func(ctx context.Context) error {
		before, started := in.usage(), time.Now()
		first := true
		for failed := 0; failed < in.options.retries; {
			n := min(step, in.options.retries-failed)
			failed += n
			left := (n + manyAddresses - 1) / manyAddresses
			c, err := dial(ctx, refusing.address, refusing.token)
			if err != nil {
				return err
			}
			for ; left > 0; left-- {
				if _, err := refusing.patch(c); err != nil {
					return err
				}
			}
			c.conn.Close()
			if first {
				first = false
				w, err := in.paced(ctx, rate, manyAddresses, load)
				if err != nil {
					return err
				}
				w.fromAnswer.report(r, fmt.Sprintf("healthy addresses, while retries begin to wait: answer to receiver at %.0f changes/s", rate))
			}
			if err := in.awaitWaiting(ctx, failed); err != nil {
				return err
			}
		}
		r.add(what+": workflows that began to wait", perSecond(in.options.retries, started, time.Now()), "/s")
		in.usage().since(before).report(r, what, in.options.retries)
		return nil
	})
}

// awaitWaiting waits until so many deliveries have a workflow.
func (in *installation) awaitWaiting(ctx context.Context, deliveries int) error {
	count := int64(0)
	err := until(ctx, time.Second, func() (bool, error) {
		answer, err := in.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: in.settings["TEMPORAL_NAMESPACE"],
			Query:     "WorkflowType = '" + workflows.DeliveryName + "' AND ExecutionStatus = 'Running' AND DeliveryStatus = 'retrying'",
		})
		count = answer.GetCount()
		return count >= int64(deliveries), err
	})
	if err != nil {
		return fmt.Errorf("%d of %d deliveries have a workflow: %w", count, deliveries, err)
	}
	return nil
}
