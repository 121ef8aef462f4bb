package postgres

import (
	"path/filepath"
	"testing"
	"time"
)

// awaitQuery waits until the query's result is the wanted one.
func awaitQuery(t *testing.T, c *Cluster, sql, want string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for query(t, c, sql) != want {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%s never returned %q", sql, want)
		}
	}
}

func TestAStandbyFollowsAndIsPromoted(t *testing.T) {
	opts := testOptions(t)
	opts.Throwaway = false
	primary := mustStart(t, opts)
	query(t, primary, "create table kept as select 7 as value")
	opts.Root, opts.StandbyOf = filepath.Join(openDirectory(t), "standby"), primary.URL
	standby := mustStart(t, opts)
	if got := query(t, standby, "select pg_is_in_recovery()::text"); got != "true" {
		t.Fatalf("the standby is in recovery: %s", got)
	}
	query(t, primary, "insert into kept values (8)")
	awaitQuery(t, standby, "select max(value)::text from kept", "8")
	primary.Stop()
	query(t, standby, "select pg_promote()::text")
	query(t, standby, "insert into kept values (9)")
	awaitQuery(t, standby, "select max(value)::text from kept", "9")
}
