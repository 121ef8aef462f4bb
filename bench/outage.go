package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"millwright/models"
	"millwright/workflows"
)

const (
	// outageRate is how many events a second go to a dead address.
	outageRate = 500
	// rejectionTime is how long a dead address takes to reject a retry, so that several
	// are in flight.
	rejectionTime = 5 * time.Millisecond
	// shownRetries is how many retrying deliveries of an address have a workflow.
	shownRetries = 1000
)

// outage is a dead address of one organization, a healthy one of another, and those of a
// third, whose deliveries should not suffer.
type outage struct {
	in            *installation
	dead, healthy *tenant
	load          time.Duration
}

// benchOutage measures what a dead address costs, what its retries do to other addresses
// when very many are due at once, and how fast they are sent when it is healthy again.
func benchOutage(ctx context.Context, r *report, o options, load time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	in, err := newInstallation(ctx, fail, o, "outage")
	if err != nil {
		return err
	}
	defer in.close()
	in.settings["WEBHOOK_RETRY_SCHEDULE"] = "24h,24h,24h" // a retry that failed stays out of the way
	if err := in.startWith(ctx, changeSubscription(manyAddresses), benchWorkOrders); err != nil {
		return err
	}
	out := &outage{in: in, load: load}
	for _, t := range []struct {
		into *(*tenant)
		key  string
	}{{&out.dead, "dead"}, {&out.healthy, "healthy"}} {
		organization := changeSubscription(1)
		organization.key, organization.failing = t.key, t.key == "dead"
		if *t.into, err = in.tenantOf(ctx, organization, benchWorkOrders); err != nil {
			return err
		}
	}
	if err := in.startWorker(ctx, nil); err != nil {
		return err
	}
	if err := in.awaitWorkflowsIdle(ctx); err != nil {
		return err
	}
	if err := out.benchCost(ctx, r); err != nil {
		return err
	}
	if err := out.benchDue(ctx, r); err != nil {
		return err
	}
	return out.benchRecovery(ctx, r)
}

// benchCost compares the processor time of events to a dead address and to a healthy one.
// As many deliveries as an address shows have a workflow before.
func (o *outage) benchCost(ctx context.Context, r *report) error {
	return phase(ctx, "events to a dead address", 20*o.load+10*time.Minute, func(ctx context.Context) error {
		var made atomic.Int64
		err := o.dead.call(ctx, 4, func() bool { return made.Add(1) <= shownRetries }, func(c *caller) error {
			_, err := o.dead.patch(c)
			return err
		})
		if err != nil {
			return err
		}
		if err := o.in.awaitRetries(ctx, shownRetries); err != nil {
			return err
		}
		publisher := o.in.changes(1)
		publisher.tenant, publisher.publish = o.healthy, o.healthy.patch
		var used [2]usage
		for range rounds {
			for n, send := range []func() error{
				func() error {
					_, err := publisher.paced(ctx, outageRate, o.load/rounds)
					return err
				},
				func() error { return o.reject(ctx, o.load/rounds) },
			} {
				if err := o.in.awaitIdle(ctx); err != nil {
					return err
				}
				before := o.in.usage()
				if err := send(); err != nil {
					return err
				}
				used[n] = used[n].plus(o.in.usage().since(before))
			}
		}
		events := rounds * int(outageRate*(o.load/rounds).Seconds())
		const healthy, dead = "500 events/s to a healthy address", "500 events/s to a dead address"
		used[0].report(r, healthy, events)
		used[1].report(r, dead, events)
		r.compare(dead+": CPU compared", used[1].measured()*1000/float64(events), "s/1,000", healthy+": CPU of all these").Limit = 2
		return nil
	})
}

// reject makes changes whose deliveries are rejected, and waits until they were.
func (o *outage) reject(ctx context.Context, load time.Duration) error {
	before := o.in.receiver.rejected.total.Load()
	var made atomic.Int64
	err := o.dead.paced(ctx, outageRate, load, func(c *caller) (func(due, from time.Time), error) {
		_, err := o.dead.patch(c)
		made.Add(1)
		return func(time.Time, time.Time) {}, err
	})
	if err != nil {
		return err
	}
	return until(ctx, 2*time.Millisecond, func() (bool, error) {
		return o.in.receiver.rejected.total.Load()-before >= made.Load(), nil
	})
}

