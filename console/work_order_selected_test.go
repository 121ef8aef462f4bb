package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// selectedPath returns the path of an action with work orders.
func selectedPath(action string, ids ...string) string {
	return "/console/work-orders/" + action + "?" + url.Values{"id": ids, "back": {"/console/work-orders?q=filter"}}.Encode()
}

// sendSelected sends the form of an action with work orders.
func sendSelected(v *consoletest.Visitor, action string, fields []string, ids ...string) consoletest.Page {
	path := selectedPath(action, ids...)
	return v.Post(path, v.Get(path).Want(http.StatusOK).Form(fields...))
}

// A team is assigned to several work orders and they get a due date, each as its own page would
// do it. The list with its filters is next.
func TestSeveralWorkOrdersAreChanged(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ids := []string{newRecord(t, s), newRecord(t, s), newRecord(t, s)}
	s.Exec(`UPDATE people SET time_zone = 'Europe/Helsinki' WHERE id = $1`, s.ID("ann"))
	ann := s.SignedIn("ann")
	page := ann.Get(selectedPath("assign", ids...)).Want(http.StatusOK, "Assign people to 3 work orders", "1 Replace filter", "3 Replace filter")
	if team, person := strings.Index(page.Body, ">Crew "), strings.Index(page.Body, ">Bob Stone"); team < 0 || person < team {
		t.Errorf("the team is at %d, a person at %d", team, person)
	}
	sent := sendSelected(ann, "assign", []string{"identity", s.ID("crew"), "identity", s.ID("dan"), "role", "worker", "step", "assign"}, ids...).Want(http.StatusSeeOther)
	if sent.Location() != "/console/work-orders?q=filter" {
		t.Errorf("%s is next", sent.Location())
	}
	ann.Get(sent.Location()).Want(http.StatusOK, "They are assigned to all that you selected.")
	sendSelected(ann, "assign", []string{"identity", s.ID("bob"), "step", "replace"}, ids[:2]...).Want(http.StatusSeeOther)
	sendSelected(ann, "due", []string{"target_date", "2026-08-03T10:00"}, ids[1:]...).Want(http.StatusSeeOther)
	for i, want := range []string{"Bob Stone worker", "Bob Stone worker 07:00", "Ann Field worker, Crew worker, Dan Woods worker 07:00"} {
		due := servicetest.Value[string](s.Fixture, `SELECT coalesce(to_char(target_date AT TIME ZONE 'UTC', ' HH24:MI'), '') FROM work_orders WHERE id = $1`, ids[i])
		servicetest.Expect(t, ids[i], rolesOf(s, ids[i])+due, want)
	}
	// Only the date is set: a title that someone else changed while the form was open stays.
	form := ann.Get(selectedPath("due", ids...)).Form("target_date", "2026-08-04T10:00")
	edit(t, s, ids[0], "Other title")
	ann.Post(selectedPath("due", ids...), form).Want(http.StatusSeeOther)
	s.WantRows(3, `work_orders WHERE target_date = '2026-08-04T07:00Z' AND title IN ('Other title', 'Replace filter')`)
}

// edit changes a title.
func edit(t *testing.T, s *consoletest.Site, id, title string) {
	t.Helper()
	s.Must(s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: title, Set: true}}))
}

