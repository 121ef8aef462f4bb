package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Who completed a work order is not asked to review it, and its only consultant is not offered to complete it. The pages
// name the rule.
func TestWhoCompletedIsNotAskedToReview(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	order := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Grease the fan", Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID("crew")},
	}))
	path := "/console/work-orders/" + order
	bob, dan := s.SignedIn("bob"), s.SignedIn("dan")
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("dan"))
	page := bob.Get(path).Want(http.StatusOK, "no other active person is its consultant")
	wantNot(t, page, `action="`+path+`/complete"`)
	s.Exec(`UPDATE people SET deactivated_at = NULL WHERE id = $1`, s.ID("dan"))
	bob.Post(path+"/complete", bob.Get(path).Form()).Want(http.StatusSeeOther)
	wantNot(t, bob.Get(path).Want(http.StatusOK), "Your review")
	wantNot(t, bob.Get("/console").Want(http.StatusOK), "Grease the fan")
	dan.Get(path).Want(http.StatusOK, "Your review")
	dan.Get("/console").Want(http.StatusOK, "Grease the fan")
}

// A dispatcher forwards to workers: the forms offer no consultants.
func TestDispatchersNameNoConsultants(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := incoming(t, s)
	ann, path := s.SignedIn("ann"), "/console/work-orders/"+id+"/assign"
	const role = `name="role"`
	for _, form := range []string{path, selectedPath("assign", id)} {
		wantNot(t, ann.Get(form).Want(http.StatusOK, "Bob Stone"), role)
	}
	ann.Get(selectedPath("assign", id, newRecord(t, s))).Want(http.StatusOK, role)
	ann.Post(path, ann.Get(path).Form("identity", s.ID("bob"), "step", "assign")).Want(http.StatusSeeOther)
	servicetest.Expect(t, "the people", rolesOf(s, id), "Acme Facilities worker, Bob Stone worker")
}
