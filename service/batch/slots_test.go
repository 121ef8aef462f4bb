package batch

import (
	"errors"
	"testing"
)

// holds reports whether the slot was granted.
func holds(s *slot) bool {
	select {
	case <-s.granted:
		return true
	default:
		return false
	}
}

func TestSlots(t *testing.T) {
	s := newSlots(3, 2, 2)
	request := func(tenant string) *slot {
		t.Helper()
		wanted, err := s.request(tenant, true)
		if err != nil {
			t.Fatal(err)
		}
		return wanted
	}
	a1, a2, a3, a4 := request("a"), request("a"), request("a"), request("a")
	if !holds(a1) || !holds(a2) || holds(a3) || holds(a4) {
		t.Fatal("a tenant holds 2 slots at most")
	}
	if _, err := s.request("a", true); !errors.Is(err, ErrOverloaded) {
		t.Errorf("one too many waits: %v, want ErrOverloaded", err)
	}
	a5, err := s.request("a", false)
	if err != nil {
		t.Errorf("an unbounded wait: %v", err)
	}
	b1, b2, c1 := request("b"), request("b"), request("c")
	if !holds(b1) || holds(b2) || holds(c1) {
		t.Fatal("there are 3 slots")
	}
	a3.release() // it gave up
	b1.release()
	if !holds(c1) && !holds(b2) || holds(a4) {
		t.Error("a free slot goes to a tenant without one")
	}
	b2.release()
	c1.release()
	a1.release()
	if !holds(a4) || holds(a5) {
		t.Error("a tenant gets its slot back, the first that waits first")
	}
	for _, slot := range []*slot{a2, a4, a5} {
		slot.release()
	}
	if s.used != 0 || len(s.tenants) != 0 || len(s.waiting) != 0 {
		t.Errorf("%d slots are in use, by %v, %d wait; want none", s.used, s.tenants, len(s.waiting))
	}
}
