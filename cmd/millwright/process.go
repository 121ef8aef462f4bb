package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"millwright/models"
	"millwright/service"
	"millwright/service/store"
	"millwright/telemetry"
	"millwright/worker"
)

// process is what the API server and the worker process have in common.
type process struct {
	settings settings
	log      *slog.Logger
	*observability
	temporal  client.Client
	waker     *worker.Waker
	overloads prometheus.Counter
	pools     store.Pools
	service   *service.Service
	// stops end the parts, the last one first.
	stops []func()
}

// startProcess builds a server's parts, up to the service on a database that
// passes the check. dial are options of the Temporal client. The caller stops the process.
func startProcess(ctx context.Context, s settings, command string, check schemaCheck, dial ...grpc.DialOption) (_ *process, err error) {
	p := &process{settings: s, log: s.logger(), overloads: telemetry.NewOverloads()}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if len(s.unknown) > 0 {
		p.log.Warn("no settings, though their names begin like settings", "names", strings.Join(s.unknown, ", "))
	}
	if p.observability, err = s.observe(ctx, command, p.log); err != nil {
		return nil, err
	}
	p.onStop(p.observability.stop)
	temporal := telemetry.NewWatch(ctx, "Temporal", "workflows wait", p.log, func(ctx context.Context) error {
		_, err := p.temporal.CheckHealth(ctx, nil)
		if err != nil && ctx.Err() == nil && !telemetry.Unreachable(err) {
			return nil // it responds, whatever it rejects
		}
		return err
	})
	if p.temporal, err = newTemporalClient(s, p.log, p.observability, append(dial, temporal.WatchCalls())...); err != nil {
		return nil, err
	}
	p.onStop(p.temporal.Close)
	p.onStop(temporal.Stop)
	p.waker = worker.NewWaker(ctx, p.temporal, p.log)
	p.onStop(func() { stopWaker(p.waker) })
	if p.service, p.pools, err = openService(ctx, s, "millwright "+command, check, func(o *store.Options, pools store.Pools) {
		database := telemetry.NewWatch(ctx, "database", "calls get 503; workflows and deliveries wait", p.log, pools.Others.Ping)
		p.onStop(database.Stop)
		o.Waker, o.Overloaded, o.Unreachable = p.waker, p.overloads.Inc, database.Failed
	}); err != nil {
		return nil, err
	}
	p.onStop(p.pools.Close)
	return p, nil
}

func (p *process) onStop(stop func()) { p.stops = append(p.stops, stop) }

// stop ends the parts in reverse order, so that none loses what it still uses.
func (p *process) stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
}

// serveMetrics serves the process's metrics and the collectors' metrics on
// METRICS_ADDR, if set, until the context ends.
func (p *process) serveMetrics(ctx context.Context, more ...prometheus.Collector) error {
	p.registry.MustRegister(p.waker, telemetry.PoolMetrics(p.pools.All()...), p.overloads)
	p.registry.MustRegister(more...)
	return p.observability.serve(ctx, p.settings.MetricsAddr, p.settings.MetricsHosts)
}

// inBackground runs the function until the process stops or the context ends.
func (p *process) inBackground(ctx context.Context, run func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	p.onStop(func() {
		cancel()
		running.Wait()
	})
}

// stopWaker gives queued wakes a moment to be sent; the sweep replaces the others.
func stopWaker(w *worker.Waker) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	w.Stop(ctx)
}

// openService connects to the database and returns the service with its pools,
// which the caller closes. It fails if the schema is older than the program. change, if not
// nil, changes the service's options.
func openService(ctx context.Context, s settings, application string, check schemaCheck, change func(*store.Options, store.Pools)) (*service.Service, store.Pools, error) {
	options, err := s.serviceOptions(s.logger())
	if err != nil {
		return nil, store.Pools{}, err
	}
	pools, err := s.pool(application).Open(ctx, s.DatabaseURL)
	if err != nil {
		return nil, store.Pools{}, err
	}
	if change != nil {
		change(&options, pools)
	}
	options.Lookups = pools.Lookups
	svc, err := service.New(pools.Others, options)
	if err == nil {
		err = check(ctx, svc)
	}
	if err != nil {
		pools.Close()
		return nil, store.Pools{}, err
	}
	return svc, pools, nil
}

// schemaCheck decides whether the database can be used.
type schemaCheck func(context.Context, *service.Service) error

// requireSchema requires a database that responds now and has the current schema.
func requireSchema(ctx context.Context, svc *service.Service) error {
	err := svc.Store.CheckSchema(ctx)
	if models.CodeOf(err) == models.CodeUnavailable {
		return errors.New("the database of DATABASE_URL does not respond")
	}
	return err
}

// waitForSchema waits until the database responds, then requires the current schema.
func waitForSchema(ctx context.Context, svc *service.Service) error {
	const wait = 2 * time.Second
	for {
		err := svc.Store.CheckSchema(ctx)
		if models.CodeOf(err) != models.CodeUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
