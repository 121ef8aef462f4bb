package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// plannedWorkOrder creates a work order on AHU 1 with a form, whose worker is Bob.
func plannedWorkOrder(t *testing.T, s *consoletest.Site, consultants ...string) string {
	t.Helper()
	description, due, form := "First\r\nsecond", models.TimeOf(time.Date(2026, 7, 1, 6, 30, 15, 0, time.UTC)), s.ID("inspection")
	in := records.NewWorkOrder{InventoryID: s.ID("ahu1"), Title: "Replace\nthe filter", Description: &description, TargetDate: &due, FormID: &form, Assignees: []string{s.ID("bob")}}
	for _, key := range consultants {
		in.Consultants = append(in.Consultants, s.ID(key))
	}
	return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, in))
}

// A person changes only the fields that it changes: the others keep what inputs cannot show.
func TestAWorkOrderIsEdited(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	s.Exec(`UPDATE people SET time_zone = 'Europe/Helsinki' WHERE id = $1`, s.ID("bob"))
	id := plannedWorkOrder(t, s)
	v, path := s.SignedIn("bob"), "/console/work-orders/"+id+"/edit"
	page := v.Get(path).Want(http.StatusOK, `value="2026-07-01T09:30"`, "Due (Europe/Helsinki)", "First\r\nsecond</textarea>")
	form := page.Form("title", "Replacethe filter", "description", "First\r\nsecond", "priority", "high", "target_date", "2026-07-01T09:30", "external_id", "")
	v.Post(path, form).WantRedirect("/console/work-orders/" + id)
	record := workOrder(t, s, id)
	if record.Title != "Replace\nthe filter" || *record.Description != "First\r\nsecond" || record.TargetDate.String() != "2026-07-01T06:30:15.000Z" || record.Priority != models.PriorityHigh {
		t.Errorf("it is now %+v", record)
	}
	form = v.Get(path).Want(http.StatusOK, `value="high" selected`).Form("title", "New title", "description", " ", "priority", "none", "target_date", "2026-08-01T00:00", "external_id", "PO-9")
	v.Post(path, form).Want(http.StatusSeeOther)
	record = workOrder(t, s, id)
	if record.Title != "New title" || record.Description != nil || record.TargetDate.String() != "2026-07-31T21:00:00.000Z" || record.Priority != models.PriorityNone || *record.ExternalID != "PO-9" {
		t.Errorf("it is now %+v", record)
	}
	v.Post(path, v.Get(path).Form("title", "New title", "description", "", "priority", "none", "target_date", "", "external_id", "")).Want(http.StatusSeeOther)
	if record = workOrder(t, s, id); record.TargetDate != nil || record.ExternalID != nil {
		t.Errorf("cleared, it is %+v", record)
	}
	v.Post(path, v.Get(path).Form("title", "Kept title", "target_date", "soon")).Want(http.StatusUnprocessableEntity, `id="target_date-about"><p class="problem">`, `value="Kept title"`)
	// Every wrong field has its problem.
	wrong := map[string]string{"title": " ", "description": strings.Repeat("x", 10_001), "priority": "urgent", "external_id": strings.Repeat("x", 201)}
	form = v.Get(path).Form("target_date", "")
	for field, text := range wrong {
		form.Set(field, text)
	}
	page = v.Post(path, form)
	for field := range wrong {
		page.Want(http.StatusUnprocessableEntity, `id="`+field+`-about"><p class="problem">`)
	}
}

// Someone who saves a form over another's change reads who changed what, keeps the input and can save it on purpose.
// TestAStaleFormShowsTheValuesOfNow has the values of now.
func TestAnEditOverAnotherChange(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	id := plannedWorkOrder(t, s)
	path := "/console/work-orders/" + id + "/edit"
	bob := s.SignedIn("bob")
	fields := []string{"title", "Bob's title", "description", "By Bob", "priority", "low", "target_date", "", "external_id", ""}
	mine := bob.Get(path).Want(http.StatusOK).Form(fields...)
	edit(t, s, id, "Ann's title")
	page := bob.Post(path, mine).Want(http.StatusConflict, by(s, "ann")+" changed", "since you opened this page", `value="Bob&#39;s title"`, ">By Bob</textarea>")
	bob.Post(path, page.Form(fields...)).Want(http.StatusSeeOther)
	if workOrder(t, s, id).Title != "Bob's title" {
		t.Error("the form cannot be saved on purpose")
	}
	// If a rule forbids the change by now, the page names it and still shows what was entered.
	late := bob.Get(path).Form("title", "Too late")
	s.Must(s.Records.CancelWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, nil))
	bob.Post(path, late).Want(http.StatusConflict, "Cancelled", "Too late", "does not allow this")
}

// Someone who may not change or answer a work order reads the rule; one who may not read it
// gets the same page as for an unknown one.
func TestWhyAWorkOrderCannotBeChanged(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{work_orders.read}' WHERE id = $1`, s.ID("working"))
	id := plannedWorkOrder(t, s)
	page := "/console/work-orders/" + id
	bob, cat, eve, ann := s.SignedIn("bob"), s.SignedIn("cat"), s.SignedIn("eve"), s.SignedIn("ann")
	want := func(v *consoletest.Visitor, path, text string) {
		t.Helper()
		wantNot(t, v.Get(page+path).Want(http.StatusOK, text), `method="post" action="`+page)
	}
	want(bob, "/edit", "may not change work orders on this place")
	want(cat, "/answers", "Only an assigned worker may answer this work order")
	bob.Post(page+"/edit", bob.Get(page+"/answers").Form("title", "Forbidden")).Want(http.StatusForbidden)
	for _, path := range []string{"/edit", "/answers"} {
		eve.Get(page + path).Want(http.StatusNotFound)
	}
	s.Exec(`UPDATE organizations SET read_only = true`)
	want(ann, "/edit", "The organization is read-only")
	bob.Get(page+"/answers").Want(http.StatusOK, "Save the answers") // answering still works
	s.Exec(`UPDATE organizations SET read_only = false`)
	s.Must(s.Records.HoldWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id))
	want(ann, "/edit", "&#34;On hold&#34; does not allow this")
	want(bob, "/answers", "&#34;On hold&#34; does not allow this")
	s.WantRows(0, `work_orders WHERE title = 'Forbidden'`)
}
