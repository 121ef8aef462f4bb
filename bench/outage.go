package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"millwright/workflows"
)

const (
	// outageRate is the number of events a second for a dead address.
	outageRate = 500
	// rejectionTime is the time that a dead address takes to reject a retry, so that several
	// are in flight.
	rejectionTime = 5 * time.Millisecond
	// shownRetries is the number of an address's retrying deliveries that have a workflow.
	shownRetries = 1000
	// retriesDue is the number of retries that are due at once.
	retriesDue = 100_000
)

// outage is a dead address of one organization, a healthy one of another, and addresses of a
// third, whose deliveries should not suffer.
type outage struct {
	*installation
	dead, healthy *tenant
}

// benchOutage measures the cost of a dead address, what its retries do to other addresses
// when very many are due at once, and how fast they are sent when it is healthy again.
func benchOutage(b *bench) {
	in := b.install("outage")
	in.settings["WEBHOOK_RETRY_SCHEDULE"] = "24h,24h,24h" // a retry that failed stays out of the way
	in.startWith(changeSubscription(manyAddresses), benchWorkOrders)
	dead, healthy := changeSubscription(1), changeSubscription(1)
	dead.key, dead.failing, healthy.key = "dead", true, "healthy"
	o := &outage{in, in.tenantOf(dead, benchWorkOrders), in.tenantOf(healthy, benchWorkOrders)}
	in.startWorker(nil)
	in.awaitWorkflowsIdle()
	o.benchCost()
	o.benchDue()
	o.benchRecovery()
}

// benchCost compares the CPU time of events to a dead address and to a healthy one.
// As many deliveries as an address shows have a workflow before.
func (o *outage) benchCost() {
	o.begin("events to a dead address")
	o.patchTimes(o.dead, 4, shownRetries)
	o.awaitRetries(shownRetries)
	publisher := o.changes(1)
	publisher.tenant, publisher.publish = o.healthy, o.healthy.patch
	length := o.load / rounds
	var healthy, dead series
	for range rounds {
		o.awaitIdle()
		healthy = append(healthy, o.measure(func() int { publisher.paced(outageRate, length); return int(outageRate * length.Seconds()) }))
		o.awaitIdle()
		dead = append(dead, o.measure(func() int { o.reject(length); return int(outageRate * length.Seconds()) }))
	}
	const toHealthy, toDead = "500 events/s to a healthy address", "500 events/s to a dead address"
	healthy.cpu(o.report, toHealthy)
	total := dead.cpu(o.report, toDead)
	o.compare(toDead+": CPU compared", total, "s/1,000", toHealthy+": CPU of all these").Limit = 2
}

// reject makes changes whose deliveries are rejected, and waits until they were.
func (o *outage) reject(load time.Duration) {
	before := o.receiver.rejected.total.Load()
	var made atomic.Int64
	check(o.dead.paced(o.ctx, outageRate, load, func(c *caller) (func(from time.Time), error) {
		_, err := o.dead.patch(c)
		made.Add(1)
		return func(time.Time) {}, err
	}))
	o.await(2*time.Millisecond, func() bool { return o.receiver.rejected.total.Load()-before >= made.Load() })
}

// awaitRetries waits until the given number of deliveries has a workflow.
func (o *outage) awaitRetries(deliveries int64) {
	o.await(time.Second, func() bool {
		return must(o.temporal.CountWorkflow(o.ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: o.settings["TEMPORAL_NAMESPACE"],
			Query:     "WorkflowType = '" + workflows.DeliveryName + "' AND ExecutionStatus = 'Running' AND DeliveryStatus = 'retrying'",
		})).GetCount() >= deliveries
	})
}

