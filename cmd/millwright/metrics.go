package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"millwright/telemetry"
)

// observability is how operators see a process: its metrics, and its spans when
// a collector takes them.
type observability struct {
	command  string
	log      *slog.Logger
	registry *prometheus.Registry
	temporal *telemetry.TemporalMetrics
	tracing  *telemetry.Tracing
}

// observe begins to observe the process that runs the command.
func (s settings) observe(ctx context.Context, command string, log *slog.Logger) (*observability, error) {
	o := &observability{
		command: command, log: log, registry: prometheus.NewRegistry(), temporal: telemetry.NewTemporalMetrics(),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "millwright", Name: "build_info", Help: "Always 1; its labels are the command and the version that run.",
		ConstLabels: prometheus.Labels{"command": command, "version": version, "go_version": runtime.Version()},
	})
	build.Set(1)
	o.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build, o.temporal)
	if s.TracesEndpoint == "" && s.OTLPEndpoint == "" {
		return o, nil
	}
	var err error
	o.tracing, err = telemetry.StartTracing(ctx, telemetry.Process{Service: "millwright-" + command, Version: version}, log)
	return o, err
}

// observeTemporal has a client of Temporal, and the workers on it, counted and
// traced.
func (o *observability) observeTemporal(options *client.Options) (err error) {
	if o == nil {
		return nil
	}
	options.MetricsHandler = o.temporal.Handler()
	options.Interceptors, err = o.tracing.Interceptors()
	return err
}

// stop sends the spans that wait.
func (o *observability) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := o.tracing.Stop(ctx); err != nil {
		o.log.Warn("the last traces could not be sent", "error", err.Error())
	}
}

// serve serves the metrics on the address until the context ends; on none when
// it is empty.
func (o *observability) serve(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("METRICS_ADDR: cannot listen on %s: is another program using it?", address)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{o.log},
	}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := serve(ctx, server, listener); err != nil {
			o.log.Warn("the metrics are served no more", "error", err.Error())
		}
	}()
	return nil
}

// metricsLog takes what promhttp has to say.
type metricsLog struct{ *slog.Logger }

// Println logs that metrics are missing from an answer.
func (l metricsLog) Println(v ...any) {
	l.Warn("some metrics cannot be shown", "error", fmt.Sprint(v...))
}
