package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Retired questions are asked no longer, and retired forms and definitions are marked and not offered.
func TestRetiredFormsAndDefinitions(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	form, ann := s.ID("inspection"), s.SignedIn("ann")
	result, err := s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Filter", FormID: &form, Assignees: []string{s.ID("ann")},
	})
	if err != nil {
		t.Fatal(err)
	}
	order := "/console/work-orders/" + result.RecordID
	ann.Post(order+"/answers", ann.Get(order+"/answers").Form(s.ID("q_note"), "Loose")).Want(http.StatusSeeOther)
	s.Exec(`UPDATE questions SET retired = true WHERE id = $1`, s.ID("q_note"))
	s.Exec(`UPDATE forms SET retired = true WHERE id = $1`, form)
	s.Exec(`UPDATE permission_definitions SET retired = true WHERE id = $1`, s.ID("reading"))
	ann.Get(order).Want(http.StatusOK, "Loose")
	page := ann.Get(order+"/answers").Want(http.StatusOK, s.ID("q_hours"))
	if strings.Contains(page.Body, s.ID("q_note")) {
		t.Error("the retired question is asked")
	}
	ann.Post(order+"/answers", page.Form(s.ID("q_hours"), "7")).Want(http.StatusSeeOther)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM answers WHERE work_order_id = $1`, result.RecordID); n != 2 {
		t.Errorf("%d answers, want the old one and the new one", n)
	}
	ann.Get("/console/forms").Want(http.StatusOK, "Inspection", "Retired")
	ann.Get("/console/forms/"+form).Want(http.StatusOK, "new work orders cannot have it")
	ann.Get("/console/people/definitions").Want(http.StatusOK, "Reading", "Retired")
	for path, never := range map[string]string{
		"/console/work-orders/new?node=" + s.ID("ahu1"): form, "/console/inventory/" + s.ID("annex") + "/assign": s.ID("reading"),
		"/console/integrations/" + s.ID("erp") + "/assign": s.ID("reading"),
	} {
		if strings.Contains(ann.Get(path).Want(http.StatusOK).Body, never) {
			t.Errorf("%s offers what is retired", path)
		}
	}
}
