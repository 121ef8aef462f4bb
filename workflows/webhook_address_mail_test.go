package workflows

import (
	"slices"
	"testing"
	"time"

	"millwright/service/webhooks"
)

func TestAddressWorkflowMailsNoticesAboutItsAddress(t *testing.T) {
	t.Run("once", func(t *testing.T) {
		h := newNoticesHarness(t, 2)
		h.wantDispatches(1, h.run())
		if h.notices != 0 || len(h.mailings) != 1 {
			t.Errorf("%d notices are left, mailed at %v", h.notices, h.mailings)
		}
	})
	t.Run("not without notices", func(t *testing.T) {
		h := newNoticesHarness(t, 0)
		h.wantDispatches(1, h.run())
		if len(h.mailings) != 0 {
			t.Errorf("mailed at %v", h.mailings)
		}
	})
	t.Run("after an outage of the mail server, which delays no deliveries", func(t *testing.T) {
		h := newNoticesHarness(t, 1)
		h.mailDown = func(at time.Duration) bool { return at < time.Hour }
		for _, at := range []string{"10m", "20m", "50m"} {
			h.become(at, func(s *webhooks.AddressState) { s.Due = true })
		}
		if err := h.run(); err != nil {
			t.Fatalf("the workflow ended with %v", err)
		}
		for _, at := range durations("0s 10m 20m 50m") {
			if !slices.Contains(h.dispatches, at) {
				t.Errorf("dispatches at %v, want one at %v", h.dispatches, at)
			}
		}
		if len(h.mailings) != 1 || h.mailings[0] < time.Hour || h.mailings[0] > time.Hour+5*time.Minute {
			t.Errorf("mailed at %v, want once within 5 minutes of the hour", h.mailings)
		}
	})
	t.Run("even those created during a mailing", func(t *testing.T) {
		h := newNoticesHarness(t, 1)
		h.mailDown = func(at time.Duration) bool { return at < time.Minute }
		h.change("90s", func() {
			if h.notices == 0 {
				h.notices = 1 // the mailing missed it
			}
		})
		h.signal(SignalWake, "91s")
		if err := h.run(); err != nil {
			t.Fatalf("the workflow ended with %v", err)
		}
		if h.notices != 0 {
			t.Error("a notice was not mailed")
		}
	})
}
