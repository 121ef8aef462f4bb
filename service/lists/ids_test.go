package lists_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"millwright/service/lists"
	"millwright/service/servicetest"
)

// A list by ids returns exactly what single reads of the same ids return, if its other
// filters allow it: in the list's order, for any reader, page by page.
func TestListsByIDsReturnWhatSingleReadsReturn(t *testing.T) {
	f := servicetest.New(t)
	random := servicetest.Seeded(t)
	nodes := servicetest.PlantTree(t, f, random, 330)
	readers := servicetest.HandOutRights(f, random, nodes)
	servicetest.WriteRecords(t, f, random, nodes, readers, 90)
	f.WaitForOpenTransactions()
	kinds := append(recordKinds(f, random, nodes), catalogKinds(f)...)
	ids := map[string][]string{}
	var others []string
	for _, r := range kinds {
		if ids[r.Table] == nil {
			for _, row := range servicetest.RowsOf(t, f, `SELECT json_build_object('id', id) FROM `+r.Table+` ORDER BY id`) {
				ids[r.Table] = append(ids[r.Table], servicetest.Read[servicetest.Identified](t, row).ID)
			}
			others = append(others, ids[r.Table]...)
		}
	}
	others = append(others, "wo_"+strings.Repeat("7", 26), "iss_"+strings.Repeat("0", 26), f.ID("polar"))
	listed, left := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := rapid.SampledFrom(kinds).Draw(rt, "kind")
		reader := rapid.SampledFrom(readers).Draw(rt, "reader")
		asked := rapid.SliceOfN(rapid.SampledFrom(ids[r.Table]), 1, 20).Draw(rt, "ids")
		asked = append(asked, rapid.SliceOfN(rapid.SampledFrom(others), 0, 4).Draw(rt, "other ids")...)
		request := lists.ListRequest{Limit: rapid.IntRange(1, 9).Draw(rt, "limit"), IDs: asked}
		order := "r.id DESC"
		if rapid.Bool().Draw(rt, "changes") {
			order, request.ChangedSince = "r.changed_xid, r.id", "2020-01-01T00:00:00Z"
		}
		r.Only += ` AND r.id IN ('` + strings.Join(asked, `', '`) + `')`
		want, wantBodies := r.Naive(t, f, f.Actor(reader), order, map[string]string{})
		got, bodies := r.Walk(t, f.Actor(reader), request)
		if !slices.Equal(got, want) || !slices.Equal(bodies, wantBodies) {
			rt.Fatalf("%s of %s: asked for %v\nlisted\n%v\nreadable\n%v", r.Name, reader, asked, bodies, wantBodies)
		}
		listed += len(got)
		left += len(asked) - len(got)
	})
	if listed == 0 || left == 0 {
		t.Errorf("%d records were listed and %d were not, want some of both", listed, left)
	}
}

// catalogKinds are the kinds of records that every integration of an organization may read.
func catalogKinds(f *servicetest.Fixture) []servicetest.RecordKind {
	return []servicetest.RecordKind{
		{Name: "forms", Table: "forms", List: f.Inventory.Forms, One: f.Inventory.Form, Only: `true`},
		{Name: "people", Table: "identities", List: f.People.List, One: f.People.Person, Only: `true`},
		{Name: "teams", Table: "identities", List: f.People.Teams, One: f.People.Team, Only: `true`},
	}
}
