package api_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

const longAgo = "2020-01-01T00:00:00Z"

func TestChangesOfEveryList(t *testing.T) {
	t.Parallel()
	eachList(t, func(t *testing.T, h harness, l listCase) {
		_, token := h.followChanges(t, l.path, longAgo, "50")
		var ids []string
		for n := range 5 {
			ids = append(ids, l.make(h.Server, l.id(n+1)))
		}
		// The order of the changes differs from the order of the ids.
		for _, n := range []int{3, 0, 4, 3} {
			l.change(h.Server, ids[n], "renamed")
		}
		expected := []string{ids[1], ids[2], ids[0], ids[4], ids[3]}
		after := h.wantChanges(t, "each once, oldest first", l.path, token, "50", expected...)
		h.wantChanges(t, "in pages of two", l.path, token, "2", expected...)
		// The sync token of each page continues after the page, as its cursor does.
		var stepwise []string
		for since, more := token, true; more; {
			page := h.list(l.path, "changed_since", since, "limit", "2")
			stepwise = append(stepwise, idsOf(t, page, true)...)
			since, more = page.Text("sync_token"), page.Field("has_more") == true
		}
		wantList(t, "by the sync tokens of pages of two", stepwise, expected)
		last := h.list(l.path, "changed_since", token).Field("data").([]any)[4].(object)
		want(t, "the last change", last[l.field], any("renamed"))
		for range 2 {
			after = h.wantChanges(t, "without a new change", l.path, after, "50")
		}
		l.change(h.Server, ids[2], "again")
		h.wantChanges(t, "after one more change", l.path, after, "50", ids[2])
	})
}

func TestChangesSinceATime(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	h, l := harness{s}, lists(s)[0]
	s.Clock.Advance(time.Hour)
	at := s.Clock.Now().Add(time.Minute)
	early := l.make(s, l.id(1))
	s.Clock.Advance(time.Minute)
	s.WatermarkAt(at)
	late := l.make(s, l.id(2))
	s.Clock.Advance(time.Minute)
	s.WatermarkAt(s.Clock.Now())
	at = at.Add(10 * time.Second) // a time starts at a watermark of ten seconds before (service/lists)
	for name, test := range map[string]struct {
		since string
		want  []string
	}{
		"a time":              {at.Format(time.RFC3339Nano), []string{late}},
		"a millisecond less":  {at.Add(-time.Millisecond).Format(time.RFC3339Nano), []string{early, late}},
		"it in another zone":  {at.In(time.FixedZone("", 7200)).Format(time.RFC3339Nano), []string{late}},
		"the first of times":  {"0000-01-01T00:00:00Z", []string{early, late}},
		"a year from now":     {"2027-01-01T00:00:00Z", nil},
		"the latest of times": {"9999-12-31T23:59:59.999Z", nil},
	} {
		got, token := h.followChanges(t, l.path, test.since, "1")
		wantList(t, "since "+name, got, test.want)
		h.wantChanges(t, "since the token of "+name, l.path, token, "2")
	}
	token := h.list(l.path, "changed_since", "2027-01-01T00:00:00Z").Text("sync_token")
	l.change(s, early, "later")
	h.wantChanges(t, "since the token of an empty list", l.path, token, "50", early)
}

func TestSyncTokensExpire(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	l := lists(s)[0]
	for n := range 3 {
		l.make(s, l.id(n+1))
	}
	s.WaitForOpenTransactions()
	page := harness{s}.list(l.path, "changed_since", longAgo, "limit", "2").Want(http.StatusOK, "")
	token, cursor := page.Text("sync_token"), page.Text("next_cursor")
	s.Clock.Advance(30 * 24 * time.Hour)
	s.ForgetTokens()
	next := harness{s}.list(l.path, "changed_since", token).Want(http.StatusOK, "").Text("sync_token")
	harness{s}.list(l.path, "changed_since", longAgo, "cursor", cursor).Want(http.StatusOK, "")
	s.Clock.Advance(time.Second)
	harness{s}.list(l.path, "changed_since", token).Want(http.StatusGone, "cursor_expired")
	harness{s}.list(l.path, "changed_since", longAgo, "cursor", cursor).Want(http.StatusGone, "cursor_expired")
	// Each response's token has its own expiry.
	harness{s}.list(l.path, "changed_since", next).Want(http.StatusOK, "")
}

