package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// levelOf reads a level in pages of two and returns its names; + is at those that open.
func levelOf(t *testing.T, f *servicetest.Fixture, who, parent string) string {
	t.Helper()
	level, names := inventory.NodeLevel{Limit: 2}, []string{}
	if parent != "" {
		level.ParentID = f.ID(parent)
	}
	for range 20 {
		found, err := f.Inventory.Level(t.Context(), servicetest.Person(t, f, who), level)
		if err != nil {
			return string(models.CodeOf(err))
		}
		for _, n := range found {
			name := n.Name
			if n.Opens {
				name += "+"
			}
			names = append(names, name)
		}
		if len(found) < 2 {
			break
		}
		level.AfterName, level.AfterID = found[1].Name, found[1].ID
	}
	return strings.Join(names, ", ")
}

// The tree has every node that a person sees once: at the top those whose parent it does not
// see, below each node those directly below.
func TestLevelsOfTheInventory(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	assign := func(who, node, definition string) {
		f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, f.ID(node), f.ID(who), f.ID(definition), f.Acme.OrganizationID)
	}
	f.Exec(`DELETE FROM assignments WHERE identity_id = $1`, f.ID("cat"))
	assign("cat", "roof", "here_only") // not the mast
	assign("cat", "ahu1", "reading")
	assign("eve", "hq", "here_only") // hq alone, and two directly below
	assign("eve", "roof", "reading")
	assign("eve", "hvac", "here_only")
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("dan"))
	f.Exec(`UPDATE inventory_nodes SET name = 'ROOF' WHERE id = $1`, f.ID("roof"))
	f.Exec(`INSERT INTO permission_definitions (id, organization_id, name, applies_below, grants) VALUES ('def_00000000000000000000000001', $1, 'None', true, '{}')`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, 'def_00000000000000000000000001', $3)`, f.ID("hq"), f.ID("zed"), f.Acme.OrganizationID)
	for _, test := range []struct{ who, parent, want string }{
		{"ann", "", "Annex, Headquarters+"}, {"dan", "", "Annex, Headquarters+"}, {"bob", "", "Headquarters+"},
		{"bob", "hq", "HVAC+, ROOF+"}, {"bob", "hvac", "AHU 1+"}, {"bob", "ahu1", "Fan 1"}, {"bob", "fan1", ""}, {"bob", "annex", "not_found"},
		{"dan", "annex", ""}, {"dan", "roof", "Mast"},
		{"cat", "", "AHU 1+, ROOF"}, {"cat", "ahu1", "Fan 1"}, {"cat", "roof", ""}, {"cat", "hq", "not_found"}, {"cat", "mast", "not_found"},
		{"eve", "", "Annex, Headquarters+"}, {"eve", "hq", "HVAC, ROOF+"}, {"eve", "roof", "Mast"}, {"eve", "hvac", ""},
		{"zed", "", ""}, {"zed", "hq", "not_found"},
		{"pia", "", "Depot"}, {"pia", "ahu1", "not_found"}, {"pia", "hq", "not_found"}, {"ann", "depot", "not_found"},
	} {
		servicetest.Expect(t, test.who+" below "+test.parent, levelOf(t, f, test.who, test.parent), test.want)
	}
	if found, _ := f.Inventory.Level(t.Context(), servicetest.Person(t, f, "cat"), inventory.NodeLevel{}); len(found) != 2 || len(found[0].Path) != 2 || found[0].Path[1].Name != "HVAC" {
		t.Errorf("the top of cat is %+v", found)
	}
	for _, bad := range []inventory.NodeLevel{{ParentID: "x"}, {ParentID: "loc_\xff"}, {ParentID: f.ID("ann")}} {
		if _, err := f.Inventory.Level(t.Context(), servicetest.Person(t, f, "ann"), bad); models.CodeOf(err) != models.CodeNotFound {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Numbers in names count as numbers, and letters sort as in dictionaries, in every list of nodes.
func TestNodesAreInNaturalOrder(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, parent_id, kind, name, created_at, changed_at)
		SELECT 'loc_0000000000000000000000000' || n, $1, $2, 'location', name, now(), now()
		FROM unnest(ARRAY['Room 10', 'Zone 1', 'room 9', 'Room 2', 'Ätna', 'Room 2b', 'Room 100', 'Room 1.10', 'Room 1.9']) WITH ORDINALITY u (name, n)`, f.Acme.OrganizationID, f.ID("annex"))
	const want = "Ätna, Room 1.9, Room 1.10, Room 2, Room 2b, room 9, Room 10, Room 100, Zone 1"
	servicetest.Expect(t, "the level", levelOf(t, f, "ann", "annex"), want)
	creatable, err := f.Records.CreatableNodes(t.Context(), servicetest.Person(t, f, "eve"), f.ID("annex"), "")
	servicetest.Must(t, err)
	names := servicetest.Listed(creatable.Nodes, func(n records.CreatableNode) string { return n.Name })
	servicetest.Expect(t, "the creatable nodes", names, want)
	creatable, err = f.Records.CreatableNodes(t.Context(), servicetest.Person(t, f, "eve"), f.ID("annex"), creatable.Nodes[6].ID)
	if err != nil || len(creatable.Nodes) != 2 || creatable.Nodes[0].Name != "Room 100" {
		t.Errorf("the next page is %+v (%v)", creatable.Nodes, err)
	}
	// A place that she does not see is unknown: a page after it would tell how its name sorts.
	for _, unseen := range []string{f.ID("hq"), "loc_00000000000000000000000zzz"} {
		creatable, err = f.Records.CreatableNodes(t.Context(), servicetest.Person(t, f, "eve"), f.ID("annex"), unseen)
		if err != nil || len(creatable.Nodes) != 0 {
			t.Errorf("the page after %s is %+v (%v)", unseen, creatable.Nodes, err)
		}
	}
	found, err := f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, "ann"), inventory.NodeSearch{Text: "room"})
	servicetest.Must(t, err)
	servicetest.Expect(t, "found", namesOf(found), "Room 1.9, Room 1.10, Room 2, Room 2b, room 9, Room 10, Room 100")
}

