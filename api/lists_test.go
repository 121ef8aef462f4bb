package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
)

// everyScope is the scopes of all lists.
const everyScope = `{inventory:read,work_orders:read,work_orders:write,issues:read,issues:write,forms:read,people:read}`

// listCase is a list of the API, with SQL that creates and changes its records: some
// kinds of record are created only in the console.
type listCase struct {
	path, prefix, table string
	// columns and values of an INSERT, without id, organization_id, created_at and changed_at.
	columns, values string
	// label is the column that change sets, field is its name in the record.
	label, field string
	// filter matches all records that make creates.
	filter string
	// also creates the rows that belong to the record $1.
	also string
}

// lists returns all lists; the tests run for each.
func lists(s *apitest.Server) []listCase {
	node := func(path, prefix, kind, parent string) listCase {
		return listCase{
			path: path, prefix: prefix, table: "inventory_nodes", columns: "kind, parent_id, name",
			values: fmt.Sprintf("'%s', '%s', 'x'", kind, s.ID(parent)), label: "name", field: "name", filter: "parent_id=" + s.ID(parent),
		}
	}
	return []listCase{
		{
			path: "/work-orders", prefix: "wo_", table: "work_orders", columns: "inventory_id, title, priority, status, created_by",
			values: fmt.Sprintf("'%s', 'x', 'none', 'open', '%s'", s.ID("ahu1"), s.ID("ann")), label: "title", field: "title", filter: "status=open",
		},
		{
			path: "/issues", prefix: "iss_", table: "feedback", columns: "inventory_id, subject, status, created_by",
			values: fmt.Sprintf("'%s', 'x', 'open', '%s'", s.ID("ahu1"), s.ID("ann")), label: "subject", field: "subject", filter: "inventory_id=" + s.ID("hvac"),
		},
		node("/locations", "loc_", "location", "hq"),
		node("/systems", "sys_", "system", "hvac"),
		node("/equipment", "eqp_", "equipment", "hvac"),
		node("/sub-equipment", "sub_", "sub_equipment", "ahu1"),
		{path: "/forms", prefix: "frm_", table: "forms", columns: "name", values: "'x'", label: "name", field: "name"},
		{
			path: "/people", prefix: "idn_", table: "identities", columns: "kind, name", values: "'person', 'x'", label: "name", field: "name",
			also: `INSERT INTO people (id, organization_id, email, folded_email) SELECT $1, $2, e, e FROM (SELECT 'x' || count(*) || '@example.com' AS e FROM people) n`,
		},
		{path: "/teams", prefix: "idn_", table: "identities", columns: "kind, name", values: "'team', 'x'", label: "name", field: "name"},
	}
}

// id returns the n-th id for make. All are older than the fixture's ids.
func (l listCase) id(n int) string { return fmt.Sprintf("%s%026d", l.prefix, n) }

// make creates a record in its own transaction.
func (l listCase) make(s *apitest.Server, id string) string {
	s.Exec(`INSERT INTO `+l.table+` (id, organization_id, created_at, changed_at, `+l.columns+`)
		VALUES ($1, $2, $3, $3, `+l.values+`)`, id, s.Acme.OrganizationID, s.Clock.Now())
	if l.also != "" {
		s.Exec(l.also, id, s.Acme.OrganizationID)
	}
	return id
}

// change renames a record in its own transaction.
func (l listCase) change(s *apitest.Server, id, name string) {
	s.Exec(`UPDATE `+l.table+` SET `+l.label+` = $2, changed_at = greatest($3, changed_at + interval '1 millisecond') WHERE id = $1`,
		id, name, s.Clock.Now())
}

