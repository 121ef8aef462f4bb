package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

func TestFailedCallsCountAsSlow(t *testing.T) {
	s := served{took: 2 * time.Second}
	s.add(time.Millisecond, true)
	s.add(time.Millisecond, true)
	s.add(time.Millisecond, false) // a 503 comes fast
	if got := s.rate(); got != 1 {
		t.Errorf("two successful calls in two seconds are %v/s, want 1", got)
	}
	if got := s.waits.percentile(99); got != quietLimit {
		t.Errorf("p99 with a failed call is %s, want %s", got, quietLimit)
	}
}

func TestNeighborsAreComparedWithTheWindowBefore(t *testing.T) {
	window := func(calls, failed int, wait time.Duration) served {
		s := served{took: time.Second}
		for n := range calls {
			s.add(wait, n >= failed)
		}
		return s
	}
	r := &report{}
	reportNeighbor(r, "noise", "calls", window(50, 0, 20*time.Millisecond), window(40, 0, 30*time.Millisecond))
	reportNeighbor(r, "flood", "calls", window(100, 0, 10*time.Millisecond), window(100, 50, 10*time.Millisecond))
	figures := map[string]figure{}
	for _, f := range r.Figures {
		figures[f.Name] = f
	}
	if f := figures["noise: calls"]; f.Ratio != 0.8 || f.Aim != 0.8 {
		t.Errorf("the calls' ratio is %v with aim %v, want 0.8 with aim 0.8", f.Ratio, f.Aim)
	}
	if f := figures["noise: p99 of calls"]; f.Ratio != 1.5 || f.Limit != 3 {
		t.Errorf("p99's ratio is %v, limit %v; want 1.5, limit 3", f.Ratio, f.Limit)
	}
	if f := figures["flood: failed calls"]; f.Value != 50 {
		t.Errorf("%v failed calls, want 50", f.Value)
	}
	if f := figures["flood: p99 of calls"]; f.Ratio != 500 {
		t.Errorf("p99's ratio with failed calls is %v, want 500", f.Ratio)
	}
	if _, failed := figures["noise: failed calls"]; failed {
		t.Error("the report lists failed calls, but all succeeded")
	}
}

// A neighbor's mistakes must end the bench, its rejected calls and broken connections
// must not.
func TestNeighborGoesOn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		responses := []string{"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"}
		for _, response := range responses { // one connection each
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(response))
			conn.Close()
		}
	}()
	n := &tenant{Address: listener.Addr().String()}
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = n.loop(ctx, 1, &calls, func(c *caller) error { return reading("/work-orders?limit=1")(n, c) })
	if rejected, ok := errors.AsType[*statusError](err); !ok || rejected.status != http.StatusUnauthorized {
		t.Errorf("the neighbor ended with %v, want the 401", err)
	}
}
