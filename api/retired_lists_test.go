package api_test

import (
	"fmt"
	"slices"
	"testing"

	"millwright/api/apitest"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Forms and nodes that are retired, or come back, are reported as changed and show it. Lists of nodes keep them; the
// list of forms has those that a new work order can have (api.md 4.2, 4.14).
func TestRetiredFormsAndNodes(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	h, ann := harness{s}, servicetest.Person(t, s.Fixture, "ann")
	importForm := func(retired bool) error {
		_, err := s.Imports.Run(t.Context(), fmt.Appendf(nil, "organization: {key: acme}\nforms: [{key: inspection, retired: %v}]", retired))
		return err
	}
	type resource struct {
		path, key string
		listed    bool // while it is retired
	}
	all := []resource{
		{"/forms", "inspection", false},
		{"/sub-equipment", "fan1", true},
		{"/equipment", "ahu1", true}, // after what is below it
		{"/systems", "mast", true},
		{"/locations", "roof", true},
	}
	tokens := map[string]string{}
	for _, r := range all {
		_, tokens[r.path] = h.followChanges(t, r.path, longAgo, "50")
	}
	check := func(r resource, retired bool) {
		t.Helper()
		id, page := s.ID(r.key), h.list(r.path, "changed_since", tokens[r.path])
		tokens[r.path] = page.Text("sync_token")
		wantList(t, r.key+": the changes", idsOf(t, page, true), []string{id})
		want(t, r.key+" is listed", slices.Contains(idsOf(t, h.list(r.path), false), id), r.listed || !retired)
		want(t, r.key+" by itself is retired", h.list(r.path+"/"+id).Field("retired"), any(retired))
		for _, found := range []apitest.Response{
			page, h.list(r.path, "changed_since", longAgo), h.list(r.path, "id", id), h.list(r.path, "id", id, "changed_since", longAgo),
		} {
			isIt := func(one any) bool { return one.(object)["id"] == id && one.(object)["retired"] == retired }
			want(t, r.key+" is found", slices.ContainsFunc(found.Field("data").([]any), isIt), true)
		}
	}
	for _, retire := range []bool{true, false} {
		if !retire {
			slices.Reverse(all[1:]) // a node comes back after what is above it
		}
		for _, r := range all {
			s.WaitForOpenTransactions()
			var err error
			switch {
			case r.path == "/forms":
				err = importForm(retire)
			case retire:
				err = s.Inventory.RetireNode(t.Context(), ann, store.NoKey, s.ID(r.key))
			default:
				err = s.Inventory.BringNodeBack(t.Context(), ann, store.NoKey, s.ID(r.key))
			}
			if err != nil {
				t.Fatal(err)
			}
			s.WaitForOpenTransactions()
			check(r, retire)
		}
	}
}
