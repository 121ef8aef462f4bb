package console_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// creating lets the people who work at the headquarters create, change and read work orders there.
func creating(s *consoletest.Site) {
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{work_orders.create,work_orders.read,work_orders.update,feedback.read}' WHERE id = $1`, s.ID("working"))
}

// A person chooses a node level by level or by its name, enters the fields and gets a work
// order with them; a time is the person's.
func TestAWorkOrderIsCreated(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	s.Exec(`UPDATE people SET time_zone = 'Europe/Helsinki' WHERE id = $1`, s.ID("bob"))
	v := s.SignedIn("bob")
	hvac, ahu := s.ID("hvac"), s.ID("ahu1")
	v.Get("/console/work-orders/new").Want(http.StatusOK, "Headquarters", "/console/work-orders/new?below="+s.ID("hq"))
	v.Get("/console/work-orders/new?below="+s.ID("hq")).Want(http.StatusOK, "HVAC", "Roof", "below="+hvac)
	v.Get("/console/work-orders/new?below="+hvac).Want(http.StatusOK, "node="+hvac, "node="+ahu, "AHU-1")
	wantNot(t, v.Get("/console/work-orders/new?below="+ahu).Want(http.StatusOK), "Fan 1")
	v.Get("/console/work-orders/new?q=ahu-").Want(http.StatusOK, "node="+ahu, "Headquarters › HVAC")
	v.Get("/console/work-orders/new?q=nowhere").Want(http.StatusOK, "No place on which you may create work orders matches “<bdi>nowhere</bdi>”.")
	page := v.Get("/console/work-orders/new?node="+ahu).Want(http.StatusOK, "Due (Europe/Helsinki)", "Inspection (5 questions)", "it goes to the inventory managers: Ann Field.", "service company")
	form := page.Form("title", " Replace the filter ", "description", "First line\r\nsecond", "priority", "high", "target_date", "2026-07-01T09:30",
		"form_id", s.ID("inspection"), "assignees", s.ID("crew"), "assignees", s.ID("bob"), "consultants", s.ID("cat"), "external_id", "PO-7")
	page = v.Post("/console/work-orders", form).Want(http.StatusSeeOther)
	to := page.Location()
	id := strings.TrimPrefix(to, "/console/work-orders/")
	if page.Done() != "created" {
		t.Errorf("it redirects to %s with %q", to, page.Done())
	}
	record := workOrder(t, s, id)
	if record.Title != "Replace the filter" || *record.Description != "First line\nsecond" || record.Priority != models.PriorityHigh || record.TargetDate.String() != "2026-07-01T06:30:00.000Z" ||
		*record.FormID != s.ID("inspection") || fmt.Sprint(record.Assignees) != fmt.Sprint([]string{s.ID("crew"), s.ID("bob")}) ||
		record.Consultants[0] != s.ID("cat") || *record.ExternalID != "PO-7" || record.CreatedBy != s.ID("bob") {
		t.Errorf("the work order is %+v", record)
	}
	// Sent again, it redirects to the same one.
	v.Post("/console/work-orders", form).WantRedirect("/console/work-orders/" + id)
	s.WantRows(1, `work_orders`)
	// A title is enough; without a worker the manager gets it.
	to = v.Post("/console/work-orders", v.Get("/console/work-orders/new?node="+ahu).Form("title", "Only a title", "priority", "none", "form_id", "", "target_date", "")).Want(http.StatusSeeOther).Location()
	id, _, _ = strings.Cut(strings.TrimPrefix(to, "/console/work-orders/"), "?")
	if record := workOrder(t, s, id); record.Assignees[0] != s.ID("ann") || record.TargetDate != nil || record.FormID != nil || record.Description != nil || record.ExternalID != nil {
		t.Errorf("with only a title: %+v", record)
	}
}

// workOrder returns a work order as the fixture's manager sees it.
func workOrder(t *testing.T, s *consoletest.Site, id string) models.WorkOrderRecord {
	t.Helper()
	body, err := s.Records.WorkOrder(t.Context(), s.Viewer("ann"), id)
	if err != nil {
		t.Fatal(err)
	}
	var record models.WorkOrderRecord
	if err := json.Unmarshal(body, &record); err != nil {
		t.Fatal(err)
	}
	return record
}

