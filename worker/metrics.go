package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/models"
	"millwright/service"
)

// The outcomes of pokes.
const (
	pokeSent    = "sent"
	pokeFailed  = "failed"
	pokeMerged  = "merged"
	pokeDropped = "dropped"
)

// wakerMetrics are what a Poker counts.
type wakerMetrics struct{ pokes *prometheus.CounterVec }

func newWakerMetrics() *wakerMetrics {
	m := &wakerMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "millwright", Name: "pokes_total",
		Help: "Pokes of workflows, by outcome: sent, failed, merged with one that waits, or dropped because too many wait.",
	}, []string{"outcome"})}
	for _, outcome := range []string{pokeSent, pokeFailed, pokeMerged, pokeDropped} {
		m.pokes.WithLabelValues(outcome) // shown as 0 before the first
	}
	return m
}

func (m *wakerMetrics) count(outcome string) { m.pokes.WithLabelValues(outcome).Inc() }

// pokesWaiting describes the gauge of each lane.
var pokesWaiting = prometheus.NewDesc("millwright_pokes_waiting",
	"Pokes that wait to be sent, of mailboxes and deliveries (webhooks) and of work orders and feedback (records); 20,000 at the most.",
	[]string{"lane"}, nil)

// Describe tells the registry which metrics the Poker has.
func (p *Waker) Describe(descs chan<- *prometheus.Desc) {
	p.metrics.pokes.Describe(descs)
	descs <- pokesWaiting
}

// Collect hands the registry the Poker's metrics.
func (p *Waker) Collect(metrics chan<- prometheus.Metric) {
	p.metrics.pokes.Collect(metrics)
	p.mu.Lock()
	webhooks, records := len(p.webhooks.order), len(p.records.order)
	p.mu.Unlock()
	metrics <- prometheus.MustNewConstMetric(pokesWaiting, prometheus.GaugeValue, float64(webhooks), "webhooks")
	metrics <- prometheus.MustNewConstMetric(pokesWaiting, prometheus.GaugeValue, float64(records), "records")
}

// Backlog asks the database at intervals what is owed, and shows it as metrics.
// Every worker does, so that it is known while any of them runs; they tell the
// same, so take the maximum of them.
type Backlog struct {
	service *service.Service
	every   time.Duration
	log     *slog.Logger

	mu   sync.Mutex
	last service.Backlog
}

// backlogTimeout is how long the question may take.
const backlogTimeout = 5 * time.Second

// staleAfter is how many intervals an answer is shown for. What is not known is
// not shown, rather than shown as it once was.
const staleAfter = 4

// NewBacklog returns a Backlog that has not asked yet. What waits for longer than
// the interval, the sweep's, counts as in nobody's hand.
func NewBacklog(s *service.Service, every time.Duration, log *slog.Logger) *Backlog {
	return &Backlog{service: s, every: every, log: log}
}

// Run asks at once and then at each interval, until the context ends.
func (b *Backlog) Run(ctx context.Context) {
	ticker := time.NewTicker(b.every)
	defer ticker.Stop()
	for {
		b.ask(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (b *Backlog) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	// Twice the sweep's patience: what the next sweep will poke is in good hands.
	found, err := b.service.Backlog(ctx, 2*b.every)
	if err != nil {
		if ctx.Err() == nil {
			b.log.WarnContext(ctx, "the backlog could not be counted", "error", err.Error())
		}
		return
	}
	b.mu.Lock()
	b.last = found
	b.mu.Unlock()
}

// backlogGauge is one of a Backlog's metrics.
type backlogGauge struct {
	desc  *prometheus.Desc
	value func(service.Backlog) float64
}

func gauge(name, help string, value func(service.Backlog) float64) backlogGauge {
	return backlogGauge{prometheus.NewDesc("millwright_"+name, help, nil, nil), value}
}

func count(read func(service.Backlog) int) func(service.Backlog) float64 {
	return func(b service.Backlog) float64 { return float64(read(b)) }
}

// age is how long ago that was at the time of asking; 0 for nothing.
func age(read func(service.Backlog) *models.Time) func(service.Backlog) float64 {
	return func(b service.Backlog) float64 {
		since := read(b)
		if since == nil {
			return 0
		}
		return max(0, b.At.Sub(since.Time).Seconds())
	}
}

var backlogGauges = []backlogGauge{
	gauge("deliveries_pending", "Deliveries that wait for their first attempt; counted to 100,000.",
		count(func(b service.Backlog) int { return b.Pending })),
	gauge("deliveries_oldest_pending_seconds", "Age of the oldest delivery that waits for its first attempt; 0 when none does.",
		age(func(b service.Backlog) *models.Time { return b.OldestPending })),
	gauge("deliveries_retrying", "Deliveries that wait for another attempt; counted to 100,000.",
		count(func(b service.Backlog) int { return b.Retries })),
	gauge("unheld_addresses", "Addresses with deliveries waiting that no mailbox attends and no sweep picked up.",
		count(func(b service.Backlog) int { return b.UnclaimedAddresses })),
	gauge("unheld_retries", "Retries whose time has come and that nobody attempts; counted to 100,000.",
		count(func(b service.Backlog) int { return b.UnclaimedRetries })),
	gauge("unheld_looks", "Records whose workflow has not looked since a write a minute ago or earlier; counted to 100,000.",
		count(func(b service.Backlog) int { return b.UnclaimedRecords })),
	gauge("looks_owed", "Records whose workflow has to look; counted to 100,000.",
		count(func(b service.Backlog) int { return b.DirtyRecords })),
	gauge("looks_oldest_seconds", "Age of the oldest look that is owed; 0 when none is.",
		age(func(b service.Backlog) *models.Time { return b.OldestDirty })),
	gauge("mails_waiting", "Notices that wait to be mailed; counted to 100,000.",
		count(func(b service.Backlog) int { return b.Mails })),
	gauge("mails_oldest_seconds", "Age of the oldest notice that waits to be mailed; 0 when none does.",
		age(func(b service.Backlog) *models.Time { return b.OldestMail })),
	gauge("addresses_on", "Webhook addresses that are on.",
		count(func(b service.Backlog) int { return b.AddressesOn })),
	gauge("addresses_off", "Webhook addresses that are off.",
		count(func(b service.Backlog) int { return b.AddressesOff })),
	gauge("addresses_failing", "Webhook addresses that are on and have not answered well since their last failure.",
		count(func(b service.Backlog) int { return b.AddressesFailing })),
	gauge("backlog_counted_timestamp_seconds", "When the gauges of the backlog were last read from the database.",
		func(b service.Backlog) float64 { return float64(b.At.UnixMilli()) / 1000 }),
}

// Describe tells the registry which metrics the Backlog has.
func (b *Backlog) Describe(descs chan<- *prometheus.Desc) {
	for _, g := range backlogGauges {
		descs <- g.desc
	}
}

// Collect hands the registry the last answer, while it is fresh.
func (b *Backlog) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	last := b.last
	b.mu.Unlock()
	if b.service.Now().Sub(last.At.Time) > staleAfter*b.every+backlogTimeout {
		return
	}
	for _, g := range backlogGauges {
		metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(last))
	}
}
