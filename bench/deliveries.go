package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"millwright/webhook"
	"millwright/workflows"
)

// The baselines of deliveries, and of workflows: from the call that starts one until its end
// is known.
const (
	baselineDrain     = "baseline: claim 100, POST them signed, update them"
	baselineWorkflows = "baseline: Temporal workflow with a local activity, 32 at a time"
)

// benchDeliveries measures changes from the call to the receivers. Each load lasts
// about the given time.
func benchDeliveries(b *bench) {
	in := b.install("deliveries")
	defer in.close()
	in.startWith(changeSubscription(1))
	in.benchDrainOfTable()
	f := in.startBaselines("deliveries_baselines")
	in.add(rawBaseline(patchOne), in.sideBySide(in.load/2, f.raw(patchOne)).rate(), "/s")
	in.stop(baselineServer)
	in.benchBareWorkflows()
	started := time.Now()
	in.startWorker()
	in.awaitDirtyRecords()
	in.compare("workflows of new work orders started", perSecond(benchWorkOrders, started, time.Now()), "/s", baselineWorkflows)
	in.awaitIdle(time.Hour, "worker", "temporal")
	rate := in.benchChanges(1)
	in.benchLatencies(rate / 2)
	in.benchDrain()
	in.subscribe(changeSubscription(5)) // as many as an integration may have
	in.benchChanges(5)
}

// awaitDirtyRecords waits until the workflows have loaded all records.
func (in *installation) awaitDirtyRecords() {
	await(10*time.Millisecond, func() (all bool) {
		check(in.pool.QueryRow(in.ctx, `SELECT NOT EXISTS (SELECT FROM dirty_records)`).Scan(&all))
		return all
	})
}

// deliver makes changes for the given time, and waits until each has arrived at every address.
func (in *installation) deliver(addresses int, load time.Duration) measured {
	in.receiver.begin()
	return in.measure(func() int {
		changes := in.flood(in.erp, callers, patchOne, load).n
		in.receiver.await(changes * addresses)
		return changes
	})
}

// benchChanges measures the peak rate of changes and returns it, in changes per second.
func (in *installation) benchChanges(addresses int) float64 {
	what := fmt.Sprintf("changes, addresses: %d", addresses)
	// Warms up: opens connections, wakes the address workflows, and leaves the
	// tables as autovacuum keeps them.
	in.deliver(addresses, in.load/5)
	in.exec(`VACUUM ANALYZE`)
	in.deliver(addresses, in.load/5)
	m := in.deliver(addresses, in.load)
	in.compare(what+": from first call to last delivery", m.rate(), "/s", rawBaseline(patchOne))
	in.addCPU(what, m)
	in.profiled(fmt.Sprintf("changes-%d", addresses), func() { in.deliver(addresses, profileFor+time.Second) })
	return m.rate()
}

// benchLatencies measures the time from a change's response to its receiver: without other load,
// while the address workflow sleeps, and at the given rate.
func (in *installation) benchLatencies(rate float64) {
	times := max(3, int(in.load.Seconds()))
	// Random pauses do not coincide with a poller's interval.
	pause := func() { sleep(50*time.Millisecond + rand.N(50*time.Millisecond)) } //nolint:gosec // no secret
	in.addWaits("response to receiver, idle", in.oneByOne(20*times, pause), "")
	in.stop("worker")
	in.startWorker("WEBHOOK_IDLE_TIMEOUT=100ms") // goes to sleep sooner; waking is the same
	in.addWaits("response to receiver, address workflow asleep", in.oneByOne(times, in.awaitAddressIdle), "")
	in.stop("worker")
	in.startWorker()
	in.awaitIdle(time.Hour, "worker", "temporal")
	in.deliver(1, in.load/5) // wakes the address workflow
	in.addWaits(fmt.Sprintf("response to receiver, %.0f changes/s", rate), in.atRate(rate), "")
}

// oneByOne makes changes sequentially. Before each it calls ready.
func (in *installation) oneByOne(times int, ready func()) waits {
	c := newCaller(in.erp)
	defer c.close()
	in.receiver.begin()
	responded := map[change]time.Time{}
	for range times {
		ready()
		check(patchOne.call(in.erp, c))
		responded[c.changed()] = time.Now()
		in.receiver.await(len(responded))
	}
	return in.receiver.waits(responded)
}

