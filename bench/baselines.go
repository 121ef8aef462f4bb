package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"millwright/webhook"
)

// The baselines of deliveries.
const (
	baselinePost  = "baseline: signed POST over loopback, 32 at a time"
	baselineDrain = "baseline: claim 100, POST them signed, update them"
)

// benchPosts measures requests, and a queue in one table, without the product.
func (in *installation) benchPosts(ctx context.Context, r *report, load time.Duration) error {
	signer, err := webhook.NewSigner(in.secret)
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	p := &poster{client: &http.Client{Transport: transport, Timeout: 10 * time.Second}, signer: signer, url: in.receiver.url("/baseline")}
	for _, baseline := range []struct {
		name string
		run  func(context.Context, time.Duration) (float64, error)
	}{
		{baselinePost, func(ctx context.Context, load time.Duration) (float64, error) { return sideBySide(ctx, load, p.post) }},
		{baselineDrain, func(ctx context.Context, load time.Duration) (float64, error) { return in.drainTable(ctx, load, p) }},
	} {
		err := phase(ctx, baseline.name, load+time.Minute, func(ctx context.Context) error {
			rate, err := baseline.run(ctx, load/2)
			r.add(baseline.name, rate, "/s")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sideBySide runs do in 32 goroutines for the given time and returns how often it ran
// per second.
func sideBySide(ctx context.Context, load time.Duration, do func(context.Context) error) (float64, error) {
	var done atomic.Int64
	started := time.Now()
	end := started.Add(load)
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
	return perSecond(int(done.Load()), started, time.Now()), err
}

// poster posts signed bodies as large as a work order's event.
type poster struct {
	client *http.Client
	signer *webhook.Signer
	url    string
}

var baselineEvent = []byte(`{"id":"evt_00000000000000000000000000","data":{"filler":"` + strings.Repeat("x", 800) + `"}}`)

func (p *poster) post(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(baselineEvent))
	if err != nil {
		return err
	}
	r.Header = p.signer.Header("evt_00000000000000000000000000", "work_order.updated", time.Now(), baselineEvent)
	response, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// drainTable posts the rows of a plain table, a hundred at a time.
func (in *installation) drainTable(ctx context.Context, load time.Duration, p *poster) (float64, error) {
	const batch = 100
	_, err := in.pool.Exec(ctx, `CREATE TABLE baseline_queue (id bigint PRIMARY KEY, body bytea NOT NULL, sent_at timestamptz);
		CREATE INDEX baseline_queue_pending ON baseline_queue (id) WHERE sent_at IS NULL`)
	if err != nil {
		return 0, err
	}
	rows := int(20_000 * load.Seconds())
	if _, err := in.pool.Exec(ctx, `INSERT INTO baseline_queue SELECT n, $1 FROM generate_series(1, $2) n`, baselineEvent, rows); err != nil {
		return 0, err
	}
	sent, started := 0, time.Now()
	for end := started.Add(load); sent < rows && time.Now().Before(end); sent += batch {
		claimed, err := in.pool.Query(ctx, `SELECT id, body FROM baseline_queue WHERE sent_at IS NULL ORDER BY id LIMIT $1`, batch)
		if err != nil {
			return 0, err
		}
		type row struct {
			ID   int64
			Body []byte
		}
		due, err := pgx.CollectRows(claimed, pgx.RowToStructByPos[row])
		if err != nil {
			return 0, err
		}
		group, sending := errgroup.WithContext(ctx)
		group.SetLimit(callers)
		ids := make([]int64, len(due))
		for i, d := range due {
			ids[i] = d.ID
			group.Go(func() error { return p.post(sending) })
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		if _, err := in.pool.Exec(ctx, `UPDATE baseline_queue SET sent_at = now() WHERE id = ANY ($1)`, ids); err != nil {
			return 0, err
		}
	}
	rate := perSecond(sent, started, time.Now())
	if _, err := in.pool.Exec(ctx, `DROP TABLE baseline_queue`); err != nil {
		return 0, fmt.Errorf("drop the baseline's table: %w", err)
	}
	return rate, nil
}
