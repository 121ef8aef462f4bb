package inventory_test

import (
	"strconv"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/servicetest"
)

// plantInventory inserts 20,000 nodes next to the fixture's: 10 buildings with 8 systems each,
// and units below these, and 4,000 rooms of one building. Ann manages all of it; bob has
// permissions on 1,000 rooms, each assigned alone, eve on one.
func plantInventory(f *servicetest.Fixture) {
	id := func(kind, n string) string { return `'` + kind + `_' || lpad((` + n + `)::text, 26, '0')` }
	for _, insert := range []struct{ id, kind, parent, name, numbers string }{
		{id("loc", "n"), "location", "$2::text", `'Building ' || n`, "1, 10"},
		{id("sys", "n"), "system", id("loc", "n % 10 + 1"), `'Ventilation ' || n`, "1, 80"},
		{id("eqp", "n"), "equipment", id("sys", "n % 80 + 1"), `'Air handling unit ' || n`, "1, 8000"},
		{id("eqp", "n"), "equipment", id("sys", "n % 80 + 1"), `'Pump ' || n`, "8001, 15910"},
		{id("loc", "n"), "location", id("loc", "1"), `'Room ' || n`, "1001, 5000"},
	} {
		f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, external_id, created_at, changed_at)
			SELECT `+insert.id+`, $1, '`+insert.kind+`', `+insert.parent+`, `+insert.name+`, upper(left(`+insert.name+`, 2)) || '-' || n, now(), now()
			FROM generate_series(`+insert.numbers+`) n WHERE $2 <> ''`, f.Acme.OrganizationID, f.ID("hq"))
	}
	f.Exec(`DELETE FROM assignments WHERE identity_id = ANY ($1)`, []string{f.ID("bob"), f.ID("eve"), f.ID("crew")})
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
		SELECT n.id, who, $3, $4 FROM inventory_nodes n, unnest(ARRAY[$1, $2]) who
		WHERE name LIKE 'Room %' AND n.id < (CASE WHEN who = $1 THEN 'loc_00000000000000000000002001' ELSE 'loc_00000000000000000000001002' END)`,
		f.ID("bob"), f.ID("eve"), f.ID("reading"), f.Acme.OrganizationID)
	f.Exec(`VACUUM ANALYZE`)
}

// BenchmarkNodeSearch measures searches of 20,000 nodes.
//
//	go test ./service -run '^$' -bench NodeSearch -benchtime 100x
func BenchmarkNodeSearch(b *testing.B) {
	f := servicetest.New(b)
	plantInventory(f)
	for _, search := range []struct{ name, who, text string }{
		{"one of a manager", "cat", "pump 8123"}, {"common of a manager", "cat", "a"}, {"common of an administrator", "ann", "a"},
		{"none", "cat", "nowhere"}, {"code", "cat", "pu-8123"}, {"common of 1000 nodes", "bob", "a"}, {"one of 1000 nodes", "bob", "room 1500"},
		{"common of one node", "eve", "a"}, {"common of none", "zed", "a"},
	} {
		b.Run(search.name, func(b *testing.B) {
			actor := servicetest.Person(b, f, search.who)
			servicetest.BenchReads(b, f, func() error {
				_, err := f.Inventory.SearchNodes(b.Context(), actor, inventory.NodeSearch{Text: search.text, Limit: models.DefaultPageSize + 1})
				return err
			})
		})
	}
}

// BenchmarkInventoryLevel measures pages of levels of that inventory.
//
//	go test ./service -run '^$' -bench InventoryLevel -benchtime 100x
func BenchmarkInventoryLevel(b *testing.B) {
	f := servicetest.New(b)
	plantInventory(f)
	room := "loc_00000000000000000000000001"
	for _, level := range []struct {
		name, who string
		level     inventory.NodeLevel
	}{
		{"top of an administrator", "ann", inventory.NodeLevel{}}, {"top of a manager", "cat", inventory.NodeLevel{}}, {"top of 1000 nodes", "bob", inventory.NodeLevel{}},
		{"4000 rooms", "cat", inventory.NodeLevel{ParentID: room}}, {"the middle of 4000 rooms", "cat", inventory.NodeLevel{ParentID: room, AfterName: "Room 3000", AfterID: "loc_"}},
	} {
		b.Run(level.name, func(b *testing.B) {
			actor := servicetest.Person(b, f, level.who)
			level.level.Limit = models.DefaultPageSize + 1
			servicetest.BenchReads(b, f, func() error {
				return servicetest.ErrorOf(f.Inventory.Level(b.Context(), actor, level.level))
			})
		})
	}
}

// BenchmarkForms measures pages of forms of 20 questions with 4 options each.
//
//	go test ./service/inventory -run '^$' -bench Forms -benchtime 100x
func BenchmarkForms(b *testing.B) {
	f := servicetest.New(b)
	const form, question = `'frm_' || lpad(n::text, 26, '0')`, `'qst_' || lpad((n * 100 + q)::text, 26, '0')`
	f.Exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) SELECT `+form+`, $1, 'Inspection ' || n, now(), now()
		FROM generate_series(1, 250) n`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO questions (id, form_id, position, label, type, required)
		SELECT ` + question + `, ` + form + `, q, 'Which state has part ' || q || '?', 'single_choice', true
		FROM generate_series(1, 250) n, generate_series(1, 20) q`)
	f.Exec(`INSERT INTO question_options (id, question_id, position, label)
		SELECT 'opt_' || lpad((n * 1000 + q * 10 + o)::text, 26, '0'), ` + question + `, o, 'State ' || o
		FROM generate_series(1, 250) n, generate_series(1, 20) q, generate_series(1, 4) o`)
	f.Exec(`VACUUM ANALYZE`)
	for _, limit := range []int{50, 200} {
		b.Run(strconv.Itoa(limit), func(b *testing.B) {
			servicetest.BenchReads(b, f, func() error {
				return servicetest.ErrorOf(f.Inventory.Forms(b.Context(), f.Actor("erp"), lists.ListRequest{Limit: limit}))
			})
		})
	}
}