// atRate makes changes at the rate.
func (in *installation) atRate(rate float64) waits {
	in.receiver.begin()
	var mu sync.Mutex
	responded := map[change]time.Time{}
	in.erp.busy(operation{"change", func(t *tenant, c *caller) error {
		err := patchOne.call(t, c)
		mu.Lock()
		defer mu.Unlock()
		responded[c.changed()] = time.Now()
		return err
	}}, rate, in.load, 0)
	return in.receiver.waits(responded)
}

// awaitAddressIdle waits until the first address's workflow is asleep: it has no dispatch
// and nothing to do.
func (in *installation) awaitAddressIdle() {
	await(20*time.Millisecond, func() bool {
		is := must(in.temporal.DescribeWorkflowExecution(in.ctx, workflows.WebhookAddressID(in.webhookID), ""))
		return len(is.GetPendingActivities()) == 0 && is.GetPendingWorkflowTask() == nil
	})
}

// benchDrain measures how fast a new worker delivers pending changes to one address.
func (in *installation) benchDrain() {
	pending := int(2000 * in.load.Seconds())
	in.stop("worker")
	in.receiver.begin()
	in.erp.times(pending, func(c *caller) { check(patchOne.call(in.erp, c)) })
	var first, last time.Time
	draining := in.measure(func() int {
		in.startWorker()
		first, last = in.receiver.await(pending)
		return pending
	})
	in.compare(fmt.Sprintf("drain: %d pending deliveries arrived", pending), perSecond(pending, first, last), "/s", baselineDrain)
	in.addCPU("drain", draining)
}

// benchDrainOfTable measures a queue in a plain table: its rows are posted a hundred at a time, 32 at
// once.
func (in *installation) benchDrainOfTable() {
	// As large as a work order's event.
	event := []byte(`{"id":"evt_00000000000000000000000000","data":{"filler":"` + strings.Repeat("x", 800) + `"}}`)
	signer := must(webhook.NewSigner(in.secret))
	post := func(body []byte) {
		r := request(http.MethodPost, in.receiver.server.URL, body)
		r.Header = signer.Header("evt_00000000000000000000000000", "work_order.updated", time.Now(), body)
		must(fetch(r))
	}
	rows := int(20_000 * in.load.Seconds() / 2)
	in.exec(`CREATE TABLE baseline_queue (id bigint PRIMARY KEY, body bytea NOT NULL, sent_at timestamptz)`)
	in.exec(`CREATE INDEX baseline_queue_pending ON baseline_queue (id) WHERE sent_at IS NULL`)
	in.exec(`INSERT INTO baseline_queue SELECT n, $1 FROM generate_series(1, $2) n`, event, rows)
	drained := in.measure(func() (sent int) {
		for end := time.Now().Add(in.load / 2); sent < rows && time.Now().Before(end); {
			type row struct {
				ID   int64
				Body []byte
			}
			claimed := must(in.pool.Query(in.ctx, `SELECT id, body FROM baseline_queue WHERE sent_at IS NULL ORDER BY id LIMIT 100`))
			due := must(pgx.CollectRows(claimed, pgx.RowToStructByPos[row]))
			var posting errgroup.Group
			posting.SetLimit(callers)
			for _, d := range due {
				posting.Go(func() error { post(d.Body); return nil })
			}
			check(posting.Wait())
			in.exec(`UPDATE baseline_queue SET sent_at = now() WHERE id = ANY ($1)`, each(due, func(d row) int64 { return d.ID }))
			sent += len(due)
		}
		return sent
	})
	in.add(baselineDrain, drained.rate(), "/s")
}

func baselineWorkflow(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteLocalActivity(ctx, func(context.Context) error { return nil }).Get(ctx, nil)
}

// benchBareWorkflows measures workflows that do nothing for the product.
func (in *installation) benchBareWorkflows() {
	const queue = "baseline"
	w := sdkworker.New(in.temporal, queue, sdkworker.Options{MaxConcurrentWorkflowTaskPollers: 8})
	w.RegisterWorkflow(baselineWorkflow)
	check(w.Start())
	defer w.Stop()
	m := in.sideBySide(in.load/2, func() {
		check(must(in.temporal.ExecuteWorkflow(in.ctx, client.StartWorkflowOptions{TaskQueue: queue}, baselineWorkflow)).Get(in.ctx, nil))
	})
	in.add(baselineWorkflows, m.rate(), "/s")
	in.awaitIdle(time.Hour, "temporal")
}
