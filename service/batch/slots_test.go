package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
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
	if s.used != 0 || len(s.tenants) != 0 || s.waiting != 0 {
		t.Errorf("%d slots are in use, by %v, %d wait; want none", s.used, s.tenants, s.waiting)
	}
}

func TestSlotsNextToOthers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	activity := &Activity{Now: func() time.Time { return now }}
	s := NewCallSlots(activity)
	enter := func(tenant string) *slot {
		t.Helper()
		activity.Note(tenant)
		wanted, err := s.request(tenant, true)
		if err != nil {
			t.Fatal(err)
		}
		return wanted
	}
	var mine []*slot
	for range maxCalls + 1 {
		mine = append(mine, enter("a"))
	}
	if !holds(mine[maxCalls-1]) || holds(mine[maxCalls]) {
		t.Fatalf("a tenant alone holds %d slots at most", maxCalls)
	}
	if !holds(enter("b")) {
		t.Fatal("another tenant waits")
	}
	for n := range maxCalls - maxCallsNextToOthers {
		mine[n].release()
	}
	if holds(mine[maxCalls]) {
		t.Fatalf("a tenant gets a slot next to others while it holds %d", maxCallsNextToOthers)
	}
	mine[maxCalls-1].release()
	if !holds(mine[maxCalls]) {
		t.Fatalf("a tenant holds %d slots next to others", maxCallsNextToOthers)
	}
	if holds(enter("a")) {
		t.Fatal("a tenant has too many slots next to others")
	}
	now = now.Add(activeFor)
	if !holds(enter("a")) {
		t.Fatalf("a tenant is not alone %s after the other's last call", activeFor)
	}
}

