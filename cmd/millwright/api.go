package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"millwright/api"
	"millwright/console"
	"millwright/models"
	"millwright/service"
	"millwright/service/access"
	"millwright/worker"
)

// apiGCPercent is the API's garbage collection target if GOGC is not set. The live
// heap is a few MiB: at Go's default of 100 the collector takes 6 % (reads) to 13 %
// (creations) of the CPU under load (decision 77). GOMEMLIMIT still applies.
const apiGCPercent = 400

// collectAt sets the garbage collection target, unless GOGC does.
func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

func apiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "api",
		Short: "Serve the HTTP API and the console",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings()
			if err != nil {
				return err
			}
			return untilStopped(cmd.Context(), serveAPI(cmd.Context(), s))
		},
	}
}

// serveAPI runs the API until the context ends.
func serveAPI(ctx context.Context, s settings) error {
	collectAt(apiGCPercent)
	// The API starts without its database: until it responds, calls get 503 and the
	// API is not ready.
	missing := false
	p, err := startProcess(ctx, s, "api", func(ctx context.Context, svc *service.Service) error {
		err := svc.Store.CheckSchema(ctx)
		if missing = models.CodeOf(err) == models.CodeUnavailable; missing {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.serveMetrics(ctx); err != nil {
		return err
	}
	consoleOptions, err := p.consoleOptions()
	if err != nil {
		return err
	}
	pages, err := console.New(p.service, consoleOptions)
	if err != nil {
		return err
	}
	p.onStop(pages.Wait)
	apiOptions := p.apiOptions()
	apiOptions.UnknownPage = pages.UnknownPage()
	handler := api.New(p.service, apiOptions)
	if err := p.serveProbes(ctx, handler); err != nil {
		return err
	}
	clients, err := listenOn(ctx, "MILLWRIGHT_ADDR", s.Addr)
	if err != nil {
		return err
	}
	listener := limitConnections(clients, connectionLimits{
		total: s.MaxConnections, perNetwork: s.MaxPerClient, proxies: s.TrustedProxies,
	})
	server := &http.Server{
		Handler:           front(p.settings.PublicURL, pages, handler),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		ConnState:         listener.setState,
	}
	if s.lacksProxies() {
		p.log.Warn("MILLWRIGHT_PUBLIC_URL is https and TRUSTED_PROXIES is empty: if a proxy is in front of the API, limits count all its clients as one")
	}
	if s.trustsPrivateClients() {
		p.log.Warn("TRUSTED_PROXIES covers a whole private network: every client in it can claim any address; name only the proxies' addresses")
	}
	background := context.WithoutCancel(ctx)
	p.inBackground(background, p.repeat(access.ExchangeInterval, "exchange the counts of calls", p.service.Access.ExchangeCounts))
	p.log.Info("the API listens", "address", listener.Addr().String())
	return p.serveCalls(ctx, handler, missing, func(ctx context.Context) error {
		return serve(ctx, server, listener)
	})
}

// repeat runs a step of the service at each interval until the context ends, and then once more.
func (p *process) repeat(interval time.Duration, what string, step func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for ended := false; !ended; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				ended = true
			}
			limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), interval)
			if err := step(limited); err != nil && models.CodeOf(err) != models.CodeUnavailable {
				p.log.WarnContext(ctx, "cannot do what is repeated; the next time will", "what", what, "error", err.Error())
			}
			cancel()
		}
	}
}

// front serves the console's paths with the console and all others with the API. With a public
// URL of https, it tells browsers to use no other for a year.
func front(publicURL string, pages, calls http.Handler) http.Handler {
	secure := strings.HasPrefix(publicURL, "https://")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		if console.Owns(r.URL.Path) {
			pages.ServeHTTP(w, r)
			return
		}
		calls.ServeHTTP(w, r)
	})
}

// failureDelay is the minimum duration of a failed sign-in, longer than checking passwords on a busy machine, and of
// a rejection of a client that is not known, over its limit.
const failureDelay = 500 * time.Millisecond

// workflowsURL returns the URL of a namespace's workflows in Temporal's Web UI, "" without a UI.
func workflowsURL(ui, namespace string) string {
	if ui == "" {
		return ""
	}
	return strings.TrimSuffix(ui, "/") + "/namespaces/" + url.PathEscape(namespace) + "/workflows"
}

func (p *process) consoleOptions() (console.Options, error) {
	provider, err := p.settings.openID()
	if err != nil {
		return console.Options{}, err
	}
	return console.Options{
		PublicURL:      p.settings.PublicURL,
		TrustedProxies: p.settings.TrustedProxies,
		RequestTimeout: p.settings.CallTimeout,
		FailureDelay:   failureDelay,
		Tester:         worker.Tester{Client: p.temporal},
		OpenID:         provider,
		WorkflowsURL:   workflowsURL(p.settings.TemporalUI, p.settings.Namespace),
		Metrics:        p.registry,
		Log:            p.log,
	}, nil
}

// serveProbes serves the probes on PROBES_ADDR, if set, until the process stops: while
// it drains, too, and whatever clients do with their connections.
func (p *process) serveProbes(ctx context.Context, handler *api.API) error {
	if p.settings.ProbesAddr == "" {
		return nil
	}
	listener, err := listenOn(ctx, "PROBES_ADDR", p.settings.ProbesAddr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler.Probes(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	p.inBackground(context.WithoutCancel(ctx), func(ctx context.Context) {
		if err := serve(ctx, server, listener); err != nil {
			p.log.Warn("the server of the probes stopped", "error", err.Error())
		}
	})
	return nil
}

func (p *process) apiOptions() api.Options {
	return api.Options{
		PublicURL:      p.settings.PublicURL,
		Version:        currentBuild().Version,
		TrustedProxies: p.settings.TrustedProxies,
		CallTimeout:    p.settings.CallTimeout,
		LimitDelay:     failureDelay,
		TemporalReady: func(ctx context.Context) error {
			if _, err := p.temporal.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
				return errors.New("Temporal does not respond") //nolint:staticcheck // a name
			}
			return nil
		},
		Tracer:  p.tracing.Tracer(),
		Metrics: p.registry,
		Log:     p.log,
	}
}

// serveCalls runs the server. While the database is missing, calls get 503. Asked
// to stop, the API reports not ready and serves for another SHUTDOWN_DELAY, in which
// load balancers notice.
func (p *process) serveCalls(ctx context.Context, handler *api.API, missing bool, server func(context.Context) error) error {
	if missing {
		handler.Hold()
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 1)
	go func() {
		defer stop()
		defer close(failed)
		if missing {
			if err := waitForSchema(ctx, p.service); err != nil {
				failed <- err
				return
			}
			handler.Serve()
		}
		<-ctx.Done()
		handler.Drain()
		p.log.Info("the API stops", "serves_on_for", p.settings.ShutdownDelay.String())
		<-time.After(p.settings.ShutdownDelay)
	}()
	if err := server(serving); err != nil {
		return err
	}
	return <-failed
}
