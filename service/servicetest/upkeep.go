package servicetest

import (
	"testing"

	"millwright/service"
	"millwright/service/upkeep"
)

// Housekeep repositions everything below the moves that are old enough.
func Housekeep(t *testing.T, f *Fixture) int {
	t.Helper()
	return Remove(t, f.Service, 7, 0).Repositioned
}

// MoveNode gives the node $2 the parent $1.
const MoveNode = `UPDATE inventory_nodes SET parent_id = $1 WHERE id = $2`

// Remove removes expired rows in at most batches batches; 0 means no limit.
func Remove(t *testing.T, s *service.Service, batch, batches int) upkeep.RemovalResult {
	t.Helper()
	removed, err := s.Upkeep.RemoveExpired(t.Context(), batch, func() bool { batches--; return batches != 0 })
	Must(t, err)
	return removed
}
