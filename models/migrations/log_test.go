package migrations_test

import "testing"

// Every write appends to the log: two indexes at most.
func TestTheLogHasTwoIndexes(t *testing.T) {
	h := newHarness(t)
	if indexes := value[string](h, `SELECT string_agg(regexp_replace(indexdef, '.*btree ', ''), ', ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'log'`); indexes != "(record_id, id), (organization_id, id)" {
		t.Errorf("the log has the indexes %s", indexes)
	}
}
