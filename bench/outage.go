package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	// failedDeliveries is the number of deliveries that a dead address gets before others wait.
	failedDeliveries = 100
	// rejectionTime is the time that a dead address takes to reject a request.
	rejectionTime = 5 * time.Millisecond
	// waitingDeliveries wait at the dead address.
	waitingDeliveries = 100_000
)

// outage is a dead address of one organization, a healthy one of another, and addresses of a
// third, whose deliveries should not suffer.
type outage struct {
	*installation
	dead, healthy *tenant
}

// benchOutage measures the cost of failing deliveries, what a dead address with very many events does to other
// addresses, and how fast these are sent when it is healthy again. The eight attempts are a second apart.
func benchOutage(b *bench) {
	in := b.install("outage")
	in.settings["WEBHOOK_RETRY_SCHEDULE"] = strings.TrimSuffix(strings.Repeat("1s,", 7), ",")
	in.startWith(changeSubscription(manyAddresses), benchWorkOrders)
	dead, healthy := changeSubscription(1), changeSubscription(1)
	dead.key, dead.failing, healthy.key = "dead", true, "healthy"
	o := &outage{in, in.tenantOf(dead, benchWorkOrders), in.tenantOf(healthy, benchWorkOrders)}
	in.startWorker(nil)
	in.awaitWorkflowsIdle()
	o.benchCost()
	o.benchDead()
	o.benchRecovery()
}

// benchCost measures the CPU time of deliveries that fail eight times, without what the servers use at rest. It includes the calls.
func (o *outage) benchCost() {
	const name = "a delivery that fails eight times"
	o.begin(name)
	o.receiver.rejected.wait.Store(int64(rejectionTime))
	o.measureAboveRest(func() int {
		o.patchTimes(o.dead, 4, failedDeliveries)
		o.await(100*time.Millisecond, func() bool { return o.countDeliveries("failed") >= failedDeliveries })
		return failedDeliveries
	}).cpu(o.report, name)
}

// countDeliveries counts the finished deliveries with the status.
func (o *outage) countDeliveries(status string) (n int) {
	check(o.pool.QueryRow(o.ctx, `SELECT count(*) FROM deliveries WHERE status = $1`, status).Scan(&n))
	return n
}

// benchDead measures deliveries to the healthy addresses before and while very many wait at the dead one.
func (o *outage) benchDead() {
	const alone = "healthy addresses"
	withDead := fmt.Sprintf("healthy addresses, %d deliveries wait at a dead one", waitingDeliveries)
	o.begin(withDead)
	changes, length, peak := o.changes(manyAddresses), o.load/rounds, 0.0
	var flooded, paced [2][]float64
	for n, waiting := range []bool{false, true} {
		if waiting {
			o.plantOpen("dead", "pending", waitingDeliveries, "1")
		}
		// Wakes the addresses, and leaves the tables as autovacuum keeps them.
		changes.flood(length)
		o.exec(`VACUUM ANALYZE`)
		for range rounds {
			f := changes.flood(length)
			flooded[n] = append(flooded[n], f.arrived())
			if peak == 0 {
				peak = f.through()
			}
			paced[n] = append(paced[n], milliseconds(changes.paced(peak/2, length).fromResponse.percentile(99)))
		}
	}
	p99 := fmt.Sprintf(": response to receiver at %.0f changes/s, p99", peak/2)
	o.add(alone+": deliveries", median(flooded[0]), "/s")
	o.add(alone+p99, median(paced[0]), "ms")
	o.compareRounds(withDead+": deliveries", flooded[1], flooded[0], "/s", alone).Aim = 0.98
	o.compareRounds(withDead+p99, paced[1], paced[0], "ms", alone).Limit = 1.5
}

// benchRecovery measures how fast what waits is sent once the address is healthy again, and a backlog of as many
// deliveries at a healthy one.
func (o *outage) benchRecovery() {
	const healthy, recovered = "backlog of a healthy address", "backlog of an address that has recovered"
	o.begin(recovered)
	log := o.receiver.newLog()
	o.plantOpen("healthy", "pending", waitingDeliveries, "2")
	o.benchBacklog(healthy, o.healthy, log, waitingDeliveries, healthy)
	waiting := must(o.waiting())
	log = o.receiver.newLog()
	o.receiver.rejected.accept.Store(true)
	o.benchBacklog(recovered, o.dead, log, waiting, healthy)
}

// waiting counts what is open at the dead address.
func (o *outage) waiting() (n int, err error) {
	err = o.pool.QueryRow(o.ctx, `SELECT count(*) FROM open_deliveries d JOIN webhooks w ON w.id = d.webhook_id JOIN integrations i ON i.id = w.integration_id
		WHERE i.client_id = 'dead-1' AND d.status = 'pending'`).Scan(&n)
	return n, err
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
