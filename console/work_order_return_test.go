package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// incoming returns a work order of Polar's, whose service company is Acme: ann has it coming in.
func incoming(t testing.TB, s *consoletest.Site) string {
	t.Helper()
	acme, polar := s.Acme.OrganizationID, s.Polar.OrganizationID
	s.Exec(`UPDATE plans SET manual_work_orders = true WHERE organization_id = $1`, polar)
	s.Exec(`INSERT INTO service_companies (customer_id, company_id) VALUES ($1, $2)`, polar, acme)
	s.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, s.ID("depot"), acme, s.Polar.IDs["full"], polar)
	return s.Must(s.Records.CreateWorkOrder(t.Context(), s.Viewer("pia"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("depot"), Title: "Grease the lift", Assignees: []string{acme},
	}))
}

// A dispatcher returns a customer's work order with a reason and comes to a page that exists,
// though the work order is gone. The customer reads who returned it, and why.
func TestReturnToTheCustomer(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	path := "/console/work-orders/" + incoming(t, s)
	s.Exec(`DELETE FROM notices`)
	ann := s.SignedIn("ann")
	s.Exec(`UPDATE people SET phone = '+12025550102' WHERE id = $1`, s.ID("pia"))
	page := ann.Get(path).Want(http.StatusOK, `<dt>Contact</dt><dd><bdi>Pia Frost</bdi> <a href="mailto:pia@polar.example.com">pia@polar.example.com</a>`, "12025550102", path+"/return", "Return to the customer…", "by returning it to the customer")
	wantNot(t, page, path+"/unassign")
	// Who left answers no question: the customer's manager does.
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("pia"))
	wantNot(t, ann.Get(path).Want(http.StatusOK, "Polar Lifts"), "<dt>Contact</dt>")
	s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("pia"))
	s.Exec(`UPDATE work_orders SET created_by = $1 WHERE id = $2`, s.ID("dispatch"), strings.TrimPrefix(path, "/console/work-orders/"))
	ann.Get(path).Want(http.StatusOK, `<dt>Contact</dt><dd><bdi>Pia Frost</bdi>`)
	page = ann.Get(path+"/return").Want(http.StatusOK, "Return “Grease the lift” to Polar Lifts?", "the nearest inventory managers of Depot take over", "Keep it")
	long := strings.Repeat("x", 1001)
	ann.Post(path+"/return", page.Form("reason", long)).
		Want(http.StatusUnprocessableEntity, "Return “Grease the lift”", "at most", long, `action="`+path+`/return"`)
	next := ann.Post(path+"/return", page.Form("reason", "We have no one on site.")).Want(http.StatusSeeOther).Location()
	ann.Get(next).Want(http.StatusOK, "Returned to the customer.", "Incoming")
	ann.Get(path).Want(http.StatusNotFound)
	pia := s.SignedIn("pia")
	pia.Get("/console/notices").Want(http.StatusOK, "was returned by a service company")
	page = pia.Get(path).Want(http.StatusOK, "<bdi>Ann Field</bdi> returned the work order to the customer: <q class=\"lines\"><bdi>We have no one on site.</bdi></q>")
	wantNot(t, page, path+"/return")
	wantNot(t, page, "Return to the customer")
	wantNot(t, page, "<dt>Contact</dt>")
}

// A dispatcher finds what comes in on the start page and by a shortcut.
func TestIncomingOnTheStartPage(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	incoming(t, s)
	s.Exec(`DELETE FROM notices`)
	ann := s.SignedIn("ann")
	page := ann.Get("/console").Want(http.StatusOK, "Incoming", "Grease the lift", "Polar Lifts", "Forward…")
	wantNot(t, page, "Nothing waits for you")
	ann.Get("/console/work-orders?who=incoming").Want(http.StatusOK, "Grease the lift", `aria-current="true" href="/console/work-orders?who=incoming"`, "incoming, none of us has it yet", `<input type="hidden" name="who" value="incoming">`)
	bob := s.SignedIn("bob")
	wantNot(t, bob.Get("/console").Want(http.StatusOK), "Grease the lift")
	wantNot(t, bob.Get("/console/work-orders").Want(http.StatusOK), ">Incoming<")
}
