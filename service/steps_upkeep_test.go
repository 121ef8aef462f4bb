package service_test

import (
	"testing"

	"millwright/service"
	"millwright/service/servicetest"
)

// housekeep repositions everything below the moves that are old enough.
func housekeep(t *testing.T, f *servicetest.Fixture) int {
	t.Helper()
	return remove(t, f.Service, 7, 0).Repositioned
}

const moveNode = `UPDATE inventory_nodes SET parent_id = $1 WHERE id = $2`

// remove removes expired rows in at most batches batches; 0 means no limit.
func remove(t *testing.T, s *service.Service, batch, batches int) service.RemovalResult {
	t.Helper()
	removed, err := s.RemoveExpired(t.Context(), batch, func() bool { batches--; return batches != 0 })
	if err != nil {
		t.Fatal(err)
	}
	return removed
}
