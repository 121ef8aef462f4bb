package inventory_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// fieldOf returns the pointer and the code of the only field that an error is about, else its
// code and rule.
func fieldOf(err error) string {
	known, ok := errors.AsType[*models.Error](err)
	switch {
	case !ok && err != nil:
		return err.Error()
	case !ok:
		return ""
	case len(known.Fields) == 1:
		return known.Fields[0].Pointer + " " + known.Fields[0].Code
	}
	return strings.TrimSpace(string(known.Code) + " " + string(known.Rule))
}

// pathTo are the names from the root down to a node.
func pathTo(f *servicetest.Fixture, id string) string {
	return servicetest.Value[string](f, `SELECT string_agg(n.name, ' > ' ORDER BY c.depth DESC) FROM inventory_closure c JOIN inventory_nodes n ON n.id = c.ancestor_id WHERE c.node_id = $1`, id)
}

// wantClosure fails the test unless the closure is what the parents make it.
func wantClosure(t *testing.T, f *servicetest.Fixture) {
	t.Helper()
	const wrong = `WITH RECURSIVE up AS (
			SELECT id::text AS node_id, id::text AS ancestor_id, 0 AS depth FROM inventory_nodes
			UNION ALL SELECT u.node_id, n.parent_id::text, u.depth + 1 FROM up u JOIN inventory_nodes n ON n.id = u.ancestor_id WHERE n.parent_id IS NOT NULL),
		stored AS (SELECT node_id::text, ancestor_id::text, depth FROM inventory_closure)
		SELECT (SELECT count(*) FROM (TABLE up EXCEPT TABLE stored) x) + (SELECT count(*) FROM (TABLE stored EXCEPT TABLE up) x)`
	servicetest.Expect(t, "wrong rows of the closure", servicetest.Value[int](f, wrong), 0)
}

