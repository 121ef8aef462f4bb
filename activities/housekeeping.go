package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"millwright/service"
)

// The pace of housekeeping.
const (
	// HousekeepingRound is how long one RemoveExpired works before it reports back.
	HousekeepingRound = time.Minute
	// HousekeepingHeartbeat is how soon a dead worker's round is begun anew: later
	// than the database ends a batch that takes too long.
	HousekeepingHeartbeat = time.Minute
)

// Housekeeper removes what is past its life.
type Housekeeper struct {
	Service *service.Service
	Now     func() time.Time
	// Batch is how many rows one transaction takes.
	Batch int
	// Instrumentation is told of each round; nil is not.
	Instrumentation *Instrumentation
}

// RemoveExpired removes what is past its life, batch by batch, until nothing is
// left, the round is over or the worker stops.
func (h *Housekeeper) RemoveExpired(ctx context.Context) (service.Removed, error) {
	ends := h.Now().Add(HousekeepingRound)
	removed, err := h.Service.RemoveExpired(ctx, h.Batch, func() bool {
		activity.RecordHeartbeat(ctx)
		return h.Now().Before(ends) && !stopping(ctx)
	})
	if err == nil {
		h.Instrumentation.cleanedAt(h.Now())
	}
	return removed, err
}