// A person sees of a node what it is, where, and what it may do there.
func TestANodeOfAPerson(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed"))
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, f.ID("ahu1"), f.ID("eve"), f.ID("creating"), f.Acme.OrganizationID)
	for _, test := range []struct{ who, node, want string }{
		{"bob", "ahu1", "[Headquarters true, HVAC true] [inventory.read] false"},
		{"eve", "ahu1", "[Headquarters false, HVAC false] [feedback.create inventory.read work_orders.create] false"},
		{"zed", "ahu1", "[Headquarters true, HVAC true] [] true"},
		{"eve", "annex", "[] [feedback.create feedback.read feedback.resolve inventory.read work_orders.create work_orders.delete work_orders.forward work_orders.read work_orders.update] true"},
		{"eve", "hq", "not_found"}, {"pia", "ahu1", "not_found"}, {"ann", "depot", "not_found"}, {"pia", "depot", "[] [inventory.read work_orders.create work_orders.delete work_orders.forward work_orders.read work_orders.update] true"},
	} {
		node, err := f.Inventory.NodeForPerson(t.Context(), servicetest.Person(t, f, test.who), f.ID(test.node))
		path := servicetest.Listed(node.Path, func(n inventory.SeenNode) string { return fmt.Sprint(n.Name, " ", n.Seen) })
		got := fmt.Sprintf("[%s] %v %v", path, node.Grants, node.MayAssign)
		if err != nil {
			got = string(models.CodeOf(err))
		}
		servicetest.Expect(t, test.who+" of "+test.node, got, test.want)
	}
	if _, err := f.Inventory.NodeForPerson(t.Context(), servicetest.Person(t, f, "ann"), "x"); models.CodeOf(err) != models.CodeNotFound {
		t.Errorf("no id: %v", err)
	}
	for what, read := range map[string]func() error{
		"a node": func() error { _, err := f.Inventory.NodeForPerson(t.Context(), f.Actor("erp"), f.ID("hq")); return err },
		"a level": func() error {
			return servicetest.ErrorOf(f.Inventory.Level(t.Context(), f.Actor("erp"), inventory.NodeLevel{}))
		},
		"assignees": func() error {
			return servicetest.ErrorOf(f.Records.Assignees(t.Context(), f.Actor("erp"), f.ID("hq"), records.AssigneePage{}))
		},
		"choices": func() error { _, err := f.Records.AssigneeChoices(t.Context(), f.Actor("erp"), f.ID("hq")); return err },
		"effects": func() error {
			return servicetest.ErrorOf(f.Pages.AssignmentEffects(t.Context(), f.Actor("erp"), f.ID("hq"), f.ID("bob")))
		},
	} {
		if err := read(); models.CodeOf(err) != models.CodePermissionDenied {
			t.Errorf("an integration reads %s: %v", what, err)
		}
	}
}