// A field shows the mistakes in it, and the form keeps everything entered.
func TestFieldsOfANewWorkOrderAreChecked(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	v := s.SignedIn("bob")
	for _, test := range []struct {
		name         string
		fields       []string
		field, wants string
	}{
		{"no title", []string{"title", "  "}, "title", "visible character"},
		{"a long description", []string{"description", strings.Repeat("x", 10_001)}, "description", "at most 10000 characters"},
		{"a long reference", []string{"external_id", strings.Repeat("x", 201)}, "external_id", "at most 200 characters"},
		{"no priority", []string{"priority", "urgent"}, "priority", "must be one of"},
		{"no time", []string{"target_date", "tomorrow"}, "target_date", "2026-03-02T08:00"},
		{"no year", []string{"target_date", "0000-01-01T00:00"}, "target_date", "from 1 to 9999"},
		{"no form", []string{"form_id", "frm_00000000000000000000000000"}, "form_id", "no such form"},
		{"a stranger", []string{"assignees", "idn_00000000000000000000000000"}, "assignees", "no such identity"},
		{"both roles", []string{"assignees", s.ID("cat"), "consultants", s.ID("cat")}, "", "Cat Rivers cannot be both assignee and consultant"},
	} {
		t.Log(test.name)
		form := v.Get("/console/work-orders/new?node=" + s.ID("ahu1")).Want(http.StatusOK).Form()
		kept := url.Values{"title": {"Kept title"}, "description": {"Kept text"}, "priority": {"low"}, "target_date": {"2026-07-01T09:30"}, "external_id": {"KEPT-1"}}
		for i := 0; i < len(test.fields); i += 2 {
			kept[test.fields[i]] = []string{test.fields[i+1]}
		}
		for name, values := range kept {
			form[name] = values
		}
		page := v.Post("/console/work-orders", form).Want(http.StatusUnprocessableEntity, test.wants)
		if test.field != "" && !strings.Contains(page.Body, `id="`+test.field+`-about"><p class="problem">`) {
			t.Errorf("the field %s has no problem:\n%s", test.field, page.Body)
		}
		for name, text := range map[string]string{
			"title": `value="Kept title"`, "description": ">Kept text</textarea>", "priority": `value="low" selected`,
			"target_date": `value="2026-07-01T09:30"`, "external_id": `value="KEPT-1"`,
		} {
			if name != test.field && !strings.Contains(page.Body, text) {
				t.Errorf("the page lacks %s", text)
			}
		}
	}
	s.WantRows(0, `work_orders`)
	s.Exec(`DELETE FROM assignments WHERE identity_id = $1`, s.ID("ann"))
	form := v.Get("/console/work-orders/new?node="+s.ID("ahu1")).Want(http.StatusOK, "Choose at least one: no inventory manager").Form("title", "No one works")
	v.Post("/console/work-orders", form).Want(http.StatusUnprocessableEntity, "needs at least one worker")
}

// People who cannot create a work order read why: no permission anywhere, or on this node, the
// plan, or a read-only organization.
func TestWhyNoWorkOrderCanBeCreated(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	bob, ann := s.SignedIn("bob"), s.SignedIn("ann")
	node := "/console/work-orders/new?node=" + s.ID("ahu1")
	bob.Get("/console/work-orders/new").Want(http.StatusOK, "You may create work orders on no place of the inventory.")
	bob.Get(node).Want(http.StatusOK, "Your permissions on AHU 1 do not include “work orders: create”.")
	bob.Post("/console/work-orders", url.Values{"node": {s.ID("ahu1")}, "title": {"Not allowed"}}).Want(http.StatusForbidden, "may not create work orders on this place")
	ann.Get("/console/work-orders/new?node="+s.ID("fan1")).Want(http.StatusOK, "not to sub-equipment")
	unknown := ann.Get("/console/work-orders/new?node=loc_00000000000000000000000000").Want(http.StatusNotFound)
	if other := ann.Get("/console/work-orders/new?node=" + s.ID("annex")).Want(http.StatusNotFound); other.Body != unknown.Body {
		t.Error("a node that the person does not see differs from none")
	}
	form := ann.Get(node).Want(http.StatusOK).Form("title", "Too late")
	s.Exec(`UPDATE plans SET manual_work_orders = false`)
	ann.Get("/console/work-orders/new").Want(http.StatusOK, "plan does not include work orders that people create")
	ann.Get(node).Want(http.StatusOK, "plan does not include work orders that people create")
	ann.Post("/console/work-orders", form).Want(http.StatusForbidden, "plan does not allow manual work orders", "Too late")
	s.Exec(`UPDATE organizations SET read_only = true`)
	ann.Get("/console/work-orders/new").Want(http.StatusOK, "The organization is read-only")
	ann.Post("/console/work-orders", form).Want(http.StatusForbidden, "read-only", "Too late")
	s.WantRows(0, `work_orders`)
}

