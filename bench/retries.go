package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"millwright/workflows"
)

// benchRetries measures deliveries to healthy addresses before deliveries to failing
// ones wait for a retry, while they begin to wait, and while they wait. After a first
// attempt by the dispatcher each waits for a day in its own workflow, as in
// production. The failing addresses are in another organization, so that the healthy
// ones have the same load throughout.
func benchRetries(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "retries")
	if err != nil {
		return err
	}
	defer in.close()
	in.settings["WEBHOOK_RETRY_SCHEDULE"] = "24h,24h,24h"
	in.settings["WEBHOOK_RETRY_WORKFLOWS"] = strconv.Itoa(max(1000, o.retries))
	if err := in.startWith(ctx, changeSubscription(manyAddresses), benchWorkOrders); err != nil {
		return err
	}
	failing := changeSubscription(manyAddresses)
	failing.key, failing.failing = "failing", true
	failingTenant, err := in.tenantOf(ctx, failing, benchWorkOrders)
	if err != nil {
		return err
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.awaitWorkflowsIdle(ctx); err != nil {
		return err
	}
	return in.benchHealthy(ctx, r, failingTenant, load)
}

func (in *installation) benchHealthy(ctx context.Context, r *report, failingTenant *tenant, load time.Duration) error {
	const before = "healthy addresses, no retries waiting"
	withRetries := fmt.Sprintf("healthy addresses, %d retries waiting", in.options.retries)
	rate, err := in.benchHealthyAddresses(ctx, r, before, "", 0, load)
	if err != nil {
		return err
	}
	in.memories(ctx).report(r, "no retries waiting")
	peak := in.watchMemory(ctx)
	if err := in.failDeliveries(ctx, r, failingTenant, rate/4, load); err != nil {
		return err
	}
	if err := phase(ctx, "settle", 10*time.Minute, in.awaitIdle); err != nil {
		return err
	}
	if _, err := in.benchHealthyAddresses(ctx, r, withRetries, before, rate, load); err != nil {
		return err
	}
	peak().report(r, fmt.Sprintf("peak with %d retries", in.options.retries))
	return nil
}

// benchHealthyAddresses measures deliveries to the healthy addresses and their
// latency at half the given rate of changes. Rate 0 means the measured peak; it
// returns the rate.
func (in *installation) benchHealthyAddresses(ctx context.Context, r *report, what, to string, rate float64, load time.Duration) (float64, error) {
	err := phase(ctx, what, 20*load+2*time.Minute, func(ctx context.Context) error {
		if _, err := in.changes(manyAddresses).flood(ctx, load/5); err != nil {
			return err
		}
		f, err := in.changes(manyAddresses).flood(ctx, load)
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
		w, err := in.changes(manyAddresses).paced(ctx, rate/2, load)
		w.fromResponse.report(r, what+fmt.Sprintf(": response to receiver at %.0f changes/s", rate/2))
		return err
	})
	return rate, err
}

// failDeliveries makes deliveries fail until the given number waits, each in its
// workflow, while healthy addresses get changes at the given rate. It proceeds in
// steps, because the queue of wakes is bounded and no wake should be dropped.
func (in *installation) failDeliveries(ctx context.Context, r *report, failingTenant *tenant, rate float64, load time.Duration) error {
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
			c, err := dial(ctx, failingTenant.address, failingTenant.token)
			if err != nil {
				return err
			}
			for ; left > 0; left-- {
				if _, err := failingTenant.patch(c); err != nil {
					return err
				}
			}
			c.conn.Close()
			if first {
				first = false
				w, err := in.changes(manyAddresses).paced(ctx, rate, load)
				if err != nil {
					return err
				}
				w.fromResponse.report(r, fmt.Sprintf("healthy addresses, while retries begin to wait: response to receiver at %.0f changes/s", rate))
			}
			if err := in.awaitRetries(ctx, failed); err != nil {
				return err
			}
		}
		r.add(what+": workflows that began to wait", perSecond(in.options.retries, started, time.Now()), "/s")
		in.usage().since(before).report(r, what, in.options.retries)
		return nil
	})
}

// awaitRetries waits until the given number of deliveries has a workflow.
func (in *installation) awaitRetries(ctx context.Context, deliveries int) error {
	count := int64(0)
	err := until(ctx, time.Second, func() (bool, error) {
		response, err := in.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: in.settings["TEMPORAL_NAMESPACE"],
			Query:     "WorkflowType = '" + workflows.DeliveryName + "' AND ExecutionStatus = 'Running' AND DeliveryStatus = 'retrying'",
		})
		count = response.GetCount()
		return count >= int64(deliveries), err
	})
	if err != nil {
		return fmt.Errorf("%d of %d deliveries have a workflow: %w", count, deliveries, err)
	}
	return nil
}