// benchDue measures deliveries to the healthy addresses before and while retries of the
// dead one are due.
func (o *outage) benchDue(ctx context.Context, r *report) error {
	const alone = "healthy addresses, nothing due"
	withRetries := fmt.Sprintf("healthy addresses, %d retries due at a dead one", o.in.options.due)
	planted := o.in.options.due - shownRetries
	if err := o.in.plantOpen(ctx, "dead", "retrying", planted, '1'); err != nil {
		return err
	}
	rejected := &o.in.receiver.rejected
	rejected.wait.Store(int64(rejectionTime))
	rejected.most.Store(0)
	return phase(ctx, withRetries, 60*o.load+10*time.Minute, func(ctx context.Context) error {
		peak := 0.0
		var flooded, paced [2][]float64
		for n, due := range []bool{false, true} {
			if due {
				if err := o.makeDue(ctx); err != nil {
					return err
				}
			}
			// Wakes the addresses, and leaves the tables as autovacuum keeps them.
			if _, err := o.in.changes(manyAddresses).flood(ctx, o.load/rounds); err != nil {
				return err
			}
			if _, err := o.in.pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
				return err
			}
			before, started := rejected.total.Load(), time.Now()
			for range rounds {
				f, err := o.in.changes(manyAddresses).flood(ctx, o.load/rounds)
				if err != nil {
					return err
				}
				flooded[n] = append(flooded[n], f.arrived())
				if peak == 0 {
					peak = f.through()
				}
				w, err := o.in.changes(manyAddresses).paced(ctx, peak/2, o.load/rounds)
				if err != nil {
					return err
				}
				paced[n] = append(paced[n], milliseconds(w.fromResponse.percentile(99)))
			}
			if due {
				r.add("retries at the dead address meanwhile", perSecond(int(rejected.total.Load()-before), started, time.Now()), "/s")
			}
		}
		r.add(alone+": deliveries", median(flooded[0]), "/s")
		r.add(fmt.Sprintf("%s: response to receiver at %.0f changes/s, p99", alone, peak/2), median(paced[0]), "ms")
		r.compareRounds(withRetries+": deliveries", flooded[1], flooded[0], "/s", alone).Aim = 0.9
		r.compareRounds(fmt.Sprintf("%s: response to receiver at %.0f changes/s, p99", withRetries, peak/2), paced[1], paced[0], "ms", alone).Limit = 1.5
		r.add("most requests at once at the dead address; at most 32", float64(rejected.most.Load()), "")
		return nil
	})
}

// makeDue makes all retries of the dead address due, and waits until its dispatcher sends
// them.
func (o *outage) makeDue(ctx context.Context) error {
	before := o.in.receiver.rejected.total.Load()
	if _, err := o.setDue(ctx, "0"); err != nil {
		return err
	}
	if err := o.dead.patchOnce(ctx); err != nil { // wakes the address
		return err
	}
	return until(ctx, 10*time.Millisecond, func() (bool, error) { return o.in.receiver.rejected.total.Load() > before+100, nil })
}

// patchOnce makes one change.
func (t *tenant) patchOnce(ctx context.Context) error {
	c, err := dial(ctx, t.address, t.token)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	_, err = t.patch(c)
	return err
}

// benchRecovery measures how fast retries are sent once the address is healthy again, and
// first attempts of as many deliveries at a healthy one.
func (o *outage) benchRecovery(ctx context.Context, r *report) error {
	const healthy, recovered = "backlog of a healthy address", "retries of an address that has recovered"
	due := o.in.options.due
	return phase(ctx, recovered, 10*time.Minute, func(ctx context.Context) error {
		if _, err := o.setDue(ctx, "1 day"); err != nil {
			return err
		}
		o.in.receiver.rejected.accept.Store(true)
		err := o.benchBacklog(ctx, r, healthy, o.healthy, healthy, func() (int, error) {
			return due, o.in.plantOpen(ctx, "healthy", "pending", due, '2')
		})
		if err != nil {
			return err
		}
		return o.benchBacklog(ctx, r, recovered, o.dead, healthy, func() (int, error) { return o.setDue(ctx, "0") })
	})
}

