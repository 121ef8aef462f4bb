package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"millwright/activities"
	"millwright/api"
	"millwright/models"
	"millwright/service"
	"millwright/telemetry"
	"millwright/worker"
)

// shutdownTimeout is how long an API server finishes the calls it has.
const shutdownTimeout = 20 * time.Second

// gcPercent is how much garbage an API server makes before it is collected, in
// percent of what it keeps, where GOGC does not say. It keeps a few MiB: by Go's own
// 100, collecting takes 6 (reads) to 13 (creations) percent of its processor time
// under load (docs/performance.md). GOMEMLIMIT bounds it as ever.
const gcPercent = 400

func apiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "api",
		Short: "Serve the HTTP API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			return serveAPI(cmd.Context(), s)
		},
	}
}

func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Run workflows and deliver webhooks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			return runWorker(cmd.Context(), s)
		},
	}
}

func serveAPI(ctx context.Context, s settings) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log := s.logger()
	seen, err := s.observe(ctx, "api", log)
	if err != nil {
		return err
	}
	defer seen.stop()
	temporal, err := newTemporalClient(s, log, seen)
	if err != nil {
		return err
	}
	defer temporal.Close()
	poker := worker.NewWaker(ctx, temporal, log)
	defer stopPoker(poker)
	// A database that is not there yet is no reason not to listen: the API says
	// 503, and that it is not ready, until it is.
	missing := false
	svc, pool, err := openService(ctx, s, "millwright api", poker, func(ctx context.Context, svc *service.Service) error {
		err := svc.CheckSchema(ctx)
		if missing = models.CodeOf(err) == models.CodeUnavailable; missing {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	seen.registry.MustRegister(poker, telemetry.PoolMetrics(pool))
	if err := seen.serve(ctx, s.MetricsAddr); err != nil {
		return err
	}
	handler, err := api.New(svc, api.Options{
		PublicURL:      s.PublicURL,
		Version:        version,
		TrustedProxies: s.TrustedProxies,
		CallTimeout:    s.CallTimeout,
		TemporalReady: func(ctx context.Context) error {
			_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			if err != nil {
				return errors.New("temporal does not answer")
			}
			return nil
		},
		Tracer:  seen.tracing.Tracer(),
		Metrics: seen.registry,
		Log:     log,
	})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Addr)
	if err != nil {
		return fmt.Errorf("MILLWRIGHT_ADDR: cannot listen on %s: is another program using it?", s.Addr)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	log.Info("the API listens", "address", listener.Addr().String())
	return live(ctx, s, svc, handler, missing, func(ctx context.Context) error {
		return serve(ctx, server, limitConnections(listener, s.MaxConnections))
	})
}

// live serves from the start to the end of a process: while the database is
// missing, calls are answered 503; when the process is asked to stop, it serves
// on for the delay in which load balancers notice that it is not ready any more.
func live(ctx context.Context, s settings, svc *service.Service, handler *api.API, missing bool, calls func(context.Context) error) error {
	if missing {
		handler.Hold()
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	refused := make(chan error, 1)
	go func() {
		defer stop()
		defer close(refused)
		if missing {
			if err := waitForSchema(ctx, svc); err != nil {
				refused <- err
				return
			}
			handler.Serve()
		}
		<-ctx.Done()
		handler.Drain()
		svc.Log.Info("the API stops", "serves_on_for", s.ShutdownDelay.String())
		<-time.After(s.ShutdownDelay)
	}()
	if err := calls(serving); err != nil {
		return err
	}
	return <-refused
}

// serve runs the server until the context ends, then lets it finish its calls.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return server.Shutdown(ctx)
}

func runWorker(ctx context.Context, s settings) error {
	log := s.logger()
	seen, err := s.observe(ctx, "worker", log)
	if err != nil {
		return err
	}
	defer seen.stop()
	temporal, err := newTemporalClient(s, log, seen)
	if err != nil {
		return err
	}
	defer temporal.Close()
	poker := worker.NewWaker(ctx, temporal, log)
	defer stopPoker(poker)
	svc, pool, err := openService(ctx, s, "millwright worker", poker, waitForSchema)
	if err != nil {
		return err
	}
	defer pool.Close()
	watched, err := activities.NewInstrumentation(seen.registry, seen.tracing.Tracer(), log)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	backlog := worker.NewBacklog(svc, s.SweepEvery, log)
	seen.registry.MustRegister(poker, backlog, telemetry.PoolMetrics(pool))
	if err := seen.serve(ctx, s.MetricsAddr); err != nil {
		return err
	}
	defer runBeside(ctx, backlog.Run)()
	sender := s.sender()
	defer sender.Close()
	mailer, err := s.mailer()
	if err != nil {
		return err
	}
	options := worker.Options{
		Client: temporal, Namespace: s.Namespace, Service: svc, Poker: poker, Sender: sender, Mailer: mailer,
		IdleTimeout: s.Linger, SweepEvery: s.SweepEvery, StopTimeout: s.ResponseTimeout + 5*time.Second,
		Watched: watched, Log: log,
	}
	if err := prepare(ctx, options); err != nil {
		return err
	}
	w := worker.New(options)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	log.Info("the worker runs", "namespace", s.Namespace)
	<-ctx.Done()
	w.Stop()
	return nil
}

// runBeside runs the function until the context ends, or until the returned
// function is called, which waits for its end.
func runBeside(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// prepare waits until Temporal answers and has what the worker needs.
func prepare(ctx context.Context, options worker.Options) error {
	const wait = 2 * time.Second
	for {
		attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := worker.Prepare(attempt, options)
		cancel()
		if err == nil {
			return nil
		}
		options.Log.Warn("Temporal is not ready; trying again", "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func stopPoker(p *worker.Waker) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p.Stop(ctx)
}

// openService connects to the database and returns the service with its pool, which the caller closes.
// A schema older than the program is refused.
func openService(ctx context.Context, s settings, application string, poker service.Waker, check schemaCheck) (*service.Service, *pgxpool.Pool, error) {
	options, err := s.serviceOptions(s.logger())
	if err != nil {
		return nil, nil, err
	}
	options.Waker = poker
	pool, err := s.pool(application).Connect(ctx, s.DatabaseURL)
	if err != nil {
		return nil, nil, err
	}
	svc, err := service.New(pool, options)
	if err == nil {
		err = check(ctx, svc)
	}
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return svc, pool, nil
}

// schemaCheck decides whether the database will do.
type schemaCheck func(context.Context, *service.Service) error

// requireSchema wants a database that answers now, with a current schema.
func requireSchema(ctx context.Context, svc *service.Service) error {
	err := svc.CheckSchema(ctx)
	if models.CodeOf(err) == models.CodeUnavailable {
		return errors.New("the database of DATABASE_URL does not answer")
	}
	return err
}

// waitForSchema waits for a database that does not answer yet, as servers do.
func waitForSchema(ctx context.Context, svc *service.Service) error {
	const wait = 2 * time.Second
	for {
		err := svc.CheckSchema(ctx)
		if models.CodeOf(err) != models.CodeUnavailable {
			return err
		}
		svc.Log.Warn("the database of DATABASE_URL does not answer; trying again")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
