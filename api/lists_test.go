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
	// place is the list's among all.
	place int
}

// lists returns all lists; the tests run for each.
func lists(s *apitest.Server) []listCase {
	node := func(path, prefix, kind, parent string) listCase {
		return listCase{
			path: path, prefix: prefix, table: "inventory_nodes", columns: "kind, parent_id, name",
			values: fmt.Sprintf("'%s', '%s', 'x'", kind, s.ID(parent)), label: "name", field: "name", filter: "parent_id=" + s.ID(parent),
		}
	}
	all := []listCase{
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
	for i := range all {
		all[i].place = i
	}
	return all
}

// id returns the n-th id for make. All are older than the fixture's ids.
func (l listCase) id(n int) string { return fmt.Sprintf("%s%026d", l.prefix, 10_000*l.place+n) }

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

// eachList runs the test for each list, on one server.
func eachList(t *testing.T, test func(t *testing.T, h harness, l listCase)) {
	t.Helper()
	h := newHarness(t)
	h.Exec(`UPDATE plans SET calls_per_minute = 100000`)
	for _, l := range lists(h.Server) {
		t.Run(strings.TrimPrefix(l.path, "/"), func(t *testing.T) { test(t, h, l) })
	}
}

// The lists share their code, so one is read page by page; service/lists compares all with single reads.
func TestListsArePaged(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	l := lists(h.Server)[0]
	var made []string
	for n := range 201 {
		made = append(made, l.make(h.Server, l.id(n+1)))
	}
	newest := l.prefix + "7" + strings.Repeat("z", 25)
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
			l.make(h.Server, newest) // newer than the following pages
		}
		if cursor = page.Text("next_cursor"); cursor == "" {
			break
		}
	}
	slices.Reverse(made)
	wantList(t, "all pages, newest first", seen, made)
}

func TestCursorsAreBoundToTheirListAndFilters(t *testing.T) {
	t.Parallel()
	eachList(t, func(t *testing.T, h harness, l listCase) {
		for n := range 4 {
			l.make(h.Server, l.id(n+1))
		}
		h.WaitForOpenTransactions()
		cursor := h.list(l.path, "limit", "2").Want(http.StatusOK, "").Text("next_cursor")
		changes := h.list(l.path, "limit", "2", "changed_since", longAgo).Want(http.StatusOK, "")
		changesCursor, token := changes.Text("next_cursor"), changes.Text("sync_token")
		if cursor == "" || changesCursor == "" || token == "" {
			t.Fatalf("the first pages have no cursors: %q %q %q", cursor, changesCursor, token)
		}
		// The limit may change between pages.
		h.list(l.path, "limit", "3", "cursor", cursor).Want(http.StatusOK, "")
		h.list(l.path, "limit", "3", "cursor", changesCursor, "changed_since", longAgo).Want(http.StatusOK, "")
		h.list(l.path, "limit", "3", "changed_since", token).Want(http.StatusOK, "")

		nul := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(decoded(t, cursor), l.prefix, `\u0000`, 1)))
		rejected := [][]string{
			{"cursor", changesCursor}, {"cursor", cursor, "changed_since", longAgo}, {"cursor", cursor, "changed_since", token},
			{"cursor", token}, {"changed_since", cursor}, {"cursor", "§"}, {"cursor", nul}, {"changed_since", token[:len(token)/2]},
			{"changed_since", "2026-03-02T12:00:00"}, {"color", "red"}, {"cursor", base64.RawURLEncoding.EncodeToString([]byte("null"))},
			{"changed_since", strings.Repeat(token, 20)},
		}
		if name, value, filtered := strings.Cut(l.filter, "="); filtered {
			rejected = append(rejected, []string{name, value, "cursor", cursor}, []string{name, value, "changed_since", token},
				[]string{name, value, "changed_since", longAgo, "cursor", changesCursor})
		}
		for _, parameters := range rejected {
			h.list(l.path, parameters...).Want(http.StatusBadRequest, "invalid_request")
		}
		for _, other := range lists(h.Server) {
			if other.path != l.path { // the cursors and the token name the list in the same way
				h.list(other.path, "cursor", cursor).Want(http.StatusBadRequest, "invalid_request")
			}
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
	eachList(t, func(t *testing.T, h harness, l listCase) {
		made := []string{l.make(h.Server, l.id(1)), l.make(h.Server, l.id(2)), l.make(h.Server, l.id(3))}
		h.WaitForOpenTransactions()
		two := []string{made[2], made[0]} // newest first
		for name, query := range map[string]string{
			"separated by commas": "id=" + made[0] + "," + made[2], "repeated": "id=" + made[2] + "&id=" + made[0],
			"twice, with unknown ones": "id=" + made[0] + "," + made[2] + "," + l.id(9) + ",dlv_" + strings.Repeat("0", 26) + "," + made[0],
			"with another filter":      "id=" + made[0] + "," + made[2] + "&" + l.filter,
		} {
			page := h.As("erp", http.MethodGet, l.path+"?"+strings.TrimSuffix(query, "&"), nil).Want(http.StatusOK, "")
			wantList(t, "two ids "+name, idsOf(t, page, false), two)
		}
		many := slices.Clone(two)
		for n := range 98 {
			many = append(many, l.id(100+n))
		}
		wantList(t, "100 ids", idsOf(t, h.list(l.path, "id", strings.Join(many, ",")), false), two)
		first := h.list(l.path, "id", strings.Join(made, ","), "limit", "2")
		changes := h.list(l.path, "id", made[1]+","+made[0], "changed_since", longAgo)
		for name, parameters := range map[string][]string{
			"101 ids, one of them twice": {"id", strings.Join(many, ",") + "," + made[0]},
			"an empty one":               {"id", made[0] + ","}, "only a comma": {"id", ","}, "a space": {"id", " " + made[0]}, "capitals": {"id", strings.ToUpper(made[0])},
			"no id": {"id", "x"}, "half of one": {"id", made[0][:20]}, "a sync token without the ids": {"changed_since", changes.Text("sync_token")},
			"a sync token of other ids": {"id", made[0], "changed_since", changes.Text("sync_token")}, "a cursor of other ids": {"id", made[0], "cursor", first.Text("next_cursor")},
		} {
			if response := h.list(l.path, parameters...); response.Status != http.StatusBadRequest || response.Text("code") != "invalid_request" {
				t.Errorf("%s: %d\n%s", name, response.Status, response.Body)
			}
		}
	})
}
