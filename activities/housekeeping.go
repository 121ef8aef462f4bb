package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"millwright/service"
	"millwright/service/upkeep"
)

const (
	// MaxHousekeepingRun limits the time for which one HousekeepForAWhile works.
	MaxHousekeepingRun = 10 * time.Minute
	// HousekeepingHeartbeatTimeout is the time after which another worker process continues a
	// HousekeepForAWhile whose worker process died. Heartbeats do not wait for the database.
	HousekeepingHeartbeatTimeout = 20 * time.Second
	// HousekeepingInterval is the interval at which HousekeepForAWhile keeps house. It bounds how much
	// earlier than its time a changed_since begins while no client reads changes.
	HousekeepingInterval = time.Minute
	// MaxRemoval limits the time for which rows are removed before the next watermark is written.
	MaxRemoval = time.Minute
)

// Housekeeper removes expired rows, writes watermarks and makes partitions.
type Housekeeper struct {
	Service *service.Service
	Now     func() time.Time
	// BatchSize is the number of rows one transaction removes.
	BatchSize int
	// Interval is the interval at which HousekeepForAWhile keeps house.
	Interval time.Duration
	// Instrumentation records each success; it may be nil.
	Instrumentation *Instrumentation
}

// HousekeepForAWhile keeps house every Interval for the duration, at most
// MaxHousekeepingRun, or until the worker stops, and again at once while expired rows are
// left. Its heartbeats and its result are the number of removed rows by table.
func (h *Housekeeper) HousekeepForAWhile(ctx context.Context, duration time.Duration) (upkeep.RemovalResult, error) {
	var mu sync.Mutex
	var total upkeep.RemovalResult
	progress := func() upkeep.RemovalResult {
		mu.Lock()
		defer mu.Unlock()
		return total
	}
	defer heartbeat(ctx, progress)()
	err := repeat(ctx, min(duration, MaxHousekeepingRun), h.Interval, func(ctx context.Context) (bool, error) {
		removed, err := h.housekeep(ctx)
		mu.Lock()
		defer mu.Unlock()
		total.Add(removed)
		return removed.More, err
	})
	return progress(), err
}

// housekeep removes expired rows in batches until none is left, MaxRemoval is over or the
// worker stops. It returns the number of rows by table.
// First it writes a watermark (lists.WriteWatermark), which must not wait for the removals, and makes
// the partitions of the next days.
func (h *Housekeeper) housekeep(ctx context.Context) (upkeep.RemovalResult, error) {
	if err := h.Service.Lists.WriteWatermark(ctx); err != nil {
		return upkeep.RemovalResult{}, err
	}
	making := h.Service.Store.MakePartitions(ctx)
	deadline := h.Now().Add(MaxRemoval)
	removed, err := h.Service.Upkeep.RemoveExpired(ctx, h.BatchSize, func() bool {
		return h.Now().Before(deadline) && !stopping(ctx)
	})
	if err = errors.Join(making, err); err == nil {
		h.Instrumentation.housekeepingFinished(h.Now())
	}
	return removed, err
}
