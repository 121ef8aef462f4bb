package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// A work order waits for the review of everyone but who completed it, and is not completed by its
// only consultant. The pages name the rule.
func TestWhoCompletedIsNotAskedToReview(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	created, err := s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Grease the fan", Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID("crew")},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/work-orders/" + created.RecordID
	bob := s.SignedIn("bob")
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("dan"))
	page := bob.Get(path).Want(http.StatusOK, "no other active person is its consultant")
	wantNot(t, page, `action="`+path+`/complete"`)
	bob.Post(path+"/complete", page.Form()).Want(http.StatusUnprocessableEntity, "no other active person is its consultant")
	s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("dan"))
	bob.Post(path+"/complete", bob.Get(path).Form()).Want(http.StatusSeeOther)

	page = bob.Get(path).Want(http.StatusOK)
	wantNot(t, page, "Your review")
	dan := s.SignedIn("dan")
	review := dan.Get(path).Want(http.StatusOK, "Your review").Form("decision", "approve")
	bob.Post(path+"/review", review).Want(http.StatusUnprocessableEntity, "Who completed a work order does not review it.")
	wantNot(t, bob.Get("/console").Want(http.StatusOK), "Grease the fan")
	dan.Get("/console").Want(http.StatusOK, "Grease the fan")
	dan.Post(path+"/review", dan.Get(path).Form("decision", "approve")).Want(http.StatusSeeOther)
}

// A dispatcher forwards to workers: the forms offer no consultants, and reject them.
func TestDispatchersNameNoConsultants(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := incoming(t, s)
	path := "/console/work-orders/" + id
	ann := s.SignedIn("ann")
	const role, why = `name="role"`, "Only its customer names consultants."
	for form, status := range map[string]int{path + "/assign": http.StatusForbidden, selectedPath("assign", id): http.StatusUnprocessableEntity} {
		page := ann.Get(form).Want(http.StatusOK, "Bob Stone")
		wantNot(t, page, role)
		ann.Post(form, page.Form("identity", s.ID("bob"), "role", "consultant", "step", "assign")).Want(status, why)
	}
	ann.Get(selectedPath("assign", id, newRecord(t, s))).Want(http.StatusOK, role)
	page := ann.Get(path + "/assign")
	ann.Post(path+"/assign", page.Form("identity", s.ID("bob"), "step", "assign")).Want(http.StatusSeeOther)
	if got := rolesOf(s, id); got != "Acme Facilities worker, Bob Stone worker" {
		t.Errorf("assigned are %s", got)
	}
}