// setDue makes all retries due after a time, while no worker updates them, and returns how
// many.
func (o *outage) setDue(ctx context.Context, after string) (int, error) {
	if err := o.in.stopWorker(); err != nil {
		return 0, err
	}
	tag, err := o.in.pool.Exec(ctx, `UPDATE open_deliveries SET next_attempt_at = now() + $1::interval WHERE status = 'retrying'`, after)
	if err != nil {
		return 0, err
	}
	return int(tag.RowsAffected()), o.in.startWorker(ctx, nil)
}

// benchBacklog measures how fast the deliveries that plant makes due at the tenant's
// address are sent, and compares the rate with that of an earlier backlog.
func (o *outage) benchBacklog(ctx context.Context, r *report, name string, t *tenant, to string, plant func() (int, error)) error {
	log := o.in.receiver.newLog()
	n, err := plant()
	if err != nil {
		return err
	}
	before := o.in.usage()
	if err := t.patchOnce(ctx); err != nil {
		return err
	}
	if err := log.await(ctx, n+1); err != nil {
		return err
	}
	first, last := log.span()
	rate := perSecond(n, first, last)
	if name == to {
		r.add(name+": deliveries", rate, "/s")
	} else {
		r.compare(name+": deliveries", rate, "/s", to+": deliveries").Aim = 0.5
	}
	o.in.usage().since(before).report(r, name, n)
	return nil
}

// plantOpen creates open deliveries of the address of the organization with the key, with
// their events, of today.
func (in *installation) plantOpen(ctx context.Context, key, status string, n int, mark rune) error {
	var organization, creator, address string
	var records []string
	err := in.pool.QueryRow(ctx, `
		SELECT h.organization_id, h.integration_id, h.id, ARRAY(SELECT w.id FROM work_orders w WHERE w.organization_id = h.organization_id)
		FROM webhooks h JOIN integrations i ON i.id = h.integration_id WHERE i.client_id = $1`, key+"-1").Scan(&organization, &creator, &address, &records)
	if err != nil {
		return err
	}
	const (
		suffix = `$3::text || lpad(to_hex(n), 15, '0') || $4::text`
		record = `($5::text[])[1 + n % array_length($5::text[], 1)]`
		series = ` FROM generate_series($1::int, $2::int) n`
		events = `
			INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
			SELECT 'evt_' || ` + suffix + `, $6::text, 'work_order.updated', ` + record + `, $7::text, '{"fields": ["title"]}', now()` + series
		open = `
			INSERT INTO open_deliveries (id, event_id, webhook_id, record_id, status, attempts, last_status, created_at, next_attempt_at, workflow)
			SELECT 'dlv_' || ` + suffix + `, 'evt_' || ` + suffix + `, $6::text, ` + record + `, $7::text,
				CASE WHEN $7 = 'retrying' THEN 1 ELSE 0 END, CASE WHEN $7 = 'retrying' THEN 500 END, now(),
				CASE WHEN $7 = 'retrying' THEN now() + interval '1 day' END, CASE WHEN $7 = 'retrying' THEN false END` + series
	)
	digits := models.FirstID(models.PrefixEvent, time.Now())[len("evt_"):][:10]
	err = in.plant(ctx, n, func(int, int) []planted {
		return []planted{
			{events, []any{digits, string(mark), records, organization, creator}},
			{open, []any{digits, string(mark), records, address, status}},
		}
	})
	if err != nil {
		return err
	}
	_, err = in.pool.Exec(ctx, `VACUUM ANALYZE open_deliveries, events`)
	return err
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