func eachList(t *testing.T, test func(t *testing.T, s *apitest.Server, l listCase)) {
	t.Helper()
	for i, named := range lists(apitest.New(t)) {
		t.Run(strings.TrimPrefix(named.path, "/"), func(t *testing.T) {
			s := apitest.New(t)
			s.Exec(`UPDATE plans SET calls_per_minute = 100000`)
			test(t, s, lists(s)[i])
		})
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	eachList(t, func(t *testing.T, s *apitest.Server, l listCase) {
		var made []string
		for n := range 201 {
			made = append(made, l.make(s, l.id(n+1)))
		}
		newest := l.prefix + "7" + strings.Repeat("z", 25)
		h := harness{s}
		for limit, want := range map[string]int{"": 50, "1": 1, "200": 200, "201": 200, "99999999999999999999": 200} {
			page := h.list(l.path, "limit", limit)
			if got := len(idsOf(t, page, false)); got != want || page.Field("has_more") != true {
				t.Errorf("limit=%s lists %d records with has_more %v, want %d", limit, got, page.Field("has_more"), want)
			}
		}
		for _, limit := range []string{"0", "-1", "many", "1.5", "1e2", "-99999999999999999999"} {
			h.list(l.path, "limit", limit).Want(http.StatusBadRequest, "invalid_request")
		}
		var seen []string
		for cursor := ""; ; {
			page := h.list(l.path, "limit", "60", "cursor", cursor)
			seen = append(seen, idsOf(t, page, false)...)
			if len(seen) == 60 {
				// Records created in the meantime are newer than the following pages.
				l.make(s, newest)
			}
			if cursor = page.Text("next_cursor"); cursor == "" {
				break
			}
		}
		if !slices.IsSortedFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("the list is not newest first: %v", seen)
		}
		if unique := slices.Compact(slices.Clone(seen)); len(unique) != len(seen) {
			t.Errorf("%d records are listed twice", len(seen)-len(unique))
		}
		for _, id := range made {
			if !slices.Contains(seen, id) {
				t.Errorf("%s is not listed", id)
			}
		}
		if slices.Contains(seen, newest) {
			t.Error("a record created after the first page appears on a later one")
		}
	})
}

func TestCursorsAreBoundToTheirListAndFilters(t *testing.T) {
	t.Parallel()
	eachList(t, func(t *testing.T, s *apitest.Server, l listCase) {
		for n := range 4 {
			l.make(s, l.id(n+1))
		}
		s.WaitForOpenTransactions()
		h := harness{s}
		cursor := h.list(l.path, "limit", "2").Want(http.StatusOK, "").Text("next_cursor")
		changes := h.list(l.path, "limit", "2", "changed_since", "2020-01-01T00:00:00Z").Want(http.StatusOK, "")
		changesCursor, token := changes.Text("next_cursor"), changes.Text("sync_token")
		if cursor == "" || changesCursor == "" || token == "" {
			t.Fatalf("the first pages have no cursors: %q %q %q", cursor, changesCursor, token)
		}
		// The limit may change between pages.
		h.list(l.path, "limit", "3", "cursor", cursor).Want(http.StatusOK, "")
		h.list(l.path, "limit", "3", "cursor", changesCursor, "changed_since", "2020-01-01T00:00:00Z").Want(http.StatusOK, "")
		h.list(l.path, "limit", "3", "changed_since", token).Want(http.StatusOK, "")

		nul := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(decoded(t, cursor), l.prefix, `\u0000`, 1)))
		for name, parameters := range map[string][]string{
			"a cursor of changes without changed_since":  {"cursor", changesCursor},
			"a cursor of the newest with changed_since":  {"cursor", cursor, "changed_since", "2020-01-01T00:00:00Z"},
			"a cursor of the newest with a sync token":   {"cursor", cursor, "changed_since", token},
			"a sync token as cursor":                     {"cursor", token},
			"a cursor as sync token":                     {"changed_since", cursor},
			"a cursor that is no base64":                 {"cursor", "§"},
			"a cursor that holds NUL":                    {"cursor", nul},
			"half a sync token":                          {"changed_since", token[:len(token)/2]},
			"a time without a zone":                      {"changed_since", "2026-03-02T12:00:00"},
			"an unknown filter":                          {"color", "red"},
			"JSON null as cursor":                        {"cursor", base64.RawURLEncoding.EncodeToString([]byte("null"))},
			"a sync token at a far position of its list": {"changed_since", strings.Repeat(token, 20)},
		} {
			if response := h.list(l.path, parameters...); response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" {
				t.Errorf("%s gets %d\n%s", name, response.Status, response.Body)
			}
		}
		if l.filter != "" {
			for name, given := range map[string]string{
				"cursor": "cursor=" + cursor, "cursor of changes": "changed_since=2020-01-01T00:00:00Z&cursor=" + changesCursor, "sync token": "changed_since=" + token,
			} {
				response := s.As("erp", http.MethodGet, l.path+"?"+l.filter+"&"+given, nil)
				if response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" {
					t.Errorf("a %s with the filter %s gets %d", name, l.filter, response.Status)
				}
			}
		}
		for _, other := range lists(s) {
			if other.path == l.path {
				continue
			}
			h.list(other.path, "cursor", cursor).Want(http.StatusBadRequest, "invalid_request")
			h.list(other.path, "changed_since", token).Want(http.StatusBadRequest, "invalid_request")
			h.list(other.path, "cursor", changesCursor, "changed_since", "2020-01-01T00:00:00Z").Want(http.StatusBadRequest, "invalid_request")
		}
	})
}

