package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveMetrics serves Prometheus metrics of the process and its database pool
// on the address until the context ends; on none when it is empty.
func serveMetrics(ctx context.Context, address string, pool *pgxpool.Pool, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		poolGauge(pool, "in_use", "Database connections in use.", (*pgxpool.Stat).AcquiredConns),
		poolGauge(pool, "open", "Database connections open.", (*pgxpool.Stat).TotalConns),
		poolGauge(pool, "max", "Database connections allowed.", (*pgxpool.Stat).MaxConns),
	)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("METRICS_ADDR: cannot listen on %s: is another program using it?", address)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := serve(ctx, server, listener); err != nil {
			log.Warn("the metrics are served no more", "error", err.Error())
		}
	}()
	return nil
}

func poolGauge(pool *pgxpool.Pool, name, help string, read func(*pgxpool.Stat) int32) prometheus.Collector {
	return prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: "millwright", Subsystem: "database_connections", Name: name, Help: help},
		func() float64 { return float64(read(pool.Stat())) })
}