func TestAssigningAWorkOrderIsAChangeForTheAssignee(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`,
		s.ID("hq"), s.ID("outsider"), s.ID("working"), s.Acme.OrganizationID)
	id := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("ahu1"), "title": "x", "assignees": []string{s.ID("bob")}}).
		Want(http.StatusCreated, "").Text("id")
	s.WaitForOpenTransactions()
	first := s.As("outsider", http.MethodGet, "/work-orders?changed_since="+longAgo, nil)
	if got := idsOf(t, first, true); len(got) != 0 {
		t.Fatalf("before the assignment, the integration sees %v", got)
	}
	s.As("erp", http.MethodPost, "/work-orders/"+id+"/assignees", object{"assignees": []string{s.ID("outsider")}}).Want(http.StatusOK, "")
	s.WaitForOpenTransactions()
	second := s.As("outsider", http.MethodGet, "/work-orders?changed_since="+first.Text("sync_token"), nil)
	wantList(t, "what the integration sees after the assignment", idsOf(t, second, true), []string{id})
}

func TestMovingANodeChangesTheNodesBelow(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE integrations SET scopes = $2 WHERE id = $1`, s.ID("roofer"), everyScope)
	s.Exec(`UPDATE permission_definitions SET applies_below = true, grants = '{inventory.read,work_orders.read,feedback.read}' WHERE id = $1`, s.ID("here_only"))
	below := s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("ahu1"), "title": "x"}).Want(http.StatusCreated, "").Text("id")
	s.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": s.ID("hq"), "title": "x"}).Want(http.StatusCreated, "")
	issue := s.As("erp", http.MethodPost, "/issues", object{"inventory_id": s.ID("ahu1"), "subject": "x"}).Want(http.StatusCreated, "").Text("id")
	s.As("erp", http.MethodPost, "/issues", object{"inventory_id": s.ID("hq"), "subject": "x"}).Want(http.StatusCreated, "")
	s.WatermarkAt(s.Clock.Now())
	s.Clock.Advance(time.Minute)
	afterwards := url.QueryEscape(s.Clock.Now().Format(time.RFC3339))

	moved := map[string][]string{
		"/systems": {s.ID("hvac")}, "/equipment": {s.ID("ahu1")}, "/sub-equipment": {s.ID("fan1")}, "/work-orders": {below}, "/issues": {issue}, "/locations": {},
	}
	tokens := map[string]map[string]string{"erp": {}, "roofer": {}}
	s.WaitForOpenTransactions()
	for who := range tokens {
		for path := range moved {
			tokens[who][path] = s.As(who, http.MethodGet, path+"?changed_since="+longAgo, nil).Want(http.StatusOK, "").Text("sync_token")
		}
	}
	s.Exec(`UPDATE inventory_nodes SET parent_id = $1, changed_at = $3 WHERE id = $2`, s.ID("roof"), s.ID("hvac"), s.Clock.Now())
	s.WaitForOpenTransactions()
	if _, err := s.Upkeep.RemoveExpired(t.Context(), upkeep.RemovalBatch, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	s.WaitForOpenTransactions()
	for who := range tokens {
		for path, ids := range moved {
			for name, since := range map[string]string{"the token": tokens[who][path], "the time": afterwards} {
				page := s.As(who, http.MethodGet, path+"?changed_since="+since, nil)
				wantList(t, who+": "+path+" since "+name+" before the move", idsOf(t, page, true), ids)
			}
		}
	}
	fan := s.As("roofer", http.MethodGet, "/sub-equipment/"+s.ID("fan1"), nil).Want(http.StatusOK, "")
	wantList(t, "the fan's ancestors", fan.Field("ancestors").([]any), []any{s.ID("hq"), s.ID("roof"), s.ID("hvac"), s.ID("ahu1")})
	want(t, "when the fan changed: its ancestors did", fan.Text("changed_at"), models.TimeOf(s.Clock.Now()).String())
}

func TestChangesOfATeamShowInItsMembers(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	h := harness{s}
	_, people := h.followChanges(t, "/people", longAgo, "50")
	_, teams := h.followChanges(t, "/teams", longAgo, "50")
	before := s.As("erp", http.MethodGet, "/people/"+s.ID("cat"), nil).Text("changed_at")
	s.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, s.ID("crew"), s.ID("cat"), s.Acme.OrganizationID)
	people = h.wantChanges(t, "the new member's record", "/people", people, "50", s.ID("cat"))
	h.wantChanges(t, "the team of the new member", "/teams", teams, "50", s.ID("crew"))
	if after := s.As("erp", http.MethodGet, "/people/"+s.ID("cat"), nil).Text("changed_at"); after <= before {
		t.Errorf("Cat changed at %s, before %s", after, before)
	}
	s.Exec(`DELETE FROM team_members WHERE member_id = $1`, s.ID("bob"))
	h.wantChanges(t, "after Bob left", "/people", people, "50", s.ID("bob"))
}

// A client that follows the changes of people and teams learns who left, and which teams have no
// one left.
func TestPeopleAndTeamsShowWhoIsActive(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	h, ann := harness{s}, servicetest.Person(t, s.Fixture, "ann")
	tokens := map[string]string{}
	for _, path := range []string{"/people", "/teams"} {
		_, tokens[path] = h.followChanges(t, path, longAgo, "50")
	}
	for _, step := range []struct {
		who, what    string
		person, team bool
	}{
		{"bob", "leaves", false, true}, {"dan", "leaves", false, false}, {"bob", "returns", true, true},
	} {
		var err error
		if step.person {
			_, err = s.People.ActivatePerson(t.Context(), ann, store.NoKey, s.ID(step.who))
		} else {
			_, err = s.People.DeactivatePerson(t.Context(), ann, store.NoKey, s.ID(step.who), "")
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Advance(time.Second)
		for path, active := range map[string]bool{"/people": step.person, "/teams": step.team} {
			id := map[string]string{"/people": s.ID(step.who), "/teams": s.ID("crew")}[path]
			tokens[path] = h.wantChanges(t, step.who+" "+step.what, path, tokens[path], "50", id)
			want(t, step.who+" "+step.what+": active in "+path, h.list(path+"/"+id).Field("active"), any(active))
			want(t, step.who+" "+step.what+": active in the list "+path, h.list(path, "id", id).Field("data").([]any)[0].(object)["active"], any(active))
		}
	}
}