// decoded decodes a cursor. Clients must not rely on its contents, but attackers read it.
func decoded(t *testing.T, cursor string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEmptyLists(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE integrations SET scopes = $2 WHERE id = $1`, s.ID("dispatch"), everyScope)
	s.Exec(`DELETE FROM assignments WHERE organization_id = $1`, s.Polar.OrganizationID)
	s.Exec(`DELETE FROM identities WHERE id = $1`, s.ID("pia"))
	for _, l := range lists(s) {
		page := s.As("dispatch", http.MethodGet, l.path, nil).Want(http.StatusOK, "")
		want(t, l.path, strings.TrimSpace(string(page.Body)), `{"data":[],"has_more":false}`)
		changes := s.As("dispatch", http.MethodGet, l.path+"?changed_since=2020-01-01T00:00:00Z", nil)
		if got := idsOf(t, changes, true); len(got) != 0 || changes.Field("has_more") != false {
			t.Errorf("%s with changed_since returns %s", l.path, changes.Body)
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_orders`); n != 0 {
		t.Fatalf("the fixture has %d work orders", n)
	}
}

// Every list takes up to 100 ids, separated by commas or repeated, next to its other filters.
func TestListsTakeIDs(t *testing.T) {
	t.Parallel()
	eachList(t, func(t *testing.T, s *apitest.Server, l listCase) {
		var made []string
		for n := range 103 {
			made = append(made, l.make(s, l.id(n+1)))
		}
		s.WaitForOpenTransactions()
		h := harness{s}
		newestFirst := func(ids ...string) []string {
			sorted := slices.Sorted(slices.Values(ids))
			slices.Reverse(sorted)
			return sorted
		}
		unknown := l.prefix + "7" + strings.Repeat("z", 25)
		for name, query := range map[string]string{
			"separated by commas": "id=" + made[0] + "," + made[2], "repeated": "id=" + made[2] + "&id=" + made[0],
			"twice, with unknown ones": "id=" + made[0] + "," + made[2] + "," + unknown + ",dlv_" + strings.Repeat("0", 26) + "," + made[0],
			"with another filter":      "id=" + made[0] + "," + made[2] + "&" + l.filter,
		} {
			page := s.As("erp", http.MethodGet, l.path+"?"+strings.TrimSuffix(query, "&"), nil).Want(http.StatusOK, "")
			wantList(t, "two ids "+name, idsOf(t, page, false), newestFirst(made[0], made[2]))
		}
		wantList(t, "100 ids", idsOf(t, h.list(l.path, "id", strings.Join(made[:100], ","), "limit", "200"), false), newestFirst(made[:100]...))
		first := h.list(l.path, "id", strings.Join(made[:3], ","), "limit", "2")
		changes := h.list(l.path, "id", made[1]+","+made[0], "changed_since", longAgo)
		for name, parameters := range map[string][]string{
			"101 ids": {"id", strings.Join(made[:101], ",")}, "101 ids, one of them twice": {"id", strings.Join(append(made[:100:100], made[0]), ",")},
			"an empty one": {"id", made[0] + ","}, "only a comma": {"id", ","}, "a space": {"id", " " + made[0]}, "capitals": {"id", strings.ToUpper(made[0])},
			"no id": {"id", "x"}, "half of one": {"id", made[0][:20]}, "a sync token without the ids": {"changed_since", changes.Text("sync_token")},
			"a sync token of other ids": {"id", made[0], "changed_since", changes.Text("sync_token")}, "a cursor of other ids": {"id", made[0], "cursor", first.Text("next_cursor")},
		} {
			if response := h.list(l.path, parameters...); response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" {
				t.Errorf("%s: %d\n%s", name, response.Status, response.Body)
			}
		}
	})
}
