package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

const (
	// MaxHousekeepingRun is how long one RemoveExpired works before it returns.
	MaxHousekeepingRun = time.Minute
	// HousekeepingHeartbeatTimeout is when a dead worker's RemoveExpired is retried:
	// longer than the database's time limit for a statement, so that a slow batch is
	// not taken for a dead worker.
	HousekeepingHeartbeatTimeout = time.Minute
)

// Housekeeper removes expired rows.
type Housekeeper struct {
	Service *service.Service
	Now     func() time.Time
	// BatchSize is the number of rows one transaction removes.
	BatchSize int
	// Instrumentation records each success; it may be nil.
	Instrumentation *Instrumentation
}

// RemoveExpired removes expired rows in batches until none is left, the time is up
// or the worker stops. It returns the number of rows by table. First it writes a beat
// (service.Beat), which must not wait for the removals, and makes the partitions of the
// next days.
func (h *Housekeeper) RemoveExpired(ctx context.Context) (service.RemovalResult, error) {
	if err := h.Service.Beat(ctx); err != nil {
		return service.RemovalResult{}, err
	}
	making := h.Service.MakePartitions(ctx)
	deadline := h.Now().Add(MaxHousekeepingRun)
	removed, err := h.Service.RemoveExpired(ctx, h.BatchSize, func() bool {
		activity.RecordHeartbeat(ctx)
		return h.Now().Before(deadline) && !stopping(ctx)
	})
	if err = errors.Join(making, err); err == nil {
		h.Instrumentation.housekeepingFinished(h.Now())
	}
	return removed, err
}
