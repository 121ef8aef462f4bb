package api_test

import (
	"net/http"
	"testing"
)

// Retired forms, nodes and questions are rejected with the code retired, which the document lists (api.md
// 2.3, 4.1, 4.2).
func TestWhatIsRetiredIsNotUsed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	inspection := h.inspection(nil)
	h.Exec(`UPDATE questions SET retired = true WHERE id = $1`, h.ID("q_note"))
	h.Exec(`UPDATE forms SET retired = true WHERE id = $1`, h.ID("inspection"))
	h.Exec(`UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`, h.ID("mast"))
	for name, test := range map[string]struct {
		path    string
		body    object
		pointer string
	}{
		"a form":     {"/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "Replace filter", "form_id": h.ID("inspection")}, "/form_id"},
		"a node":     {"/work-orders", object{"inventory_id": h.ID("mast"), "title": "Replace filter"}, "/inventory_id"},
		"feedback":   {"/issues", object{"inventory_id": h.ID("mast"), "subject": "It squeaks"}, "/inventory_id"},
		"a question": {"/work-orders/" + inspection + "/answers", object{"answers": []any{h.to("q_note", "x")}}, "/answers/0/question_id"},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.As("erp", http.MethodPost, test.path, test.body).Want(http.StatusUnprocessableEntity, "validation_failed")
			field := response.Field("errors").([]any)[0].(object)
			if field["pointer"] != test.pointer || field["code"] != "retired" {
				t.Errorf("the field is %v", field)
			}
		})
	}
}
