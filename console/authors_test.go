package console_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/people"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// by is how pages show someone who did something, with a link to the person's page.
func by(s *consoletest.Site, key string) string {
	return `<a href="/console/people/` + s.ID(key) + `"><bdi>` + servicetest.Value[string](s.Fixture, `SELECT name FROM identities WHERE id = $1`, s.ID(key)) + `</bdi></a>`
}

// A person takes the name of another, acts, and takes the earlier name again: every line
// that the person left links to that person and shows both names.
func TestANameOfAnotherLeadsToItsAuthor(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ctx := t.Context()
	work, feedback := inReview(t, s, "cat"), newFeedback(t, s)
	allowFeedback(s)
	rename := func(name string) {
		if err := s.People.ChangeProfile(ctx, s.Viewer("cat"), store.NoKey, people.Profile{Name: name}); err != nil { //nolint:contextcheck // the fixture has its own
			t.Fatal(err)
		}
	}
	ann := s.SignedIn("ann")
	edit := ann.Get("/console/work-orders/" + work + "/assign").Want(http.StatusOK)
	rename("Ann Field")
	commentOn(t, s, "cat", work, "Pay the invoice.")
	commentOn(t, s, "cat", feedback, "Pay the invoice.")
	s.Must(s.Records.ReviewWorkOrder(ctx, s.Viewer("cat"), store.NoKey, work, records.Review{Comment: "Again."}))
	rename("Cat Rivers")
	author := `<a href="/console/people/` + s.ID("cat") + `"><bdi>Ann Field</bdi></a> <span class="muted">(now <bdi>Cat Rivers</bdi>)</span>`
	for _, path := range []string{"/console/work-orders/" + work, "/console/feedback/" + feedback} {
		ann.Get(path).Want(http.StatusOK, "<strong>"+author+"</strong>")
	}
	ann.Get("/console/work-orders/"+work).Want(http.StatusOK, author+" sent the work order back", "Sent back by "+author)
	ann.Get("/console/log").Want(http.StatusOK, author, by(s, "bob"))
	// A form that was opened before names who changed the record since.
	form := edit.Form("identity", s.ID("dan"), "role", "worker")
	ann.Post("/console/work-orders/"+work+"/assign", form).Want(http.StatusConflict, author+" sent the work order back")

	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(ann.Get("/console/log.csv?what=work_order.commented").Want(http.StatusOK).Body, "\ufeff"))).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][1] != "who" || rows[0][6] != "who now" || rows[0][7] != "who id" ||
		rows[1][1] != "Ann Field" || rows[1][6] != "Cat Rivers" || rows[1][7] != s.ID("cat") {
		t.Errorf("the CSV is %q, %v", rows, err)
	}
}

// Pages link only to authors that the reader may open: none of another organization, and no
// integration without the permission.
func TestAuthorsThatTheReaderMayOpen(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	work, customers := newRecord(t, s, "bob"), incoming(t, s)
	commentOn(t, s, "ann", customers, "On the way.")
	s.Must(s.Records.UpdateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, work, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Other", Set: true}}))
	program := `<a href="/console/integrations/` + s.ID("erp") + `"><bdi>erp (API)</bdi></a>`
	s.SignedIn("ann").Get("/console/work-orders/"+work).Want(http.StatusOK, program+` <span class="muted">(now <bdi>ERP</bdi>)</span> changed the title`)
	grant(s, "bob", "log_records")
	bob := s.SignedIn("bob")
	for _, path := range []string{"/console/work-orders/" + work, "/console/log"} {
		wantNot(t, bob.Get(path).Want(http.StatusOK, "<bdi>erp (API)</bdi>"), "/console/integrations/")
	}
	page := s.SignedIn("pia").Get("/console/work-orders/"+customers).Want(http.StatusOK, "<strong><bdi>Ann Field</bdi></strong>", by(s, "pia")+" created the work order")
	wantNot(t, page, "/console/people/"+s.ID("ann"))
	page = s.SignedIn("ann").Get("/console/work-orders/"+customers).Want(http.StatusOK, by(s, "ann"), "<bdi>Pia Frost</bdi> created the work order")
	wantNot(t, page, "/console/people/"+s.ID("pia"))
	s.Exec(`UPDATE integrations SET deleted_at = now(), enabled = false WHERE id = $1`, s.ID("erp"))
	wantNot(t, s.SignedIn("ann").Get("/console/work-orders/"+work).Want(http.StatusOK, "<bdi>erp (API)</bdi>"), "/console/integrations/"+s.ID("erp"))
}
