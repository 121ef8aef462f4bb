package api

import (
	"context"
	"sync"
	"time"
)

const (
	// readyFor is the time for which the result of readiness probes is kept: strangers can send many.
	readyFor = time.Second
	// readyLimit bounds the check, which goes on for others if the first client leaves.
	readyLimit = 5 * time.Second
)

// readiness asks the servers behind the API at most once in readyFor. The zero value is ready
// to use.
type readiness struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// ask returns the result of the check, or that of one within readyFor.
func (r *readiness) ask(ctx context.Context, check func(context.Context) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= readyFor { // elapsed time, whatever the service's clock shows
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyLimit)
		defer cancel()
		r.err, r.at = check(ctx), time.Now()
	}
	return r.err
}
