package service_test

import (
	"testing"

	"millwright/service/servicetest"
)

func TestFixture(t *testing.T) {
	f := servicetest.New(t)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM inventory_nodes`); n != 8 {
		t.Errorf("the fixture has %d nodes, want 8", n)
	}
}
