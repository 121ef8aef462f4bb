package api_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"millwright/service/webhooks"
)

// Work orders and feedback show their node and its path to everyone who may read the
// record, in every representation (api.md 2.8).
func TestRecordsShowTheirNode(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	unit := `{"id":"ahu1","kind":"equipment","name":"AHU 1","external_id":"AHU-1","path":[` +
		`{"id":"hq","kind":"location","name":"Headquarters"},{"id":"hvac","kind":"system","name":"HVAC"}]}`
	top := `{"id":"hq","kind":"location","name":"Headquarters","external_id":"HQ","path":[]}`
	roof := `{"id":"roof","kind":"location","name":"Roof","external_id":null,"path":[{"id":"hq","kind":"location","name":"Headquarters"}]}`
	node := func(record any) string {
		t.Helper()
		reference, _ := record.(object)["inventory"].(object)
		text, err := json.Marshal(orderedNode(reference))
		if err != nil {
			t.Fatal(err)
		}
		return h.withKeys(string(text))
	}
	for key, shown := range map[string]string{"ahu1": unit, "hq": top, "roof": roof} {
		created := h.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": h.ID(key), "title": "x", "external_id": key}).
			Want(http.StatusCreated, "")
		id := created.Text("id")
		want(t, "a new work order", node(created.Field()), shown)
		want(t, "a change", node(h.As("erp", http.MethodPatch, "/work-orders/"+id, object{"title": "y"}).Want(http.StatusOK, "").Field()), shown)
		want(t, "a read", node(h.read(id).Field()), shown)
		want(t, "the list", node(h.list("/work-orders", "external_id", key).Field("data").([]any)[0]), shown)
		given := h.As("erp", http.MethodPost, "/issues", object{"inventory_id": h.ID(key), "subject": "x", "external_id": key}).Want(http.StatusCreated, "")
		want(t, "new feedback", node(given.Field()), shown)
		want(t, "feedback", node(h.list("/issues/"+given.Text("id")).Field()), shown)
		want(t, "the list of feedback", node(h.list("/issues", "external_id", key).Field("data").([]any)[0]), shown)
	}

	// A service company's integration sees no node of its customer.
	order := h.As("erp", http.MethodPost, "/work-orders", object{"inventory_id": h.ID("ahu1"), "title": "x", "assignees": h.ids("polar")}).
		Want(http.StatusCreated, "").Text("id")
	want(t, "a service company's work order", node(h.dispatch(http.MethodGet, "/work-orders/"+order, nil).Want(http.StatusOK, "").Field()), unit)

	h.Exec(`UPDATE inventory_nodes SET name = 'Plant' WHERE id = $1`, h.ID("hvac"))
	claim, err := h.Webhooks.Claim(t.Context(), h.Holder("erp_hook"), webhooks.ClaimRequest{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, d := range claim.Deliveries {
		var body struct {
			Data struct {
				WorkOrder object `json:"work_order"`
			}
		}
		if err := json.Unmarshal(d.Body, &body); err != nil {
			t.Fatal(err)
		}
		if body.Data.WorkOrder["id"] == order {
			seen = true
			want(t, "the delivery shows the node as it is now", node(body.Data.WorkOrder), `{"id":"ahu1","kind":"equipment","name":"AHU 1","external_id":"AHU-1","path":[`+
				`{"id":"hq","kind":"location","name":"Headquarters"},{"id":"hvac","kind":"system","name":"Plant"}]}`)
		}
	}
	want(t, "the work order is delivered", seen, true)
}

// orderedNode is a node reference whose JSON has its fields in the documented order.
func orderedNode(reference object) any {
	type pathNode struct {
		ID   any `json:"id"`
		Kind any `json:"kind"`
		Name any `json:"name"`
	}
	path := []pathNode{}
	above, _ := reference["path"].([]any)
	for _, node := range above {
		n, _ := node.(object)
		path = append(path, pathNode{n["id"], n["kind"], n["name"]})
	}
	return struct {
		ID         any        `json:"id"`
		Kind       any        `json:"kind"`
		Name       any        `json:"name"`
		ExternalID any        `json:"external_id"`
		Path       []pathNode `json:"path"`
	}{reference["id"], reference["kind"], reference["name"], reference["external_id"], path}
}