// A work order made from feedback begins with its subject, description and node, of which
// another can be chosen.
func TestAWorkOrderIsMadeOfFeedback(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	description := "It rattles <b>loudly</b>."
	id := s.Must(s.Records.CreateFeedback(t.Context(), s.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: s.ID("fan1"), Subject: "The fan rattles", Description: &description}))
	v := s.SignedIn("bob")
	made := "/console/work-orders/new?feedback=" + id
	page := v.Get(made).Want(http.StatusOK, `value="The fan rattles"`, "It rattles &lt;b&gt;loudly&lt;/b&gt;.\n\nFrom the feedback "+id+".</textarea>", "/console/feedback/"+id, "AHU 1")
	v.Get(made+"&below=").Want(http.StatusOK, "Made of the feedback", "feedback="+id+"&amp;node="+s.ID("hq"), "below="+s.ID("hq")+"&amp;feedback="+id)
	v.Get(made+"&q=roof").Want(http.StatusOK, "feedback="+id+"&amp;node="+s.ID("roof"))
	v.Get(made+"&node="+s.ID("roof")).Want(http.StatusOK, "Roof", `value="The fan rattles"`)
	v.Post("/console/work-orders", page.Form("title", "")).Want(http.StatusUnprocessableEntity, "Made of the feedback")
	to := v.Post("/console/work-orders", page.Form("title", "The fan rattles")).Want(http.StatusSeeOther).Location()
	if !strings.HasPrefix(to, "/console/work-orders/wo_") {
		t.Errorf("it redirects to %s", to)
	}
	// Feedback that the person may not read is like none.
	s.Exec(`UPDATE permission_definitions SET grants = array_remove(grants, 'feedback.read') WHERE id = $1`, s.ID("working"))
	v.Get(made).Want(http.StatusNotFound)
	v.Post("/console/work-orders", page.Form("title", "Not from hidden feedback")).Want(http.StatusNotFound)
}

// Of very many candidates those with a name are listed, after those who are chosen, and what
// was entered is kept.
func TestManyCandidatesAreNarrowed(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	s.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at) SELECT 'idn_000000000000000000000' || n, $1, 'person', 'Fitter ' || n, now(), now() FROM generate_series(10001, 10150) n`, s.Acme.OrganizationID)
	s.Exec(`INSERT INTO people (id, organization_id, email, folded_email) SELECT 'idn_000000000000000000000' || n, $1, n || '@acme.example.com', n || '@acme.example.com' FROM generate_series(10001, 10150) n`, s.Acme.OrganizationID)
	s.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) SELECT $2, 'idn_000000000000000000000' || n, $1 FROM generate_series(10001, 10150) n`, s.Acme.OrganizationID, s.ID("crew"))
	v := s.SignedIn("bob")
	page := v.Get("/console/work-orders/new?node="+s.ID("ahu1")).Want(http.StatusOK, "Find people by name", "Fitter 10001")
	wantNot(t, page, "Fitter 10140")
	form := page.Form("title", "Kept title", "assignees", s.ID("bob"), "find", "fit 10140", "step", "find")
	page = v.Post("/console/work-orders", form).Want(http.StatusOK, "Fitter 10140", "Kept title", `value="`+s.ID("bob")+`" checked`)
	if strings.Contains(page.Body, "Fitter 10001") || servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_orders`) != 0 {
		t.Error("finding people does something else")
	}
	form = page.Form("title", "Kept title", "assignees", s.ID("bob"), "assignees", "idn_00000000000000000000010140")
	v.Post("/console/work-orders", form).Want(http.StatusSeeOther)
}

// Without scripts too, a person creates a work order; a double click creates one.
// TestTheDaysWorkTakesFewClicks does it with scripts.
func TestAWorkOrderIsCreatedInABrowser(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	b.SignIn("ann", "/console/work-orders/new")
	b.Press("Open Headquarters")
	b.Press("Open HVAC")
	b.WantText("AHU 1")
	b.Fill("q", "ahu")
	b.Press("Search")
	b.Press("AHU 1")
	b.Fill("title", "Replace the filter")
	b.Fill("priority", "high")
	b.Choose("assignees", s.ID("bob"))
	b.Do(chromedp.DoubleClick(chromedp.CSS(`main button.primary`)))
	b.WantText("Ann Field created the work order.")
	s.WantRows(1, `work_orders WHERE title = 'Replace the filter' AND priority = 'high'`)
}
