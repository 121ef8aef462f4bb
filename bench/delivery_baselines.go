package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"millwright/webhook"
)

// The baselines of deliveries, and of workflows: from the call that starts one until its end
// is known.
const (
	baselineDrain          = "baseline: claim 100, POST them signed, update them"
	baselineEmptyWorkflows = "baseline: empty Temporal workflow, 32 at a time"
	baselineWorkflows      = "baseline: Temporal workflow with a local activity, 32 at a time"
)

// sideBySide runs do in 32 goroutines for the given time and returns how often it ran.
func sideBySide(ctx context.Context, load time.Duration, do func(context.Context) error) (int, error) {
	var done atomic.Int64
	end := time.Now().Add(load)
	group, ctx := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			for time.Now().Before(end) {
				if err := do(ctx); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	err := group.Wait()
	return int(done.Load()), err
}

// baselineEvent is as large as a work order's event.
var baselineEvent = []byte(`{"id":"evt_00000000000000000000000000","data":{"filler":"` + strings.Repeat("x", 800) + `"}}`)

// benchDrainOfTable measures a queue in a plain table: its rows are posted a hundred at a time.
func (in *installation) benchDrainOfTable() {
	in.begin(baselineDrain)
	const batch = 100
	transport := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client, signer := &http.Client{Transport: transport, Timeout: 10 * time.Second}, must(webhook.NewSigner(in.secret))
	post := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, in.receiver.url("/baseline"), bytes.NewReader(baselineEvent))
		if err != nil {
			return err
		}
		r.Header = signer.Header("evt_00000000000000000000000000", "work_order.updated", time.Now(), baselineEvent)
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	rows := int(20_000 * in.load.Seconds() / 2)
	in.exec(`CREATE TABLE baseline_queue (id bigint PRIMARY KEY, body bytea NOT NULL, sent_at timestamptz)`)
	in.exec(`CREATE INDEX baseline_queue_pending ON baseline_queue (id) WHERE sent_at IS NULL`)
	in.exec(`INSERT INTO baseline_queue SELECT n, $1 FROM generate_series(1, $2) n`, baselineEvent, rows)
	drained := in.measure(func() (sent int) {
		for end := time.Now().Add(in.load / 2); sent < rows && time.Now().Before(end); sent += batch {
			type row struct {
				ID   int64
				Body []byte
			}
			claimed := must(in.pool.Query(in.ctx, `SELECT id, body FROM baseline_queue WHERE sent_at IS NULL ORDER BY id LIMIT $1`, batch))
			due := must(pgx.CollectRows(claimed, pgx.RowToStructByPos[row]))
			group, sending := errgroup.WithContext(in.ctx)
			group.SetLimit(callers)
			ids := make([]int64, len(due))
			for i, d := range due {
				ids[i] = d.ID
				group.Go(func() error { return post(sending) })
			}
			check(group.Wait())
			in.exec(`UPDATE baseline_queue SET sent_at = now() WHERE id = ANY ($1)`, ids)
		}
		return sent
	})
	in.add(baselineDrain, drained.rate(), "/s")
	in.exec(`DROP TABLE baseline_queue`)
}

func emptyWorkflow(workflow.Context) error { return nil }

func oneActivityWorkflow(ctx workflow.Context) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteLocalActivity(ctx, emptyActivity).Get(ctx, nil)
}

func emptyActivity(context.Context) error { return nil }

// benchBareWorkflows measures workflows that do nothing for the product.
func (in *installation) benchBareWorkflows() {
	const queue = "baseline"
	w := sdkworker.New(in.temporal, queue, sdkworker.Options{
		MaxConcurrentWorkflowTaskPollers: 8, DisableRegistrationAliasing: true,
	})
	w.RegisterWorkflow(emptyWorkflow)
	w.RegisterWorkflow(oneActivityWorkflow)
	check(w.Start())
	defer w.Stop()
	for _, baseline := range []struct {
		name string
		flow any
	}{{baselineEmptyWorkflows, emptyWorkflow}, {baselineWorkflows, oneActivityWorkflow}} {
		in.begin(baseline.name)
		run := func(ctx context.Context) error {
			started, err := in.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: queue}, baseline.flow)
			if err != nil {
				return err
			}
			return started.Get(ctx, nil)
		}
		var alone waits
		for range max(10, int(5*in.load.Seconds())) {
			started := time.Now()
			check(run(in.ctx))
			alone = append(alone, time.Since(started))
		}
		together := in.measure(func() int { return must(sideBySide(in.ctx, in.load/2, run)) })
		in.add(baseline.name, together.rate(), "/s")
		alone.report(in.report, baseline.name+": alone")
		together.cpu(in.report, baseline.name)
	}
	in.awaitIdle()
}
