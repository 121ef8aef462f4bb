package slots

import (
	"context"
	"errors"
	"testing"
)

// asked is a wait of a tenant.
type asked struct {
	*wait
	tenant string
}

// ask asks for a slot.
func ask(t *testing.T, s *Slots, tenant string) asked {
	t.Helper()
	w, err := s.ask(tenant)
	if err != nil {
		t.Fatal(err)
	}
	return asked{w, tenant}
}

// holds reports whether the slot was granted.
func (a asked) holds() bool {
	select {
	case <-a.granted:
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
			if ask(t, s, tenant).holds() {
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
	release := func(a asked) { s.release(a.tenant, a.wait) }
	a1, a2, a3, a4 := ask(t, s, "a"), ask(t, s, "a"), ask(t, s, "a"), ask(t, s, "a")
	if !a1.holds() || !a2.holds() || a3.holds() || a4.holds() {
		t.Fatal("a tenant holds 2 slots at most")
	}
	if _, err := s.Enter(t.Context(), "a"); !errors.Is(err, ErrOverloaded) {
		t.Errorf("one too many waits: %v, want ErrOverloaded", err)
	}
	b1, b2, c1 := ask(t, s, "b"), ask(t, s, "b"), ask(t, s, "c")
	if !b1.holds() || b2.holds() || c1.holds() {
		t.Fatal("there are 3 slots")
	}
	release(a3) // it gave up
	release(b1)
	if !c1.holds() && !b2.holds() || a4.holds() {
		t.Error("a free slot goes to a tenant without one")
	}
	release(b2)
	release(c1)
	a5 := ask(t, s, "a")
	release(a1)
	if !a4.holds() || a5.holds() {
		t.Error("a tenant gets its slot back, the first that waits first")
	}
	for _, slot := range []asked{a2, a4, a5} {
		release(slot)
	}
	if s.used != 0 || len(s.tenants) != 0 || s.waiting != 0 {
		t.Errorf("%d slots are in use, by %v, %d wait; want none", s.used, s.tenants, s.waiting)
	}
}

// A wait ends with its context, and leaves no slot in use.
func TestAWaitEndsWithItsContext(t *testing.T) {
	s := Single()
	leave, err := s.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait whose context has ended: %v", err)
	}
	leave()
	if err := s.Run(t.Context(), "a", func() error { return nil }); err != nil || len(s.tenants) != 0 {
		t.Errorf("afterwards: %v, %d tenants use slots", err, len(s.tenants))
	}
}
