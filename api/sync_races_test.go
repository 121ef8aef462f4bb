package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	servicelists "millwright/service/lists"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// After a restore from a backup, a token may be ahead of the database: following it
// would skip the changes until the database catches up.
func TestSyncTokensAheadOfTheDatabaseAreVoid(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	token := s.As("erp", http.MethodGet, "/work-orders?changed_since="+longAgo, nil).Want(http.StatusOK, "").Text("sync_token")
	s.As("erp", http.MethodGet, "/work-orders?changed_since="+token, nil).Want(http.StatusOK, "")
	ahead, _ := servicelists.ParseCursorToken(token, s.Store.Vault)
	ahead.Xid = 1 << 50
	s.As("erp", http.MethodGet, "/work-orders?changed_since="+ahead.Encode(s.Store.Vault), nil).Want(http.StatusGone, "cursor_expired")
}

func TestARestoreIntoAnotherClusterStartsChangesOver(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE plans SET calls_per_minute = 100000`)
	h := harness{s}
	tokens, before := map[string]string{}, map[string][]string{}
	for _, l := range lists(s) {
		l.make(s, l.id(1))
		l.make(s, l.id(2))
		before[l.path], tokens[l.path] = h.followChanges(t, l.path, longAgo, "50")
	}
	database := s.Pool.Config().ConnString()
	if err := s.Store.CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE cluster_mark SET system_identifier = 7`)
	err := s.Store.CheckSchema(t.Context())
	for _, part := range []string{"another cluster", "millwright migrate"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("before the migration the check returns %v, want an error with %q", err, part)
		}
	}
	for range 2 { // the second call has no effect
		if _, _, err := store.Migrate(t.Context(), database, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Store.CheckSchema(t.Context()); err != nil {
		t.Errorf("after the migration the check returns %v", err)
	}
	for path, token := range tokens {
		h.list(path, "changed_since", token).Want(http.StatusGone, "cursor_expired")
		again, fresh := h.followChanges(t, path, longAgo, "1")
		slices.Sort(again)
		slices.Sort(before[path])
		wantList(t, path+": starting over", again, before[path])
		tokens[path] = fresh
	}
	if _, _, err := store.Migrate(t.Context(), database, ""); err != nil {
		t.Fatal(err)
	}
	for path, token := range tokens {
		h.wantChanges(t, path+": after another migration in the same cluster", path, token, "50")
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(DISTINCT xid) FROM (SELECT changed_xid AS xid FROM identities
		UNION ALL SELECT changed_xid FROM inventory_nodes UNION ALL SELECT changed_xid FROM forms
		UNION ALL SELECT changed_xid FROM work_orders UNION ALL SELECT changed_xid FROM feedback) every`); n != 1 {
		t.Errorf("the records were repositioned in %d transactions, want one", n)
	}
}
