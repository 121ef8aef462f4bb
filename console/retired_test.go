package console_test

import (
	"net/http"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// Retired questions are asked no longer, and retired forms and definitions are marked and not offered.
func TestRetiredFormsAndDefinitions(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	form, ann := s.ID("inspection"), s.SignedIn("ann")
	id := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Filter", FormID: &form, Assignees: []string{s.ID("ann")},
	}))
	order := "/console/work-orders/" + id
	ann.Post(order+"/answers", ann.Get(order+"/answers").Form(s.ID("q_note"), "Loose")).Want(http.StatusSeeOther)
	s.Exec(`UPDATE questions SET retired = true WHERE id = $1`, s.ID("q_note"))
	s.Exec(`UPDATE forms SET retired = true WHERE id = $1`, form)
	s.Exec(`UPDATE permission_definitions SET retired = true WHERE id = $1`, s.ID("reading"))
	ann.Get(order).Want(http.StatusOK, "Loose")
	wantNot(t, ann.Get(order+"/answers").Want(http.StatusOK, s.ID("q_hours")), s.ID("q_note"))
	ann.Get("/console/forms").Want(http.StatusOK, "Inspection", "Retired")
	ann.Get("/console/forms/"+form).Want(http.StatusOK, "new work orders cannot have it")
	ann.Get("/console/people/definitions").Want(http.StatusOK, "Reading", "Retired")
	for path, never := range map[string]string{
		"/console/work-orders/new?node=" + s.ID("ahu1"): form, "/console/inventory/" + s.ID("annex") + "/assign": s.ID("reading"),
		"/console/integrations/" + s.ID("erp") + "/assign": s.ID("reading"),
	} {
		wantNot(t, ann.Get(path).Want(http.StatusOK), never)
	}
}
