package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"millwright/service/servicetest"
)

// Text that shows nothing is blank wherever something is required (api.md 2.9). The cases are
// the strings of the document's request bodies, so that none is left out.
func TestBlankTextInEveryField(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Exec(`UPDATE questions SET required = (id = $1) WHERE form_id = $2`, h.ID("q_note"), h.ID("inspection"))
	order := "/work-orders/" + h.inspection(nil)
	created := object{"inventory_id": h.ID("ahu1"), "title": "Replace filter"}
	issue := object{"inventory_id": h.ID("ahu1"), "subject": "It squeaks"}
	const kept = "" // what only describes a record may be blank
	cases := map[string]struct {
		body  func(blank string) object
		field string
	}{
		"POST /work-orders inventory_id":                 {in(created, "inventory_id"), "/inventory_id unknown"},
		"POST /work-orders title":                        {in(created, "title"), "/title blank"},
		"POST /work-orders description":                  {in(created, "description"), kept},
		"POST /work-orders priority":                     {in(created, "priority"), "/priority not_one_of"},
		"POST /work-orders target_date":                  {in(created, "target_date"), "/target_date type"},
		"POST /work-orders form_id":                      {in(created, "form_id"), "/form_id unknown"},
		"POST /work-orders external_id":                  {in(created, "external_id"), "/external_id blank"},
		"POST /work-orders assignees/0":                  {listIn(created, "assignees"), "/assignees/0 unknown"},
		"POST /work-orders consultants/0":                {listIn(created, "consultants"), "/consultants/0 unknown"},
		"PATCH /work-orders/{id} title":                  {in(object{}, "title"), "/title blank"},
		"PATCH /work-orders/{id} priority":               {in(object{}, "priority"), "/priority not_one_of"},
		"PATCH /work-orders/{id} target_date":            {in(object{}, "target_date"), "/target_date type"},
		"PATCH /work-orders/{id} external_id":            {in(object{}, "external_id"), "/external_id blank"},
		"PATCH /work-orders/{id} description":            {in(object{}, "description"), kept},
		"POST /work-orders/{id}/assignees assignees/0":   {listIn(object{}, "assignees"), "/assignees/0 unknown"},
		"POST /work-orders/{id}/assignees consultants/0": {listIn(object{}, "consultants"), "/consultants/0 unknown"},
		"POST /work-orders/{id}/cancel reason":           {in(object{}, "reason"), kept},
		"POST /work-orders/{id}/answers answers/0/question_id": {func(blank string) object {
			return object{"answers": []any{object{"question_id": blank, "value": "x"}}}
		}, "/answers/0/question_id unknown"},
		"POST /work-orders/{id}/answers answers/0/value": {func(blank string) object {
			return object{"complete": true, "answers": []any{h.to("q_note", blank)}}
		}, "/answers/0/value value"},
		"POST /issues inventory_id": {in(issue, "inventory_id"), "/inventory_id unknown"},
		"POST /issues subject":      {in(issue, "subject"), "/subject blank"},
		"POST /issues description":  {in(issue, "description"), kept},
		"POST /issues external_id":  {in(issue, "external_id"), "/external_id blank"},
	}
	var documented []string
	for _, op := range h.Document.Operations() {
		if op.Body != nil {
			documented = append(documented, stringsOf(h, op.Method+" "+op.Path+" ", op.Body)...)
		}
	}
	if listed := slices.Sorted(maps.Keys(cases)); !slices.Equal(listed, slices.Sorted(slices.Values(documented))) {
		t.Errorf("the cases are\n%s\nthe strings of the document\n%s", strings.Join(listed, "\n"), strings.Join(slices.Sorted(slices.Values(documented)), "\n"))
	}
	blank := servicetest.Invisible["several kinds"] // models has tests of each
	for name, test := range cases {
		method, rest, _ := strings.Cut(name, " ")
		path, _, _ := strings.Cut(rest, " ")
		path = strings.Replace(path, "/work-orders/{id}", order, 1)
		if strings.HasSuffix(path, "/cancel") {
			path = "/work-orders/" + h.inspection(nil) + "/cancel"
		}
		response := h.As("erp", method, path, test.body(blank))
		if test.field == kept {
			want(t, name+" is accepted", response.Status < 300, true)
			continue
		}
		first := response.Want(http.StatusUnprocessableEntity, "validation_failed").Field("errors").([]any)[0].(object)
		want(t, name, first["pointer"].(string)+" "+first["code"].(string), test.field)
	}
	h.As("erp", http.MethodPost, order+"/answers", object{"complete": true, "answers": []any{}}).Want(http.StatusUnprocessableEntity, "rule_violation")
}

// in returns bodies with a blank string in a field.
func in(body object, field string) func(string) object {
	return func(blank string) object { return with(body, object{field: blank}) }
}

// listIn returns bodies with a blank string in a list.
func listIn(body object, field string) func(string) object {
	return func(blank string) object { return with(body, object{field: []string{blank}}) }
}

// stringsOf returns the paths of the strings in a body with the schema.
func stringsOf(h harness, path string, schema any) (found []string) {
	resolved, _ := h.Document.Resolve(schema).(object)
	one, _ := resolved["type"].(string)
	several, _ := resolved["type"].([]any)
	if anyOf, _ := resolved["anyOf"].([]any); one == "string" || slices.Contains(several, any("string")) || len(anyOf) > 0 {
		return []string{path}
	}
	if items, list := resolved["items"]; list {
		return stringsOf(h, path+"/0", items)
	}
	properties, _ := resolved["properties"].(object)
	for name, property := range properties {
		below := path + name
		if !strings.HasSuffix(path, " ") {
			below = path + "/" + name
		}
		found = append(found, stringsOf(h, below, property)...)
	}
	return found
}
