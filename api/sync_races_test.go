package api_test

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

// A record written below a node while the node moves must not keep a position that
// its new readers have already passed. The move does not wait for it.
func TestARecordWrittenDuringAMoveIsNotSkipped(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE permission_definitions SET applies_below = true WHERE id = $1`, s.ID("here_only"))
	l := lists(s)[0]
	ctx := t.Context()
	writing, err := s.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writing.Rollback(ctx) }()
	if err := servicetest.Write(ctx, writing, `INSERT INTO work_orders (id, organization_id, created_at, changed_at, `+l.columns+`)
		VALUES ($1, $2, now(), now(), `+l.values+`)`, l.id(1), s.Acme.OrganizationID); err != nil {
		t.Fatal(err)
	}
	moving, err := s.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = moving.Rollback(ctx) }()
	if _, err := moving.Exec(ctx, `UPDATE inventory_nodes SET parent_id = $1 WHERE id = $2`, s.ID("roof"), s.ID("hvac")); err != nil {
		t.Fatal(err)
	}
	if err := writing.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	// A client reads between the two commits.
	token := s.As("roofer", http.MethodGet, "/work-orders?changed_since="+longAgo, nil).Want(http.StatusOK, "").Text("sync_token")
	if err := moving.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	s.WaitForOpenTransactions()
	if _, err := s.Upkeep.RemoveExpired(ctx, upkeep.RemovalBatch, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	s.WaitForOpenTransactions()
	page := s.As("roofer", http.MethodGet, "/work-orders?changed_since="+token, nil)
	wantList(t, "what the reader sees after the move", idsOf(t, page, true), []string{l.id(1)})
}

// signed returns a cursor or sync token as the service signs it: with the first 16
// bytes of an HMAC under a key derived from the sealing key.
func signed(t *testing.T, says string) string {
	t.Helper()
	_, encoded, _ := strings.Cut(servicetest.SealingKeys, ":")
	sealing, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	key, err := hkdf.Key(sha256.New, sealing, nil, "millwright list marks", sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(says))
	return base64.RawURLEncoding.EncodeToString(append([]byte(says), mac.Sum(nil)[:16]...))
}

// After a restore from a backup, a token may be ahead of the database: following it
// would skip the changes until the database catches up.
func TestSyncTokensAheadOfTheDatabaseAreVoid(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	token := s.As("erp", http.MethodGet, "/work-orders?changed_since="+longAgo, nil).Want(http.StatusOK, "").Text("sync_token")
	s.As("erp", http.MethodGet, "/work-orders?changed_since="+token, nil).Want(http.StatusOK, "")
	says := decoded(t, token)
	says = says[:len(says)-16]
	ahead := regexp.MustCompile(`"x":\d+`).ReplaceAllString(says, `"x":1125899906842624`)
	if signed(t, says) != token || ahead == says {
		t.Fatalf("the token %s has no position or another signature", says)
	}
	ahead = signed(t, ahead)
	s.As("erp", http.MethodGet, "/work-orders?changed_since="+ahead, nil).Want(http.StatusGone, "cursor_expired")
	// Tokens of earlier versions name a cluster instead of a watermark.
	old := regexp.MustCompile(`"b":"[^"]*"`).ReplaceAllString(says, `"c":7345089230458`)
	if old == says {
		t.Fatalf("the token %s names no watermark", says)
	}
	s.As("erp", http.MethodGet, "/work-orders?changed_since="+signed(t, old), nil).Want(http.StatusGone, "cursor_expired")
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
	if err := s.Store.CheckSchema(t.Context()); err == nil || !containsAll(err.Error(), "another cluster", "millwright migrate") {
		t.Errorf("before the migration the check returns %v, want an error that names the command", err)
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
		if _, _, err := store.Migrate(t.Context(), database, ""); err != nil {
			t.Fatal(err)
		}
		h.wantChanges(t, path+": after another migration in the same cluster", path, fresh, "50")
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(DISTINCT xid) FROM (SELECT changed_xid AS xid FROM identities
		UNION ALL SELECT changed_xid FROM inventory_nodes UNION ALL SELECT changed_xid FROM forms
		UNION ALL SELECT changed_xid FROM work_orders UNION ALL SELECT changed_xid FROM feedback) every`); n != 1 {
		t.Errorf("the records were repositioned in %d transactions, want one", n)
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}