// The page shows what became of each work order: one that was closed in the meantime, one that
// needs no change, one that the person may not read, of which it shows nothing. The form is for
// the others then.
func TestEachSelectedWorkOrderHasItsResult(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	done, same, closed, theirs := newRecord(t, s.Site), newRecord(t, s.Site), newRecord(t, s.Site), s.theirs[0]
	for _, id := range s.theirs {
		if models.IsID(id, models.PrefixWorkOrder) {
			theirs = id
		}
	}
	edit(t, s.Site, closed, "Check the seal")
	edit(t, s.Site, same, "Check the same")
	ann := s.SignedIn("ann")
	all := []string{done, same, closed, theirs}
	for action, fields := range map[string][]string{
		"assign": {"identity", s.ID("crew"), "role", "worker", "step", "assign"}, "due": {"target_date", "2026-08-03T10:00"}, "priority": {"priority", "low"},
	} {
		s.Exec(`UPDATE work_orders SET status = 'open', completed_at = NULL WHERE id = $1`, closed)
		sendSelected(ann, action, fields, same).Want(http.StatusSeeOther)
		form := ann.Get(selectedPath(action, all...)).Want(http.StatusOK, "A work order that you may not read").Form(fields...)
		s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, closed)
		before := logged(s.Site)
		page := ann.Post(selectedPath(action, all...), form).Want(http.StatusUnprocessableEntity, "2 work orders were not changed.", "</svg>Done</span> <a href=\"/console/work-orders/"+done,
			"</svg>No change needed</span> <a href=\"/console/work-orders/"+same, "</svg>Not done</span> <a href=\"/console/work-orders/"+closed,
			"Check the seal</bdi></a> <span class=\"muted\">A work order with the status", "</svg>Not done</span> <span class=\"muted\">A work order that you may not read</span></li>")
		wantNot(t, page, "Their work order")
		if n := logged(s.Site) - before; n != 1 {
			t.Errorf("%s changed %d", action, n)
		}
		// What failed can be sent again, with what was entered.
		retry := actionsIn(page.Body)
		again := retry[len(retry)-1]
		if at, err := url.Parse(again); err != nil || strings.Join(at.Query()["id"], " ") != closed+" "+theirs {
			t.Errorf("the form is sent to %s", again)
		}
		s.Exec(`UPDATE work_orders SET status = 'open', completed_at = NULL WHERE id = $1`, closed)
		ann.Post(again, page.Form(fields...)).Want(http.StatusUnprocessableEntity, "1 work order was not changed.", "</svg>Done</span> <a href=\"/console/work-orders/"+closed)
		if n := logged(s.Site) - before; n != 2 {
			t.Errorf("%s changed %d", action, n)
		}
	}
	// A person who can be assigned to some only, and one of another organization.
	elsewhere := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("dispatch"), store.NoKey, records.NewWorkOrder{InventoryID: s.ID("depot"), Title: "Elsewhere", Assignees: []string{s.ID("pia")}}))
	s.Exec(`UPDATE work_orders SET inventory_id = $1, organization_id = $2 WHERE id = $3`, s.ID("annex"), s.Acme.OrganizationID, elsewhere)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, s.ID("annex"), s.ID("ann"), s.ID("manager"), s.Acme.OrganizationID)
	both := []string{done, elsewhere}
	ann.Get(selectedPath("assign", both...)).Want(http.StatusOK, `Eve Hill <span class="hint">0 open, for 1 of 2</span>`, `Polar Lifts <span class="hint">service company, for 1 of 2</span>`)
	sendSelected(ann, "assign", []string{"identity", s.ID("eve"), "step", "assign"}, both...).Want(http.StatusUnprocessableEntity, "1 work order was not changed.", "Eve Hill is not connected")
	page := sendSelected(ann, "assign", []string{"identity", s.ID("dispatch"), "step", "assign"}, both...).Want(http.StatusUnprocessableEntity, "2 work orders were not changed.")
	wantNot(t, page, "Dispatch")
}