// Managers of a node create and change what is below it, administrators all nodes.
func TestWhoChangesTheStructure(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed"))
	f.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, f.ID("manager"), f.ID("crew")) // dan manages hq by a team
	f.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, f.ID("manager"), f.ID("erp"))
	// cat manages the roof alone.
	f.Exec(`INSERT INTO permission_definitions (id, organization_id, name, applies_below, inventory_manager, grants) VALUES ('def_00000000000000000000000001', $1, 'Alone', false, true, '{inventory.read}')`, f.Acme.OrganizationID)
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, 'def_00000000000000000000000001', $3)`, f.ID("roof"), f.ID("cat"), f.Acme.OrganizationID)
	in := inventory.NodeFields{Name: "New"}
	denied, unknown := string(models.CodePermissionDenied), string(models.CodeNotFound)
	for _, test := range []struct {
		who                        string
		node                       string
		create, change, move, root string
	}{
		{"zed", "roof", "", "", "", ""},
		{"dan", "roof", "", "", denied, denied},
		{"dan", "hq", "", denied, denied, denied},
		{"cat", "roof", denied, denied, denied, denied}, // its permission does not apply below
		{"cat", "hq", denied, denied, denied, denied},   // a worker
		{"eve", "annex", "", denied, denied, denied},
		{"eve", "roof", unknown, unknown, unknown, denied}, // the manager of a sibling
		{"bob", "annex", unknown, unknown, unknown, denied},
		{"pia", "roof", unknown, unknown, unknown, ""}, // another organization's administrator
	} {
		actor, node := servicetest.Person(t, f, test.who), f.ID(test.node)
		what := test.who + " at " + test.node
		_, err := f.Inventory.CreateNode(t.Context(), actor, store.NoKey, node, models.NodeSystem, in)
		servicetest.Expect(t, what+" creates", fieldOf(err), test.create)
		_, err = f.Inventory.CreateNode(t.Context(), actor, store.NoKey, "", models.NodeLocation, in)
		servicetest.Expect(t, what+" creates a root", fieldOf(err), test.root)
		servicetest.Expect(t, what+" changes", fieldOf(f.Inventory.ChangeNode(t.Context(), actor, store.NoKey, node, inventory.NodeFields{Name: "Changed by " + test.who})), test.change)
		servicetest.Expect(t, what+" moves", fieldOf(f.Inventory.MoveNode(t.Context(), actor, store.NoKey, node, "HQ")), test.move)
		if test.change != "" {
			servicetest.Expect(t, what+" retires", fieldOf(f.Inventory.RetireNode(t.Context(), actor, store.NoKey, node)), test.change)
			servicetest.Expect(t, what+" brings back", fieldOf(f.Inventory.BringNodeBack(t.Context(), actor, store.NoKey, node)), test.change)
			_, _, err = f.Inventory.NodeUse(t.Context(), actor, node)
			servicetest.Expect(t, what+" asks for its use", fieldOf(err), test.change)
		}
	}
	for name, actor := range map[string]store.Actor{"an integration": f.Actor("erp"), "an operator": store.Operator()} {
		_, err := f.Inventory.CreateNode(t.Context(), actor, store.NoKey, f.ID("roof"), models.NodeSystem, in)
		servicetest.Expect(t, name+" creates", fieldOf(err), denied)
		servicetest.Expect(t, name+" changes", fieldOf(f.Inventory.ChangeNode(t.Context(), actor, store.NoKey, f.ID("roof"), in)), denied)
	}
	wantClosure(t, f)
}

// A node has a kind that its parent allows, a name, and limits.
func TestNodesAreChecked(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	long := strings.Repeat("x", 201)
	for _, test := range []struct {
		node string
		kind models.NodeKind
		in   inventory.NodeFields
		want string
	}{
		{"", models.NodeSystem, inventory.NodeFields{Name: "New"}, "/node kind"},
		{"hvac", models.NodeLocation, inventory.NodeFields{Name: "New"}, "/node kind"},
		{"hq", models.NodeSubEquipment, inventory.NodeFields{Name: "New"}, "/node kind"},
		{"fan1", models.NodeSubEquipment, inventory.NodeFields{Name: "New"}, "/node kind"},
		{"hq", "room", inventory.NodeFields{Name: "New"}, "/kind unknown"},
		{"hq", models.NodeLocation, inventory.NodeFields{Name: "  "}, "/name required"},
		{"hq", models.NodeLocation, inventory.NodeFields{Name: long}, "/name too_long"},
		{"hq", models.NodeLocation, inventory.NodeFields{Name: "New", ExternalID: &long}, "/external_id too_long"},
	} {
		parent := ""
		if test.node != "" {
			parent = f.ID(test.node)
		}
		_, err := f.Inventory.CreateNode(t.Context(), ann, store.NoKey, parent, test.kind, test.in)
		servicetest.Expect(t, string(test.kind)+" below "+test.node, fieldOf(err), test.want)
	}
	parent := ""
	for range inventory.MaxLevels {
		id, err := f.Inventory.CreateNode(t.Context(), ann, store.NoKey, parent, models.NodeLocation, inventory.NodeFields{Name: "Level"})
		servicetest.Must(t, err)
		parent = id
	}
	_, err := f.Inventory.CreateNode(t.Context(), ann, store.NoKey, parent, models.NodeLocation, inventory.NodeFields{Name: "Level"})
	servicetest.Expect(t, "a level more", fieldOf(err), "/node too_deep")
	servicetest.Expect(t, "a branch below the last level", fieldOf(f.Inventory.MoveNode(t.Context(), ann, store.NoKey, f.ID("roof"), parent)), "/node too_deep")
}

// Several nodes are created from lines, each with a Log Record, or none with the problem of each line.
func TestNodesAreCreatedFromLines(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	create := func(lines string) error {
		return f.Inventory.CreateNodes(ctx, ann, store.NoKey, f.ID("hvac"), models.NodeEquipment, lines)
	}
	below := func() string {
		return servicetest.Value[string](f, `SELECT coalesce(string_agg(concat_ws('/', n.name, n.external_id, n.kind, l.action), ', ' ORDER BY n.name), '')
			FROM inventory_nodes n JOIN log_records l ON l.record_id = n.id WHERE n.parent_id = $1`, f.ID("hvac"))
	}
	for lines, want := range map[string]string{
		" \n ":                             "required Enter at least one line.",
		strings.Repeat("Fan\n", 101):       "too_many Enter at most 100 lines at a time; these are 101.",
		"Fan; F-2\n; F-3\nFan; F-4; robot": "required Line 2: Enter a name., unknown Line 3: Choose a kind: location, system, equipment or sub-equipment.",
		"Fan\n\nRoom;;Location":            "kind Line 3: A place of the kind location cannot be in one of the kind system.",
		"Fan;1;equipment;new":              "value Line 1: A line is name; code; kind.",
		strings.Repeat("x", 201):           "too_long Line 1: A name has at most 200 characters.",
	} {
		known, _ := errors.AsType[*models.Error](create(lines))
		got := servicetest.Listed(known.Fields, func(field models.FieldError) string { return field.Code + " " + field.Detail })
		servicetest.Expect(t, lines, got, want)
		servicetest.Expect(t, "what was created of "+lines, below(), "")
	}
	servicetest.Must(t, create("Fan 2; F-2\r\n\r\n Fan 3 \t\tsystem\nFan 4;F-4;Equipment;"))
	servicetest.Expect(t, "what was created", below(), "Fan 2/F-2/equipment/node.created, Fan 3/system/node.created, Fan 4/F-4/equipment/node.created")
	err := f.Inventory.CreateNodes(ctx, servicetest.Person(t, f, "bob"), store.NoKey, f.ID("hvac"), models.NodeEquipment, "Fan")
	servicetest.Expect(t, "a worker", fieldOf(err), string(models.CodePermissionDenied))
	wantClosure(t, f)
}

// Who makes a building gets a role on it.
func TestTheMakerOfARootGetsARole(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	for role, want := range map[string]string{"": "", f.ID("full"): f.ID("full")} {
		id, err := f.Inventory.CreateNode(ctx, ann, store.NoKey, "", models.NodeLocation, inventory.NodeFields{Name: "Tower", DefinitionID: role})
		servicetest.Must(t, err)
		servicetest.Expect(t, "the role", servicetest.Value[string](f, `SELECT coalesce((SELECT definition_id FROM assignments WHERE node_id = $1 AND identity_id = $2), '')`, id, f.ID("ann")), want)
	}
	for what, role := range map[string]string{"unknown": "pdf_01jd8q4v6cf5e8hbbfwj0zq3tc", "retired": f.ID("full")} {
		f.Exec(`UPDATE permission_definitions SET retired = true WHERE id = $1`, role)
		_, err := f.Inventory.CreateNode(ctx, ann, store.NoKey, "", models.NodeLocation, inventory.NodeFields{Name: "Tower", DefinitionID: role})
		servicetest.Expect(t, "a role that is "+what, fieldOf(err), "/definition_id "+what)
	}
	servicetest.Expect(t, "the towers", strconv.Itoa(servicetest.Value[int](f, `SELECT count(*) FROM inventory_nodes WHERE name = 'Tower'`)), "2")
}

// A change of a node is logged, once and only if it makes a difference.
func TestChangesOfNodesAreLogged(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann, code := servicetest.Person(t, f, "ann"), "M-1"
	id, err := f.Inventory.CreateNode(t.Context(), ann, store.NoKey, f.ID("roof"), models.NodeSystem, inventory.NodeFields{Name: " Pump ", ExternalID: &code})
	servicetest.Must(t, err)
	for _, change := range []func() error{
		func() error {
			return f.Inventory.ChangeNode(t.Context(), ann, store.NoKey, id, inventory.NodeFields{Name: "Pump 2", ExternalID: &code})
		},
		func() error { return f.Inventory.MoveNode(t.Context(), ann, store.NoKey, id, "HQ") },
		func() error { return f.Inventory.RetireNode(t.Context(), ann, store.NoKey, id) },
		func() error { return f.Inventory.BringNodeBack(t.Context(), ann, store.NoKey, id) },
	} {
		servicetest.Must(t, change(), change()) // the second time without a difference
	}
	who := ann.Name + " " + ann.IdentityID + " "
	log := servicetest.LogOf(f, id)
	for _, action := range []string{"node.created", "node.changed", "node.moved", "node.retired", "node.brought_back"} {
		if strings.Count(log, who+action) != 1 {
			t.Errorf("the log says %q, want %s once", log, action)
		}
	}
	servicetest.Expect(t, "the path", pathTo(f, id), "Headquarters > Pump 2")
}

// A move takes what is below along: paths and rights follow, and the lists show it as changed.
func TestMovesKeepPathsAndRights(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ann := servicetest.Person(t, f, "ann")
	sees := func(who string) string {
		found, err := f.Inventory.SearchNodes(t.Context(), servicetest.Person(t, f, who), inventory.NodeSearch{Text: "fan"})
		servicetest.Must(t, err)
		return namesOf(found)
	}
	servicetest.Expect(t, "bob before", sees("bob"), "Fan 1")
	servicetest.Expect(t, "eve before", sees("eve"), "")
	servicetest.Must(t, f.Inventory.MoveNode(t.Context(), ann, store.NoKey, f.ID("hvac"), f.ID("annex")))
	servicetest.Expect(t, "the path", pathTo(f, f.ID("fan1")), "Annex > HVAC > AHU 1 > Fan 1")
	servicetest.Expect(t, "bob after", sees("bob"), "")
	servicetest.Expect(t, "eve after", sees("eve"), "Fan 1")
	wantClosure(t, f)
	servicetest.Expect(t, "moves that housekeeping knows of", servicetest.Value[int](f, `SELECT count(*) FROM moved_nodes WHERE node_id = $1`, f.ID("hvac")), 1)
	for _, test := range []struct{ node, to, want string }{
		{"hq", f.ID("roof"), "/node value"}, {"roof", f.ID("roof"), "/node value"}, {"ahu1", f.ID("hq"), ""}, {"ahu1", f.ID("roof"), ""},
		{"ahu1", f.ID("fan1"), "/node kind"}, {"hvac", "", "/node kind"}, {"hvac", f.ID("depot"), "/node unknown"}, {"hvac", "nowhere", "/node unknown"}, {"roof", "", ""},
		{"roof", "hq", ""}, {"roof", "", ""},
	} {
		servicetest.Expect(t, test.node+" to "+test.to, fieldOf(f.Inventory.MoveNode(t.Context(), ann, store.NoKey, f.ID(test.node), test.to)), test.want)
	}
	servicetest.Expect(t, "the path of the roof", pathTo(f, f.ID("mast")), "Roof > Mast")
	wantClosure(t, f)
}

// A node with open work orders or unretired nodes below is not retired. A retired one cannot be
// chosen, stays readable, and comes back after what is above it.
func TestRetiredNodes(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	order, err := f.Records.CreateWorkOrder(ctx, f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Filter"})
	servicetest.Must(t, err)
	servicetest.Expect(t, "with a node below", fieldOf(f.Inventory.RetireNode(ctx, ann, store.NoKey, f.ID("roof"))), "rule_violation in_use")
	servicetest.Expect(t, "the fan", fieldOf(f.Inventory.RetireNode(ctx, ann, store.NoKey, f.ID("fan1"))), "")
	servicetest.Expect(t, "with an open work order", fieldOf(f.Inventory.RetireNode(ctx, ann, store.NoKey, f.ID("ahu1"))), "rule_violation in_use")
	if _, use, err := f.Inventory.NodeUse(ctx, ann, f.ID("hvac")); err != nil || use != (inventory.NodeUse{Nodes: 1, WorkOrders: 1}) {
		t.Errorf("the use is %+v (%v)", use, err)
	}
	servicetest.Must(t, servicetest.ErrorOf(f.Records.CancelWorkOrder(ctx, ann, store.NoKey, order.RecordID, nil)))
	servicetest.Expect(t, "without", fieldOf(f.Inventory.RetireNode(ctx, ann, store.NoKey, f.ID("ahu1"))), "")

	_, err = f.Records.CreateWorkOrder(ctx, f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Filter"})
	servicetest.Expect(t, "a work order", fieldOf(err), "/inventory_id retired")
	_, err = f.Records.CreateFeedback(ctx, f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "It rattles"})
	servicetest.Expect(t, "feedback", fieldOf(err), "/inventory_id retired")
	_, err = f.Records.GiveFeedback(ctx, ann, store.NoKey, f.ID("ahu1"), records.NewFeedback{Subject: "It rattles"})
	servicetest.Expect(t, "feedback of a person", fieldOf(err), "/node retired")
	_, err = f.Records.GiveFeedback(ctx, ann, store.NoKey, "AHU-1", records.NewFeedback{Subject: "It rattles"})
	servicetest.Expect(t, "feedback by the code", fieldOf(err), "/node unknown")
	servicetest.Expect(t, "an assignment", fieldOf(f.Inventory.Assign(ctx, ann, store.NoKey, f.ID("ahu1"), f.ID("dan"), f.ID("reading"))), "/node_id retired")
	servicetest.Expect(t, "an assignment by the code", fieldOf(f.Integrations.AssignIntegration(ctx, ann, store.NoKey, f.ID("reader"), "AHU-1", f.ID("reading"))), "/node unknown")
	servicetest.Expect(t, "taking one away", fieldOf(f.Inventory.Unassign(ctx, ann, store.NoKey, f.ID("ahu1"), f.ID("polar"))), "")
	_, err = f.Inventory.CreateNode(ctx, ann, store.NoKey, f.ID("ahu1"), models.NodeSubEquipment, inventory.NodeFields{Name: "Belt"})
	servicetest.Expect(t, "a node below", fieldOf(err), "/node retired")
	servicetest.Expect(t, "the level", levelOf(t, f, "ann", "hvac"), "")
	for retired, want := range map[bool]string{false: "", true: "AHU 1"} {
		found, err := f.Inventory.SearchNodes(ctx, ann, inventory.NodeSearch{Text: "ahu", Retired: retired})
		if err != nil || namesOf(found) != want {
			t.Errorf("with retired nodes %v the search finds %s (%v)", retired, namesOf(found), err)
		}
		level, err := f.Inventory.Level(ctx, ann, inventory.NodeLevel{ParentID: f.ID("hvac"), Retired: retired})
		if err != nil || (len(level) == 1) != retired {
			t.Errorf("with retired nodes %v the level is %+v (%v)", retired, level, err)
		}
	}
	if level, err := f.Records.CreatableNodes(ctx, ann, f.ID("hvac"), ""); err != nil || len(level.Nodes) != 0 {
		t.Errorf("a work order can be on %+v (%v)", level.Nodes, err)
	}
	if _, err := f.Inventory.Node(ctx, f.Actor("erp"), models.NodeEquipment, f.ID("ahu1")); err != nil {
		t.Errorf("a retired node is not readable: %v", err)
	}
	servicetest.Expect(t, "the fan first", fieldOf(f.Inventory.BringNodeBack(ctx, ann, store.NoKey, f.ID("fan1"))), "rule_violation retired")
	servicetest.Expect(t, "what is above", fieldOf(f.Inventory.BringNodeBack(ctx, ann, store.NoKey, f.ID("ahu1"))), "")
	servicetest.Expect(t, "then the fan", fieldOf(f.Inventory.BringNodeBack(ctx, ann, store.NoKey, f.ID("fan1"))), "")
	servicetest.Expect(t, "the level again", levelOf(t, f, "ann", "hvac"), "AHU 1+")
}

// Retiring waits for a work order that is being created, and counts it.
func TestRetiringCountsAWorkOrderThatIsBeingCreated(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	other := servicetest.Begin(t, f)
	servicetest.ExecIn(t, other, `INSERT INTO work_orders (id, organization_id, number, inventory_id, title, priority, status, created_by, created_at, changed_at)
		VALUES ('wo_00000000000000000000000001', $1, 900, $2, 'Filter', 'none', 'open', $3, now(), now())`, f.Acme.OrganizationID, f.ID("mast"), ann.IdentityID)
	done := make(chan error, 1)
	go func() { done <- f.Inventory.RetireNode(ctx, ann, store.NoKey, f.ID("mast")) }()
	servicetest.AwaitLocks(t, f, 1)
	servicetest.Must(t, other.Commit(ctx))
	servicetest.Expect(t, "retiring", fieldOf(<-done), "rule_violation in_use")
}

// A retired node at the top of what a person sees is offered nowhere.
func TestRetiredNodesAtTheTop(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, eve := t.Context(), servicetest.Person(t, f, "eve")
	servicetest.Must(t, f.Inventory.RetireNode(ctx, servicetest.Person(t, f, "ann"), store.NoKey, f.ID("annex")))
	servicetest.Expect(t, "the tree of an administrator", levelOf(t, f, "ann", ""), "Headquarters+")
	servicetest.Expect(t, "the tree of its manager", levelOf(t, f, "eve", ""), "")
	if level, err := f.Records.CreatableNodes(ctx, eve, "", ""); err != nil || len(level.Nodes) != 0 {
		t.Errorf("a work order can be on %+v (%v)", level.Nodes, err)
	}
	if places, err := f.Records.FeedbackPlaces(ctx, eve, "annex"); err != nil || len(places) != 0 {
		t.Errorf("feedback can be on %+v (%v)", places, err)
	}
	if choices, err := f.Integrations.AssignmentChoices(ctx, eve); err != nil || len(choices.Nodes) != 0 {
		t.Errorf("an integration can be assigned to %+v (%v)", choices.Nodes, err)
	}
	found, err := f.Inventory.Level(ctx, eve, inventory.NodeLevel{Retired: true})
	if err != nil || len(found) != 1 || !found[0].Retired {
		t.Errorf("with retired nodes the tree is %+v (%v)", found, err)
	}
}