func TestOneLongReadNextToOthers(t *testing.T) {
	for other, want := range map[string]int{"a": maxRunningPerTenant, "b": maxRunningNextToOthers} {
		activity := &Activity{Now: time.Now}
		activity.Note(other)
		s := newSlots(maxRunning, maxRunningPerTenant, 10)
		s.maxNextToOthers, s.maxOfMany, s.activity = maxRunningNextToOthers, maxRunningNextToOthers, activity
		for range want {
			if _, err := s.Enter(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		gone, giveUp := context.WithCancel(t.Context())
		giveUp()
		if _, err := s.Enter(gone, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("while %q makes calls, slot %d: %v, want none", other, want+1, err)
		}
	}
}

// A tenant whose long reads queue up leaves most of the time to the others who are active.
func TestLongReadsRestNextToOthers(t *testing.T) {
	for other, want := range map[string]time.Duration{"a": 0, "b": restNextToOthers * 40 * time.Millisecond} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		activity := &Activity{Now: func() time.Time { return now }}
		activity.Note(other)
		s := newSlots(maxRunning, 1, 10)
		s.maxNextToOthers, s.maxOfMany, s.activity = 1, 1, activity
		var rests []time.Duration
		var end func()
		s.after = func(wait time.Duration, do func()) { rests, end = append(rests, wait), do }
		var second *slot
		read := func(during func()) {
			t.Helper()
			if err := s.Run(t.Context(), "a", func() error {
				now = now.Add(40 * time.Millisecond)
				during()
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		read(func() {})
		if len(rests) > 0 {
			t.Errorf("next to %q a slot that no one waits for rests for %s", other, rests)
		}
		read(func() { second, _ = s.request("a", true) })
		if want == 0 {
			if len(rests) > 0 || !holds(second) {
				t.Errorf("a slot rests for %s while no other tenant is active", rests)
			}
			continue
		}
		if len(rests) != 1 || rests[0] != want || holds(second) {
			t.Fatalf("a slot rests for %s, want %s", rests, want)
		}
		end()
		if !holds(second) {
			t.Error("a slot that has rested is not given to the next")
		}
	}
}

// A tenant of which many calls wait has few in progress next to others, each followed by a rest.
func TestManyCallsNextToOthers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	activity := &Activity{Now: func() time.Time { return now }}
	activity.Note("b")
	s := NewCallSlots(activity)
	var rests []time.Duration
	var ends []func()
	s.after = func(rest time.Duration, end func()) { rests, ends = append(rests, rest), append(ends, end) }
	var leave []func()
	for range maxCallsNextToOthers {
		l, err := s.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, l)
	}
	var waiting []*slot
	wait := func(tenant string, n int) (waits []*slot) {
		t.Helper()
		for range n {
			w, err := s.request(tenant, true)
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, w)
		}
		return waits
	}
	granted := func() (n int) {
		for _, w := range waiting {
			if holds(w) {
				n++
			}
		}
		return n
	}
	waiting = wait("a", fewCallsWaiting+1)
	now = now.Add(20 * time.Millisecond)
	leave[0]()
	if len(rests) != 1 || rests[0] != restNextToOthers*20*time.Millisecond || granted() != 0 {
		t.Fatalf("with many waiting, a call is followed by the rests %s, %d others begin", rests, granted())
	}
	for _, end := range ends {
		end()
	}
	if granted() != 0 {
		t.Fatalf("%d calls begin while %d are in progress and many wait", granted(), maxCallsNextToOthers-1)
	}
	now = now.Add(time.Hour)
	activity.Note("b")
	for _, l := range leave[1:] {
		l()
	}
	if rests[len(rests)-1] != maxRest {
		t.Errorf("after a long call the rest takes %s, want %s", rests[len(rests)-1], maxRest)
	}
	for n, end := range ends[1:] {
		end()
		if left := maxCallsNextToOthers - 2 - n; granted() != 0 && left >= maxCallsOfMany {
			t.Fatalf("a call begins while %d are in progress and many wait", left)
		}
	}
	if granted() != maxCallsNextToOthers { // once the first began, few wait
		t.Errorf("%d calls are in progress, want %d", granted(), maxCallsNextToOthers)
	}

	// Next to one with more than twice as many waiting, they are a burst.
	s = NewCallSlots(activity)
	wait("c", maxCallsNextToOthers+2*(fewCallsWaiting+1)+1)
	waiting = wait("a", maxCallsNextToOthers+fewCallsWaiting+1)
	if granted() != maxCallsNextToOthers {
		t.Fatalf("%d calls are in progress, want %d", granted(), maxCallsNextToOthers)
	}
	waiting[0].release()
	if !holds(waiting[maxCallsNextToOthers]) {
		t.Error("a burst waits next to one with more than twice as many waiting")
	}
}

func TestActivity(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := &Activity{Now: func() time.Time { return now }}
	for _, step := range []struct {
		note   string
		after  time.Duration
		others map[string]bool
	}{
		{"", 0, map[string]bool{"a": false}},
		{"a", 0, map[string]bool{"a": false, "b": true}},
		{"a", 0, map[string]bool{"a": false, "b": true}},
		{"b", activeFor / 2, map[string]bool{"a": true, "b": true, "c": true}},
		{"b", activeFor / 2, map[string]bool{"a": true, "b": false, "c": true}},
		{"c", activeFor, map[string]bool{"b": true, "c": false}},
		{"", activeFor, map[string]bool{"a": false, "b": false, "c": false}},
	} {
		now = now.Add(step.after)
		if step.note != "" {
			a.Note(step.note)
		}
		for tenant, want := range step.others {
			if got := a.others(tenant); got != want {
				t.Errorf("after a call of %q: others than %q are active: %t, want %t", step.note, tenant, got, want)
			}
		}
	}
}

// A tenant's single slot rests between uses, even short ones, while others are active.
func TestASingleSlotNextToOthers(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	activity := &Activity{Now: func() time.Time { return now }}
	s := NewSingleSlots(activity)
	var rests []time.Duration
	s.after = func(rest time.Duration, end func()) { rests = append(rests, rest); end() }
	for _, step := range []struct {
		others bool
		used   time.Duration
		want   []time.Duration
	}{
		{false, time.Second, nil},
		{true, time.Millisecond, []time.Duration{minSingleRest}},
		{true, 4 * minSingleRest, []time.Duration{4 * restNextToOthers * minSingleRest}},
	} {
		rests = nil
		if step.others {
			activity.Note("b")
		}
		leave, err := s.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.request("a", true)
		if err != nil || holds(next) {
			t.Fatalf("a second slot: %v, held %t", err, holds(next))
		}
		now = now.Add(step.used)
		if step.others {
			activity.Note("b")
		}
		leave()
		if !slices.Equal(rests, step.want) || !holds(next) {
			t.Errorf("used for %s, others %t: rests %s, want %s; the next has it: %t", step.used, step.others, rests, step.want, holds(next))
		}
		next.release()
	}
}
