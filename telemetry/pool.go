package telemetry

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// poolMetric is one of a pool's statistics.
type poolMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*pgxpool.Stat) float64
}

func poolGauge(name, help string, read func(*pgxpool.Stat) int32) poolMetric {
	return poolMetric{
		prometheus.NewDesc("millwright_database_"+name, help, nil, nil), prometheus.GaugeValue,
		func(s *pgxpool.Stat) float64 { return float64(read(s)) },
	}
}

func poolCounter(name, help string, read func(*pgxpool.Stat) float64) poolMetric {
	return poolMetric{prometheus.NewDesc("millwright_database_"+name, help, nil, nil), prometheus.CounterValue, read}
}

var poolMetrics = []poolMetric{
	poolGauge("connections_in_use", "Database connections in use.", (*pgxpool.Stat).AcquiredConns),
	poolGauge("connections_idle", "Database connections open and not in use.", (*pgxpool.Stat).IdleConns),
	poolGauge("connections_opening", "Database connections being opened.", (*pgxpool.Stat).ConstructingConns),
	poolGauge("connections_open", "Database connections open or being opened.", (*pgxpool.Stat).TotalConns),
	poolGauge("connections_max", "Database connections allowed.", (*pgxpool.Stat).MaxConns),
	poolCounter("acquires_total", "Connections taken from the pool.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }),
	poolCounter("acquires_waited_total", "Acquires that waited because no connection was idle.",
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }),
	poolCounter("acquire_wait_seconds_total", "Time spent waiting for a connection because none was idle.",
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
	poolCounter("acquires_cancelled_total", "Acquires that were cancelled while waiting.",
		func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }),
	poolCounter("connections_opened_total", "Database connections opened.",
		func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) }),
	poolCounter("connections_closed_old_total", "Database connections closed because of their age.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxLifetimeDestroyCount()) }),
	poolCounter("connections_closed_idle_total", "Database connections closed because they were idle.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxIdleDestroyCount()) }),
}

// PoolMetrics returns the metrics of a process's database pools together.
func PoolMetrics(pools ...*pgxpool.Pool) prometheus.Collector { return poolCollector(pools) }

type poolCollector []*pgxpool.Pool

// Describe implements prometheus.Collector.
func (poolCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range poolMetrics {
		descs <- m.desc
	}
}

// Collect implements prometheus.Collector: all metrics come from one snapshot of each pool.
func (c poolCollector) Collect(metrics chan<- prometheus.Metric) {
	sums := make([]float64, len(poolMetrics))
	for _, pool := range c {
		now := pool.Stat()
		for i, m := range poolMetrics {
			sums[i] += m.read(now)
		}
	}
	for i, m := range poolMetrics {
		metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, sums[i])
	}
}
