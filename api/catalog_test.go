package api_test

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"millwright/api/apitest"
)

// inventoryPaths maps the list of each kind to the fixture's nodes of that kind.
var inventoryPaths = map[string][]string{
	"/locations":     {"hq", "roof", "annex"},
	"/systems":       {"hvac", "mast"},
	"/equipment":     {"ahu1"},
	"/sub-equipment": {"fan1"},
}

// keysIn returns the keys of the records in a list, sorted; records without a key are
// returned by id.
func keysIn(s *apitest.Server, as, path string, keys ...string) []string {
	names := map[string]string{}
	for _, key := range keys {
		names[s.ID(key)] = key
	}
	found := []string{}
	for _, record := range s.As(as, http.MethodGet, path, nil).Want(http.StatusOK, "").Field("data").([]any) {
		id := record.(object)["id"].(string)
		if name, ok := names[id]; ok {
			id = name
		}
		found = append(found, id)
	}
	slices.Sort(found)
	return found
}

func TestInventoryRecords(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE inventory_nodes SET description = 'Supply fan' WHERE id = $1`, s.ID("fan1"))
	for key, want := range map[string]object{
		"fan1": {"kind": "sub_equipment", "parent_id": s.ID("ahu1"), "name": "Fan 1", "description": "Supply fan", "external_id": nil, "retired": false,
			"ancestors": []any{s.ID("hq"), s.ID("hvac"), s.ID("ahu1")}},
		"ahu1": {"kind": "equipment", "parent_id": s.ID("hvac"), "name": "AHU 1", "description": nil, "external_id": "AHU-1", "retired": false,
			"ancestors": []any{s.ID("hq"), s.ID("hvac")}},
		"mast": {"kind": "system", "parent_id": s.ID("roof"), "name": "Mast", "description": nil, "external_id": nil, "retired": false,
			"ancestors": []any{s.ID("hq"), s.ID("roof")}},
		"hq": {"kind": "location", "parent_id": nil, "name": "Headquarters", "description": nil, "external_id": "HQ", "retired": false, "ancestors": []any{}},
	} {
		for path, keys := range inventoryPaths {
			if !slices.Contains(keys, key) {
				continue
			}
			record := s.As("erp", http.MethodGet, path+"/"+s.ID(key), nil).Want(http.StatusOK, "").Field().(object)
			want["id"], want["created_at"], want["changed_at"] = s.ID(key), "2026-03-02T12:15:30.000Z", record["changed_at"]
			if !reflect.DeepEqual(record, want) {
				t.Errorf("%s is\n%v, want\n%v", key, record, want)
			}
		}
	}
}

func TestInventoryFilters(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`UPDATE inventory_nodes SET external_id = 'KÜ-7' WHERE id = $1`, s.ID("mast"))
	for query, listed := range map[string][]string{
		"/systems?external_id=" + url.QueryEscape(norm.NFD.String("KÜ-7")): {"mast"},
		"/locations?parent_id=" + s.ID("hq"):                               {"roof"},
		"/systems?parent_id=" + s.ID("hq"):                                 {"hvac"},
		"/systems?parent_id=" + s.ID("roof"):                               {"mast"},
		"/sub-equipment?parent_id=" + s.ID("ahu1"):                         {"fan1"},
		"/equipment?external_id=AHU-1":                                     {"ahu1"},
		"/equipment?external_id=ahu-1":                                     {},
		"/equipment?external_id=AHU-1&parent_id=" + s.ID("hq"):             {},
		"/locations?parent_id=loc_00000000000000000000000000":              {},
		"/locations?external_id=" + url.QueryEscape("' OR true --"):        {},
	} {
		wantList(t, query, keysIn(s, "erp", query, "hq", "roof", "hvac", "mast", "ahu1", "fan1"), listed)
	}
	for _, query := range []string{"/systems?parent=x", "/systems?parent_id=%00", "/systems?external_id=%ff", "/systems?kind=location"} {
		s.As("erp", http.MethodGet, query, nil).Want(http.StatusBadRequest, "invalid_request")
	}
}

func TestUnknownRecords(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	s.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at)
		VALUES ('frm_00000000000000000000000007', $1, 'Foreign', now(), now())`, s.Polar.OrganizationID)
	const unknown = "00000000000000000000000000"
	odd := []string{"nonsense", "%00", "%ff", "%2F", "..%2f..", "'", strings.Repeat("x", 5000), strings.Repeat("%F0%9F%98%80", 300)}
	paths := map[string][]string{
		"/locations":     {"loc_" + unknown, s.ID("hvac"), s.ID("ahu1"), s.ID("annex"), s.ID("depot"), strings.ToUpper(s.ID("hq")), s.ID("hq") + "x"},
		"/systems":       {"sys_" + unknown, s.ID("hq"), s.ID("ahu1"), strings.Replace(s.ID("hq"), "loc_", "sys_", 1)},
		"/equipment":     {"eqp_" + unknown, s.ID("hq"), s.ID("fan1")},
		"/sub-equipment": {"sub_" + unknown, s.ID("ahu1"), s.ID("hvac")},
		"/forms":         {"frm_" + unknown, s.ID("q_state"), s.ID("erp"), "frm_00000000000000000000000007"},
		"/work-orders":   {"wo_" + unknown, "iss_" + unknown},
		"/issues":        {"iss_" + unknown, "wo_" + unknown},
		"/people":        {"idn_" + unknown, s.ID("crew"), s.ID("erp"), s.ID("pia"), s.Acme.OrganizationID},
		"/teams":         {"idn_" + unknown, s.ID("ann"), s.ID("erp"), s.Acme.OrganizationID},
	}
	var first string
	for path, ids := range paths {
		for _, id := range append(ids, odd...) {
			response := s.As("erp", http.MethodGet, path+"/"+id, nil).Want(http.StatusNotFound, "not_found")
			body := strings.ReplaceAll(string(response.Body), response.Text("request_id"), "")
			if first == "" {
				first = body
			}
			if body != first {
				t.Errorf("%s/%.40s differs from the other 404:\n%s\n%s", path, id, body, first)
			}
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	// The position determines the order, not the time of creation.
	s.Exec(`UPDATE questions SET position = -1 WHERE id = $1`, s.ID("q_note"))
	s.Exec(`UPDATE question_options SET position = -1 WHERE id = $1`, s.ID("o_filter"))
	choice := func(key, label string) any { return object{"id": s.ID(key), "label": label} }
	question := func(key, label, kind string, required bool, options ...any) any {
		return object{"id": s.ID(key), "label": label, "type": kind, "required": required, "options": append([]any{}, options...)}
	}
	form := object{
		"id": s.ID("inspection"), "name": "Inspection", "retired": false,
		"created_at": "2026-03-02T12:15:30.000Z", "changed_at": "2026-03-02T12:15:30.000Z",
		"questions": []any{
			question("q_note", "Note", "text", false),
			question("q_state", "Filter state", "single_choice", true, choice("o_ok", "OK"), choice("o_dirty", "Dirty")),
			question("q_parts", "Parts used", "multiple_choice", false, choice("o_filter", "Filter"), choice("o_belt", "Belt")),
			question("q_hours", "Running hours", "integer", true),
			question("q_pressure", "Pressure drop", "decimal", false),
		},
	}
	if got := s.As("erp", http.MethodGet, "/forms/"+s.ID("inspection"), nil).Want(http.StatusOK, "").Field(); !reflect.DeepEqual(got, any(form)) {
		t.Errorf("the form is\n%v, want\n%v", got, form)
	}
	if data := s.As("erp", http.MethodGet, "/forms", nil).Want(http.StatusOK, "").Field("data"); !reflect.DeepEqual(data, any([]any{form})) {
		t.Errorf("the list is\n%v, want the form alone as it is read", data)
	}
	s.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) VALUES ('frm_00000000000000000000000001', $1, 'Empty', now(), now())`,
		s.Acme.OrganizationID)
	want(t, "questions of a form without any", len(s.As("erp", http.MethodGet, "/forms/frm_00000000000000000000000001", nil).Field("questions").([]any)), 0)
}

func TestPeopleAndTeamsAreOfTheOwnOrganization(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	people := []string{"ann", "bob", "cat", "dan", "eve", "zed", "pia"}
	wantList(t, "the people: the organization's, and no integration or team", keysIn(s, "erp", "/people", people...), people[:6])
	wantList(t, "the teams", keysIn(s, "erp", "/teams", "crew"), []string{"crew"})
	const at = "2026-03-02T12:15:30.000Z"
	for path, want := range map[string]object{
		"/people/" + s.ID("ann"): {"id": s.ID("ann"), "name": "Ann Field", "email": "ann@acme.example.com", "phone": "+12025550101",
			"teams": []any{}, "active": true, "created_at": at, "changed_at": at},
		"/people/" + s.ID("bob"): {"id": s.ID("bob"), "name": "Bob Stone", "email": "bob@acme.example.com", "phone": nil,
			"teams": []any{s.ID("crew")}, "active": true, "created_at": at, "changed_at": at},
	} {
		if got := s.As("erp", http.MethodGet, path, nil).Want(http.StatusOK, "").Field(); !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s is\n%v, want\n%v", path, got, want)
		}
	}
	members := []any{s.ID("bob"), s.ID("dan")}
	slices.SortFunc(members, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	team := s.As("erp", http.MethodGet, "/teams/"+s.ID("crew"), nil).Want(http.StatusOK, "")
	if !reflect.DeepEqual(team.Field("members"), any(members)) || team.Text("name") != "Crew" {
		t.Errorf("the crew is %s, want the members %v", team.Body, members)
	}
}