// benchDue measures deliveries to the healthy addresses before and while retries of the
// dead one are due.
func (o *outage) benchDue() {
	const alone = "healthy addresses, nothing due"
	withRetries := fmt.Sprintf("healthy addresses, %d retries due at a dead one", retriesDue)
	o.begin(withRetries)
	o.plantOpen("dead", "retrying", retriesDue-shownRetries, "1")
	o.receiver.rejected.wait.Store(int64(rejectionTime))
	o.receiver.rejected.most.Store(0)
	changes, length, peak := o.changes(manyAddresses), o.load/rounds, 0.0
	var flooded, paced [2][]float64
	for n, due := range []bool{false, true} {
		if due {
			// Waits until the dispatcher of the dead address sends them.
			before := o.receiver.rejected.total.Load()
			o.setDue("0")
			o.patchTimes(o.dead, 1, 1) // wakes the address
			o.await(10*time.Millisecond, func() bool { return o.receiver.rejected.total.Load() > before+100 })
		}
		// Wakes the addresses, and leaves the tables as autovacuum keeps them.
		changes.flood(length)
		o.exec(`VACUUM ANALYZE`)
		before, started := o.receiver.rejected.total.Load(), time.Now()
		for range rounds {
			f := changes.flood(length)
			flooded[n] = append(flooded[n], f.arrived())
			if peak == 0 {
				peak = f.through()
			}
			paced[n] = append(paced[n], milliseconds(changes.paced(peak/2, length).fromResponse.percentile(99)))
		}
		if due {
			o.add("retries at the dead address in that time", perSecond(int(o.receiver.rejected.total.Load()-before), started, time.Now()), "/s")
		}
	}
	p99 := fmt.Sprintf(": response to receiver at %.0f changes/s, p99", peak/2)
	o.add(alone+": deliveries", median(flooded[0]), "/s")
	o.add(alone+p99, median(paced[0]), "ms")
	o.compareRounds(withRetries+": deliveries", flooded[1], flooded[0], "/s", alone).Aim = 0.9
	o.compareRounds(withRetries+p99, paced[1], paced[0], "ms", alone).Limit = 1.5
	o.add("most requests at once at the dead address; at most 32", float64(o.receiver.rejected.most.Load()), "")
}

// benchRecovery measures how fast retries are sent once the address is healthy again, and
// first attempts of as many deliveries at a healthy one.
func (o *outage) benchRecovery() {
	const healthy, recovered = "backlog of a healthy address", "retries of an address that has recovered"
	o.begin(recovered)
	o.setDue("1 day")
	o.receiver.rejected.accept.Store(true)
	log := o.receiver.newLog()
	o.plantOpen("healthy", "pending", retriesDue, "2")
	o.benchBacklog(healthy, o.healthy, log, retriesDue, healthy)
	log = o.receiver.newLog()
	o.benchBacklog(recovered, o.dead, log, o.setDue("0"), healthy)
}

// setDue makes all retries due after a time, while no worker updates them, and returns how
// many.
func (o *outage) setDue(after string) int {
	o.stopWorker()
	retries := o.exec(`UPDATE open_deliveries SET next_attempt_at = now() + $1::interval WHERE status = 'retrying'`, after)
	o.startWorker(nil)
	return retries
}

// benchBacklog measures how fast n deliveries that are due at the tenant's address are sent,
// and compares the rate with that of an earlier backlog.
func (o *outage) benchBacklog(name string, t *tenant, log *deliveryLog, n int, to string) {
	var first, last time.Time
	sent := o.measure(func() int {
		o.patchTimes(t, 1, 1)
		first, last = log.await(o.ctx, n+1)
		return n
	})
	rate := perSecond(n, first, last)
	if name == to {
		o.add(name+": deliveries", rate, "/s")
	} else {
		o.compare(name+": deliveries", rate, "/s", to+": deliveries").Aim = 0.5
	}
	sent.cpu(o.report, name)
}

// plantOpen creates open deliveries of the address of the organization with the key, with
// their events, of today.
func (o *outage) plantOpen(key, status string, n int, mark string) {
	var organization, creator, address string
	var records []string
	check(o.pool.QueryRow(o.ctx, `
		SELECT h.organization_id, h.integration_id, h.id, ARRAY(SELECT w.id FROM work_orders w WHERE w.organization_id = h.organization_id)
		FROM webhooks h JOIN integrations i ON i.id = h.integration_id WHERE i.client_id = $1`, key+"-1").Scan(&organization, &creator, &address, &records))
	o.plant(n, "open_deliveries.sql", arguments{
		"organization": organization, "creator": creator, "webhook": address, "records": records, "status": status, "mark": mark,
	})
	o.exec(`VACUUM ANALYZE open_deliveries, events`)
}