// A form is checked before anything is changed.
func TestSelectedWorkOrdersAreChecked(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	id := newRecord(t, s.Site)
	ann, before := s.SignedIn("ann"), logged(s.Site)
	for action, mistakes := range map[string]map[string][]string{
		"assign": {"Choose at least one.": {"step", "assign"}},
		"due":    {"Enter a date and a time.": {"target_date", " "}, "A time is written as": {"target_date", "tomorrow"}},
	} {
		for says, fields := range mistakes {
			sendSelected(ann, action, fields, id).Want(http.StatusUnprocessableEntity, says, "2 Replace filter")
		}
		many := make([]string, 101)
		for i := range many {
			many[i] = fmt.Sprintf("wo_%026d", i)
		}
		for _, send := range []func(path string) consoletest.Page{ann.Get, func(path string) consoletest.Page {
			return ann.Post(path, url.Values{"target_date": {"2026-08-03T10:00"}})
		}} {
			send(selectedPath(action, many...)).Want(http.StatusBadRequest, "At most 100 work orders are changed at once.")
			send(selectedPath(action, many[1:]...)).Want(http.StatusNotFound)
			send(selectedPath(action, s.theirs[0])).Want(http.StatusNotFound)
			send(selectedPath(action, id, s.ID("bob"))).Want(http.StatusNotFound)
			none := send(selectedPath(action)).Want(http.StatusSeeOther)
			if none.Location() != "/console/work-orders?q=filter" || none.Done() != "none-selected" {
				t.Errorf("nothing selected: %s %s", none.Location(), none.Done())
			}
			send("/console/work-orders/" + action + "?back=https://example.com").Want(http.StatusSeeOther)
		}
		if n := logged(s.Site) - before; n != 0 {
			t.Errorf("%s changed %d", action, n)
		}
	}
	// A search keeps those who were chosen, and finds integrations.
	found := sendSelected(ann, "assign", []string{"identity", s.ID("crew"), "find", "erp", "step", "find"}, id).Want(http.StatusOK, `value="`+s.ID("crew")+`" checked`, `ERP <span class="hint">integration</span>`)
	wantNot(t, found, "Bob Stone</label>")
	// A session that ends while the form is filled in keeps it.
	path := selectedPath("due", id)
	form := ann.Get(path).Form("target_date", "2026-08-03T10:00")
	s.Clock.Advance(models.SessionIdle)
	again(ann, ann.Post(path, form).Want(http.StatusUnauthorized, `name="kept"`), "ann").Want(http.StatusOK, "Set the due date of 1 work order", `value="2026-08-03T10:00"`)
}

// Rows have boxes for people who may do something with work orders, unless these are closed.
func TestRowsAreSelectedByThoseWhoMay(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	open, closed := newRecord(t, s, "ann", "bob"), newRecord(t, s)
	s.Exec(`UPDATE work_orders SET status = 'complete', completed_at = now() WHERE id = $1`, closed)
	box := func(id string) string { return `type="checkbox" name="id" value="` + id + `"` }
	const list, assign, due = "/console/work-orders?status=any", "/console/work-orders/assign", "/console/work-orders/due"
	ann, bob := s.SignedIn("ann"), s.SignedIn("bob")
	wantNot(t, ann.Get(list).Want(http.StatusOK, box(open), assign, due), box(closed))
	wantNothing := func(v *consoletest.Visitor) {
		t.Helper()
		page := v.Get(list).Want(http.StatusOK, "Replace filter")
		wantNot(t, page, `type="checkbox" name="id"`, assign, due)
		for _, action := range []string{"assign", "due", "priority"} {
			v.Get(selectedPath(action, open)).Want(http.StatusForbidden)
			v.Post(selectedPath(action, open), url.Values{"target_date": {"2026-08-03T10:00"}, "identity": {s.ID("dan")}}).Want(http.StatusForbidden)
		}
	}
	wantNothing(bob)
	// With one of the permissions one of the buttons is offered.
	s.Exec(`UPDATE permission_definitions SET grants = '{inventory.read,work_orders.read,work_orders.update}' WHERE id = $1`, s.ID("working"))
	wantNot(t, bob.Get(list).Want(http.StatusOK, box(open), due), assign)
	bob.Get(selectedPath("assign", open)).Want(http.StatusForbidden)
	s.Exec(`UPDATE organizations SET read_only = true`)
	wantNothing(ann)
}

// Three work orders are given to a team in six clicks, with scripts and without.
func TestSeveralAreAssignedInFewClicks(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		ids := []string{newRecord(t, s), newRecord(t, s), newRecord(t, s)}
		b.SignIn("ann", "/console/work-orders")
		b.WantNoText("Assign…")
		b.BeginEffort()
		for _, id := range ids {
			b.Choose("id", id)
		}
		b.Press("Assign…")
		b.WantText("Assign people to 3 work orders")
		b.Choose("identity", s.ID("crew"))
		b.Press("Assign")
		b.WantText("They are assigned to all that you selected.")
		if b.Clicks > 6 {
			t.Errorf("%d clicks", b.Clicks)
		}
		for _, id := range ids {
			servicetest.Expect(t, "the people", rolesOf(s, id), "Ann Field worker, Crew worker")
		}
	})
}