// The newest work orders and feedback of a node are those that the person may read, with
// those below.
func TestRecordsOfANode(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	for i, node := range []string{"hq", "ahu1", "annex"} {
		f.Clock.Advance(time.Second)
		if _, err := f.Records.CreateWorkOrder(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("hq"), Title: fmt.Sprint(i, " ", node), Assignees: []string{f.ID("ann")}}); err != nil {
			t.Fatal(err)
		}
		f.Exec(`UPDATE work_orders SET inventory_id = $1 WHERE title = $2`, f.ID(node), fmt.Sprint(i, " ", node))
	}
	if _, err := f.Records.CreateFeedback(t.Context(), servicetest.Person(t, f, "ann"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ who, node, want string }{
		{"ann", "hq", "1 ahu1, 0 hq / Noise"}, {"ann", "hvac", "1 ahu1 / Noise"}, {"ann", "roof", " / "}, {"bob", "hq", " / "}, {"eve", "annex", "2 annex / "},
	} {
		orders, err := f.Pages.NodeWorkOrders(t.Context(), servicetest.Person(t, f, test.who), f.ID(test.node))
		servicetest.Must(t, err)
		given, err := f.Pages.NodeFeedback(t.Context(), servicetest.Person(t, f, test.who), f.ID(test.node))
		servicetest.Must(t, err)
		titles := servicetest.Listed(orders, func(w models.WorkOrderRecord) string { return w.Title })
		subjects := servicetest.Listed(given, func(f models.FeedbackRecord) string { return f.Subject })
		servicetest.Expect(t, test.who+" at "+test.node, titles+" / "+subjects, test.want)
	}
}

// A page of a level with thousands of nodes reads about as much as it shows, wherever it
// begins, and a search reads no other organization's nodes. So do plans that were made while
// there were few nodes.
func TestLevelsAreReadAlongAnIndex(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`VACUUM ANALYZE`)
	ann, bob, pia := servicetest.Person(t, f, "ann"), servicetest.Person(t, f, "bob"), servicetest.Person(t, f, "pia")
	reads, filled := map[string]servicetest.BoundedRead{}, false
	add := func(name string, want int, read func() (int, error)) {
		reads[name] = servicetest.BoundedRead{Tables: []string{"inventory_nodes", "inventory_closure", "assignments"}, Most: 300, Pages: 200, Do: func() error {
			found, err := read()
			if filled {
				servicetest.Expect(t, name, found, want)
			}
			return err
		}}
	}
	level := func(who store.Actor, level inventory.NodeLevel) func() (int, error) {
		return func() (int, error) {
			found, err := f.Inventory.Level(t.Context(), who, level)
			return len(found), err
		}
	}
	middle := inventory.NodeLevel{ParentID: f.ID("hq"), AfterName: "Room 5", AfterID: "0"}
	add("the first page of a level", 50, level(bob, inventory.NodeLevel{ParentID: f.ID("hq")}))
	add("a page in the middle", 50, level(bob, middle))
	add("a page of an administrator", 50, level(ann, middle))
	add("the top", 1, level(bob, inventory.NodeLevel{}))
	add("the top of an administrator", 2, level(ann, inventory.NodeLevel{}))
	add("a search in another organization", 1, func() (int, error) {
		found, err := f.Inventory.SearchNodes(t.Context(), pia, inventory.NodeSearch{Text: "d"})
		return len(found), err
	})
	servicetest.WantBounded(t, f, reads, func() {
		var names, keys, words []string
		for n := range 4000 {
			name := fmt.Sprintf("Room %d", n+1)
			names, keys, words = append(names, name), append(keys, models.SortKey(name)), append(words, models.WordsOf(f.Acme.OrganizationID, nil, name).String())
		}
		f.Plant(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, sort_key, words, created_at, changed_at)
			SELECT 'loc_' || lpad(n::text, 26, '0'), $1, 'location', $2, name, key, words::tsvector, now(), now()
			FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY u (name, key, words, n)`, f.Acme.OrganizationID, f.ID("hq"), names, keys, words)
		filled = true
	}, func() { f.Exec(`VACUUM ANALYZE`) })
}
