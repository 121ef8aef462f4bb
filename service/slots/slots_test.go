package slots

import (
	"errors"
	"testing"
)

// holds reports whether the slot was granted.
func holds(s *Slot) bool {
	select {
	case <-s.Granted:
		return true
	default:
		return false
	}
}

// Tenants that hold all slots, because their calls wait for something, do not keep others out.
func TestATenantHasSlotsOfItsOwn(t *testing.T) {
	s := New(4, 3, 10)
	s.own = 1
	grants := func(tenant string, n int) (granted int) {
		t.Helper()
		for range n {
			wanted, err := s.Request(tenant, true)
			if err != nil {
				t.Fatal(err)
			}
			if holds(wanted) {
				granted++
			}
		}
		return granted
	}
	if a, b, c := grants("a", 3), grants("b", 3), grants("c", 3); a != 3 || b != 1 || c != 1 {
		t.Errorf("they hold %d, %d and %d slots, want 3, 1 and 1", a, b, c)
	}
}

func TestSlots(t *testing.T) {
	s := New(3, 2, 2)
	request := func(tenant string) *Slot {
		t.Helper()
		wanted, err := s.Request(tenant, true)
		if err != nil {
			t.Fatal(err)
		}
		return wanted
	}
	a1, a2, a3, a4 := request("a"), request("a"), request("a"), request("a")
	if !holds(a1) || !holds(a2) || holds(a3) || holds(a4) {
		t.Fatal("a tenant holds 2 slots at most")
	}
	if _, err := s.Request("a", true); !errors.Is(err, ErrOverloaded) {
		t.Errorf("one too many waits: %v, want ErrOverloaded", err)
	}
	a5, err := s.Request("a", false)
	if err != nil {
		t.Errorf("an unbounded wait: %v", err)
	}
	b1, b2, c1 := request("b"), request("b"), request("c")
	if !holds(b1) || holds(b2) || holds(c1) {
		t.Fatal("there are 3 slots")
	}
	a3.Release() // it gave up
	b1.Release()
	if !holds(c1) && !holds(b2) || holds(a4) {
		t.Error("a free slot goes to a tenant without one")
	}
	b2.Release()
	c1.Release()
	a1.Release()
	if !holds(a4) || holds(a5) {
		t.Error("a tenant gets its slot back, the first that waits first")
	}
	for _, slot := range []*Slot{a2, a4, a5} {
		slot.Release()
	}
	if s.used != 0 || len(s.tenants) != 0 || s.waiting != 0 {
		t.Errorf("%d slots are in use, by %v, %d wait; want none", s.used, s.tenants, s.waiting)
	}
}
