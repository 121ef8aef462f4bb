package api_test

import (
	"net/http"
	"testing"
	"time"

	"millwright/api/apitest"
	"millwright/service/servicetest"
	"millwright/service/store"
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
		last := h.list(l.path, "changed_since", token).Field("data").([]any)[4].(object)
		want(t, "the last change", last[l.field], any("renamed"))
		after = h.wantChanges(t, "without a new change", l.path, after, "50")
		l.change(h.Server, ids[2], "again")
		h.wantChanges(t, "after one more change", l.path, after, "50", ids[2])
	})
}

// Every time of the format may be asked for, and the token of its page continues from it.
func TestChangesSinceATime(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	h, l := harness{s}, lists(s)[0]
	made := []string{l.make(s, l.id(1)), l.make(s, l.id(2))}
	s.WatermarkAt(s.Clock.Now())
	for since, found := range map[string][]string{"0000-01-01T00:00:00Z": made, "9999-12-31T23:59:59.999Z": nil} {
		token := h.wantChanges(t, "since "+since, l.path, since, "1", found...)
		h.wantChanges(t, "since the token of "+since, l.path, token, "2")
	}
	token := h.list(l.path, "changed_since", "2027-01-01T00:00:00Z").Text("sync_token")
	l.change(s, made[0], "later")
	h.wantChanges(t, "since the token of an empty list", l.path, token, "50", made[0])
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
