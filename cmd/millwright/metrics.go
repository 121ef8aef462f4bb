package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"millwright/telemetry"
)

// observability is a process's metrics and, if there is a collector, its traces.
type observability struct {
	log      *slog.Logger
	registry *prometheus.Registry
	temporal *telemetry.TemporalMetrics
	tracing  *telemetry.Tracing
}

// observe sets up the metrics and traces of a process that runs the command.
func (s settings) observe(ctx context.Context, command string, log *slog.Logger) (*observability, error) {
	o := &observability{log: log, registry: prometheus.NewRegistry(), temporal: telemetry.NewTemporalMetrics()}
	version := currentBuild().Version
	buildInfo := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "millwright", Name: "build_info", Help: "Always 1; the labels are the running command and its version.",
		ConstLabels: prometheus.Labels{"command": command, "version": version, "go_version": runtime.Version()},
	})
	buildInfo.Set(1)
	o.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo, o.temporal)
	if s.TracesEndpoint == "" && s.OTLPEndpoint == "" {
		return o, nil
	}
	var err error
	o.tracing, err = telemetry.StartTracing(ctx, telemetry.Process{Service: "millwright-" + command, Version: version}, log)
	return o, err
}

// observeTemporal makes a Temporal client, and the workers on it, report metrics and
// traces. A nil o adds nothing.
func (o *observability) observeTemporal(options *client.Options) (err error) {
	if o == nil {
		return nil
	}
	options.MetricsHandler = o.temporal.Handler()
	options.Interceptors, err = o.tracing.Interceptors()
	return err
}

// stop sends the queued spans.
func (o *observability) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := o.tracing.Stop(ctx); err != nil {
		o.log.Warn("cannot send the last traces", "error", err.Error())
	}
}

// serve serves the metrics on the address, if not empty, until the context ends.
// names are the host names that clients may use besides the address's.
func (o *observability) serve(ctx context.Context, address string, names []string) error {
	if address == "" {
		return nil
	}
	listener, err := listenOn(ctx, "METRICS_ADDR", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: o.handler(append(names, hostOf(address))), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := serve(ctx, server, listener); err != nil {
			o.log.Warn("the metrics server stopped", "error", err.Error())
		}
	}()
	return nil
}

// handler serves the metrics to the named hosts.
func (o *observability) handler(hosts []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{o.log},
	}))
	return allowHosts(mux, hosts...)
}

// metricsLog logs promhttp's errors.
type metricsLog struct{ *slog.Logger }

// Println logs that metrics are missing from a response.
func (l metricsLog) Println(v ...any) {
	l.Warn("cannot collect some metrics", "error", fmt.Sprint(v...))
}
