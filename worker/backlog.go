package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/models"
	"millwright/service"
	"millwright/service/upkeep"
)

// Backlog reads the size and age of the pending work from the database at an
// interval and exports it as metrics. Every worker does so and exports the same
// values, so dashboards use the maximum.
type Backlog struct {
	service  *service.Service
	interval time.Duration
	timeout  time.Duration // of one read
	log      *slog.Logger

	mu   sync.Mutex
	last upkeep.Backlog
}

// backlogTimeout is the time limit of one read.
const backlogTimeout = 5 * time.Second

// staleAfter is the number of intervals after which the last values are no longer
// exported: no value is better than an old one.
const staleAfter = 4

// NewBacklog returns a Backlog that has no values yet. The interval is the
// sweep's: work that waits longer counts as unclaimed.
func NewBacklog(s *service.Service, interval time.Duration, log *slog.Logger) *Backlog {
	return &Backlog{service: s, interval: interval, timeout: backlogTimeout, log: log}
}

// Run reads now and then at each interval, until the context ends.
func (b *Backlog) Run(ctx context.Context) {
	ticker := time.NewTicker(b.interval)
	defer ticker.Stop()
	for {
		b.refresh(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (b *Backlog) refresh(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	// Twice the sweep's grace: the next sweep will still wake anything younger.
	found, err := b.service.Upkeep.Backlog(bounded, 2*b.interval)
	if err != nil {
		// An unreachable database is logged already. ctx, not bounded: a read that hits its
		// time limit is logged.
		if ctx.Err() == nil && models.CodeOf(err) != models.CodeUnavailable {
			b.log.WarnContext(ctx, "cannot read the backlog", "error", err.Error())
		}
		return
	}
	b.mu.Lock()
	b.last = found
	b.mu.Unlock()
}

type backlogGauge struct {
	desc  *prometheus.Desc
	value func(upkeep.Backlog) float64
}

func gauge(name, help string, value func(upkeep.Backlog) float64) backlogGauge {
	return backlogGauge{prometheus.NewDesc("millwright_"+name, help, nil, nil), value}
}

func count(read func(upkeep.Backlog) int) func(upkeep.Backlog) float64 {
	return func(b upkeep.Backlog) float64 { return float64(read(b)) }
}

// age is in seconds at the time of the read; 0 for nil.
func age(read func(upkeep.Backlog) *models.Time) func(upkeep.Backlog) float64 {
	return func(b upkeep.Backlog) float64 {
		since := read(b)
		if since == nil {
			return 0
		}
		return max(0, b.At.Sub(since.Time).Seconds())
	}
}

func timestamp(read func(upkeep.Backlog) models.Time) func(upkeep.Backlog) float64 {
	return func(b upkeep.Backlog) float64 { return float64(read(b).UnixMilli()) / 1000 }
}

var backlogGauges = []backlogGauge{
	gauge("deliveries_pending", "Deliveries waiting for their first attempt; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.Pending })),
	gauge("deliveries_oldest_pending_seconds", "Age of the oldest delivery waiting for its first attempt; 0 for no delivery.",
		age(func(b upkeep.Backlog) *models.Time { return b.OldestPending })),
	gauge("deliveries_stalled_seconds", "How long an address has had a delivery due without an attempt there, the longest of all; 0 for no address.",
		age(func(b upkeep.Backlog) *models.Time { return b.StalledSince })),
	gauge("deliveries_retrying", "Deliveries waiting for another attempt; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.Retries })),
	gauge("deliveries_failed", "Failed deliveries that are kept; with the held ones counted up to 10,000.",
		count(func(b upkeep.Backlog) int { return b.Failed })),
	gauge("deliveries_held", "Deliveries held because their address is or was off; with the failed ones counted up to 10,000.",
		count(func(b upkeep.Backlog) int { return b.Held })),
	gauge("unclaimed_addresses", "Addresses with pending deliveries that no dispatcher has leased and no sweep has woken.",
		count(func(b upkeep.Backlog) int { return b.UnclaimedAddresses })),
	gauge("unclaimed_retries", "Deliveries whose next attempt is overdue by minutes, and whose workflow no sweep has started; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.UnclaimedRetries })),
	gauge("unclaimed_records", "Records that have been dirty for longer than twelve sweeps; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.UnclaimedRecords })),
	gauge("dirty_records", "Dirty records: their workflow has not reloaded them since a write; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.DirtyRecords })),
	gauge("dirty_records_oldest_seconds", "How long the oldest dirty record has been dirty; 0 for no record.",
		age(func(b upkeep.Backlog) *models.Time { return b.OldestDirty })),
	gauge("mails_waiting", "Notices and sign-in links waiting to be sent by e-mail; counted up to 100,000.",
		count(func(b upkeep.Backlog) int { return b.Mails })),
	gauge("mails_oldest_seconds", "Age of the oldest notice waiting to be sent by e-mail; 0 for no notice.",
		age(func(b upkeep.Backlog) *models.Time { return b.OldestMail })),
	gauge("addresses_on", "Webhook addresses that are on.",
		count(func(b upkeep.Backlog) int { return b.AddressesOn })),
	gauge("addresses_off", "Webhook addresses that are off.",
		count(func(b upkeep.Backlog) int { return b.AddressesOff })),
	gauge("addresses_turned_off", "Webhook addresses that are off because they failed.",
		count(func(b upkeep.Backlog) int { return b.AddressesTurnedOff })),
	gauge("addresses_failing", "Webhook addresses that are on and have had no success since their last failure.",
		count(func(b upkeep.Backlog) int { return b.AddressesFailing })),
	gauge("receivers_attempted", "Hosts of webhook addresses attempted in the last ten minutes that had a success within a day.",
		count(func(b upkeep.Backlog) int { return b.ReceiversAttempted })),
	gauge("receivers_failing", "Hosts among them without a success at any address since their last failure.",
		count(func(b upkeep.Backlog) int { return b.ReceiversFailing })),
	gauge("receivers_late", "Hosts of webhook addresses that do not fail and have a delivery that is pending for longer than a minute.",
		count(func(b upkeep.Backlog) int { return b.ReceiversLate })),
	gauge("xmin_horizon_age_seconds", "How long a running transaction has kept the lists of changes from advancing; 0 if none has.",
		age(func(b upkeep.Backlog) *models.Time { return b.XminHorizonSince })),
	gauge("moves_oldest_seconds", "How long ago the oldest node moved below which records are not listed as changed yet; 0 if absent.",
		age(func(b upkeep.Backlog) *models.Time { return b.OldestMove })),
	gauge("partition_days_ahead", "For how many days after today there are partitions for events and deliveries; 7 after housekeeping.",
		count(func(b upkeep.Backlog) int { return b.PartitionDaysAhead })),
	gauge("partitions_overdue", "Partitions of expired days that could not be dropped for a day.",
		count(func(b upkeep.Backlog) int { return b.PartitionsOverdue })),
	gauge("last_backup_timestamp_seconds", "When the database was last backed up, as the backup recorded.",
		timestamp(func(b upkeep.Backlog) models.Time { return b.LastBackup })),
	gauge("backlog_counted_timestamp_seconds", "When the backlog was last read from the database.",
		timestamp(func(b upkeep.Backlog) models.Time { return b.At })),
}

// Describe implements prometheus.Collector.
func (b *Backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, g := range backlogGauges {
		descs <- g.desc
	}
}

// Collect implements prometheus.Collector. It exports nothing once the last
// values are stale.
func (b *Backlog) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if b.service.Store.Now().Sub(last.At.Time) > staleAfter*b.interval+b.timeout {
		return
	}
	for _, g := range backlogGauges {
		metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(last))
	}
}
