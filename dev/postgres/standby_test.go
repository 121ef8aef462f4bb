package postgres

import (
	"path/filepath"
	"testing"

	"millwright/dev/devtest"
)

func TestAStandbyFollowsAndIsPromoted(t *testing.T) {
	opts := testOptions(t)
	opts.Throwaway = false
	primary := mustStart(t, opts)
	query(t, primary, "create table kept as select 7 as value")
	opts.Root, opts.StandbyOf = filepath.Join(devtest.OpenDirectory(t), "standby"), primary.URL
	standby := mustStart(t, opts)
	if got := query(t, standby, "select pg_is_in_recovery()::text"); got != "true" {
		t.Fatalf("the standby is in recovery: %s", got)
	}
	query(t, primary, "insert into kept values (8)")
	newest := func() string { return query(t, standby, "select max(value)::text from kept") }
	devtest.Eventually(t, "the standby has the row", func() bool { return newest() == "8" })
	primary.Stop()
	query(t, standby, "select pg_promote()::text")
	query(t, standby, "insert into kept values (9)")
	if got := newest(); got != "9" {
		t.Errorf("the promoted standby has %s", got)
	}
}
