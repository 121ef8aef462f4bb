package web

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A flood of one network leaves connections to others at its address.
func TestDelayedRequestsOfANetworkAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Delay
		started := time.Now()
		for range maxDelayed {
			go d.Wait(t.Context(), "192.0.2.1", time.Second, http.Header{})
		}
		synctest.Wait()
		one, other := http.Header{}, http.Header{}
		d.Wait(t.Context(), "192.0.2.1", time.Second, one)
		if time.Since(started) > 0 || one.Get("Connection") != "close" {
			t.Errorf("one more waited %s, Connection: %q", time.Since(started), one.Get("Connection"))
		}
		d.Wait(t.Context(), "192.0.2.2", time.Second, other)
		if time.Since(started) != time.Second || other.Get("Connection") != "" {
			t.Errorf("another network waited %s, Connection: %q", time.Since(started), other.Get("Connection"))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		d.Wait(gone, "192.0.2.1", time.Hour, http.Header{})
		synctest.Wait()
		if len(d.waiting) != 0 {
			t.Errorf("%v wait at the end", d.waiting)
		}
	})
}
