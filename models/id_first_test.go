package models

import (
	"crypto/rand"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFirstIDBoundsTheIDsOfItsTime(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(1, 7_000_000_000_000).Draw(r, "millisecond"))
		first := FirstID(PrefixWorkOrder, at)
		for _, test := range []struct {
			made time.Time
			in   bool
		}{{at, true}, {at.Add(time.Hour), true}, {at.Add(-time.Millisecond), false}} {
			id, err := NewID(PrefixWorkOrder, test.made, rand.Reader)
			if err != nil {
				r.Fatal(err)
			}
			if (id >= first) != test.in {
				r.Fatalf("%s was made at %s; the first id of %s is %s", id, test.made, at, first)
			}
		}
	})
	if first := FirstID(PrefixWorkOrder, time.Time{}); first != "wo_00000000000000000000000000" {
		t.Errorf("the first id of the year 1 is %s", first)
	}
}
