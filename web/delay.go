package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// maxDelayed bounds the delayed requests of a network, which hold connections that others at its address need.
const maxDelayed = 100

// Delay makes repeating rejected requests slow, so that it takes no CPU time from others. A delayed request holds a
// connection and nothing else. The zero value is ready to use, by several goroutines.
type Delay struct {
	mu      sync.Mutex
	waiting map[string]int // by network
}

// Wait returns after the time, or when the context ends. It returns at once if a hundred requests of the network wait; then
// the connection is closed after the response.
func (d *Delay) Wait(ctx context.Context, network string, length time.Duration, header http.Header) {
	if length <= 0 {
		return
	}
	if !d.enter(network) {
		header.Set("Connection", "close")
		return
	}
	defer d.leave(network)
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (d *Delay) enter(network string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string]int{}
	}
	if d.waiting[network] >= maxDelayed {
		return false
	}
	d.waiting[network]++
	return true
}

func (d *Delay) leave(network string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[network]--; d.waiting[network] == 0 {
		delete(d.waiting, network)
	}
}
