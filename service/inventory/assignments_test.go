package inventory_test

import (
	"testing"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// restoredAssignments returns a function that makes the assignments what they are now, and empties the log.
func restoredAssignments(f *servicetest.Fixture) (restore func()) {
	f.Exec(`CREATE TABLE kept AS TABLE assignments`)
	return func() {
		f.Exec(`DELETE FROM assignments`)
		f.Exec(`INSERT INTO assignments SELECT * FROM kept`)
		f.Exec(`DELETE FROM log_records`)
	}
}

func TestAssignAndUnassign(t *testing.T) {
	f := servicetest.New(t)
	// The crew, and so dan, manages what is below the headquarters; zed is an administrator assigned nowhere.
	f.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, f.ID("manager"), f.ID("crew"))
	f.Exec(`UPDATE people SET admin = true WHERE id = $1`, f.ID("zed"))
	restore := restoredAssignments(f)
	for name, test := range map[string]struct {
		by, node, identity, definition string
		action, left                   string
	}{
		"an integration":                          {"ann", "roof", "outsider", "full", "assignment.created", "outsider=full roofer=here_only"},
		"a person":                                {"ann", "annex", "bob", "reading", "assignment.created", "bob=reading eve=manager"},
		"a team":                                  {"ann", "annex", "crew", "reading", "assignment.created", "crew=reading eve=manager"},
		"the organization":                        {"ann", "annex", "acme", "reading", "assignment.created", "acme=reading eve=manager"},
		"a service company":                       {"ann", "annex", "polar", "working", "assignment.created", "eve=manager polar=working"},
		"another definition":                      {"ann", "roof", "roofer", "full", "assignment.changed", "roofer=full"},
		"the definition it has":                   {"ann", "roof", "roofer", "here_only", "", "roofer=here_only"},
		"by the node's manager":                   {"eve", "annex", "outsider", "full", "assignment.created", "eve=manager outsider=full"},
		"by the manager of a node above":          {"dan", "ahu1", "outsider", "full", "assignment.created", "outsider=full polar=working"},
		"by an administrator without permissions": {"zed", "roof", "outsider", "full", "assignment.created", "outsider=full roofer=here_only"},
		"to the manager itself":                   {"eve", "annex", "eve", "reading", "assignment.changed", "eve=reading"},
		"removing an integration":                 {"ann", "roof", "roofer", "", "assignment.deleted", ""},
		"removing as the manager":                 {"dan", "ahu1", "polar", "", "assignment.deleted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			restore()
			actor := servicetest.Person(t, f, test.by)
			var err error
			if test.definition == "" {
				err = f.Inventory.Unassign(t.Context(), actor, store.NoKey, f.ID(test.node), f.ID(test.identity))
			} else {
				err = f.Inventory.Assign(t.Context(), actor, store.NoKey, f.ID(test.node), f.ID(test.identity), f.ID(test.definition))
			}
			servicetest.Must(t, err)
			servicetest.Expect(t, "the assignments", servicetest.AssignmentsOf(f, test.node), test.left)
			want := ""
			if test.action != "" {
				want = actor.Name + " " + actor.IdentityID + " " + test.action
			}
			servicetest.Expect(t, "the log", servicetest.LogOf(f, f.ID(test.node)), want)
		})
	}
}

// A manager neither replaces nor takes away permissions that she lacks herself.
func TestAManagerTakesAwayNoMoreThanSheHas(t *testing.T) {
	f := servicetest.New(t)
	ctx, eve, annex, bob := t.Context(), servicetest.Person(t, f, "eve"), f.ID("annex"), f.ID("bob")
	f.Exec(`UPDATE permission_definitions SET grants = '{inventory.read}' WHERE id = $1`, f.ID("manager"))
	f.Exec(`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`, annex, bob, f.ID("full"), f.Acme.OrganizationID)
	for what, err := range map[string]error{
		"replaced": f.Inventory.Assign(ctx, eve, store.NoKey, annex, bob, f.ID("manager")),
		"removed":  f.Inventory.Unassign(ctx, eve, store.NoKey, annex, bob),
	} {
		servicetest.WantCode(t, what, err, models.CodePermissionDenied)
	}
	servicetest.Expect(t, "the assignments", servicetest.AssignmentsOf(f, "annex"), "bob=full eve=manager")
}

func TestAssigningIsRejected(t *testing.T) {
	f := servicetest.New(t)
	ctx := t.Context()
	f.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = $1`, f.ID("cat"), f.ID("org_incoming"))
	f.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = ANY ($2)`, f.ID("manager"), []string{f.ID("erp"), f.ID("polar")})
	servicetest.Must(t, servicetest.ErrorOf(f.Integrations.DeleteIntegration(ctx, store.Operator(), store.NoKey, f.ID("outsider"))))
	operator, ann := store.Operator(), servicetest.Person(t, f, "ann")
	nothing := "idn_00000000000000000000000001"
	count := func() string {
		return servicetest.Value[string](f, `SELECT (SELECT count(*) FROM log_records) || (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM assignments a)`)
	}
	before := count()
	for name, test := range map[string]struct {
		actor                      store.Actor
		node, identity, definition string
		code                       models.Code
		pointers                   string
		// unassign is the code for taking it away, where that is another.
		unassign models.Code
	}{
		"a person who works at the node":         {actor: servicetest.Person(t, f, "cat"), code: models.CodePermissionDenied},
		"a person by a team that works there":    {actor: servicetest.Person(t, f, "dan"), code: models.CodePermissionDenied},
		"the manager of another node":            {actor: servicetest.Person(t, f, "eve"), code: models.CodeNotFound},
		"a person without permissions":           {actor: servicetest.Person(t, f, "zed"), code: models.CodeNotFound},
		"an integration that manages the node":   {actor: f.Actor("erp"), code: models.CodePermissionDenied},
		"an integration without permissions":     {actor: f.Actor("roofer"), node: f.ID("annex"), code: models.CodeNotFound},
		"an operator":                            {actor: operator, code: models.CodePermissionDenied},
		"an operator and no node":                {actor: operator, node: "loc_00000000000000000000000001", code: models.CodeNotFound},
		"no actor":                               {actor: store.Actor{}, code: models.CodeNotFound},
		"a service company's administrator":      {actor: servicetest.Person(t, f, "pia"), node: f.ID("ahu1"), code: models.CodeNotFound},
		"an administrator elsewhere":             {actor: ann, node: f.Polar.IDs["depot"], code: models.CodeNotFound},
		"an unknown node":                        {actor: ann, node: "loc_00000000000000000000000001", code: models.CodeNotFound},
		"a person for a node":                    {actor: ann, node: f.ID("ann"), code: models.CodeNotFound},
		"a malformed node id":                    {actor: ann, node: "hq\xff", code: models.CodeNotFound},
		"sub-equipment":                          {actor: ann, node: f.ID("fan1"), code: models.CodeValidationFailed, pointers: "/node_id", unassign: models.CodeNotFound},
		"an unknown identity":                    {actor: ann, identity: nothing, code: models.CodeValidationFailed, pointers: "/identity_id", unassign: models.CodeNotFound},
		"a malformed identity id":                {actor: ann, identity: "\xff", code: models.CodeValidationFailed, pointers: "/identity_id", unassign: models.CodeNotFound},
		"another organization's person":          {actor: ann, identity: f.ID("pia"), code: models.CodeValidationFailed, pointers: "/identity_id", unassign: models.CodeNotFound},
		"another organization's integration":     {actor: ann, identity: f.ID("dispatch"), code: models.CodeValidationFailed, pointers: "/identity_id", unassign: models.CodeNotFound},
		"a deleted integration":                  {actor: ann, identity: f.ID("outsider"), code: models.CodeValidationFailed, pointers: "/identity_id", unassign: models.CodeNotFound},
		"another organization's definition":      {actor: ann, definition: f.Polar.IDs["full"], code: models.CodeValidationFailed, pointers: "/definition_id", unassign: models.CodeNotFound},
		"a definition for organizations":         {actor: ann, definition: f.ID("org_incoming"), code: models.CodeValidationFailed, pointers: "/definition_id", unassign: models.CodeNotFound},
		"a malformed definition id":              {actor: ann, definition: "\xff", code: models.CodeValidationFailed, pointers: "/definition_id", unassign: models.CodeNotFound},
		"everything wrong at once":               {actor: ann, node: f.ID("fan1"), identity: nothing, definition: "x", code: models.CodeValidationFailed, pointers: "/node_id /identity_id /definition_id", unassign: models.CodeNotFound},
		"everything wrong, without a permission": {actor: servicetest.Person(t, f, "cat"), identity: nothing, definition: "x", code: models.CodePermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			node, identity, definition := test.node, test.identity, test.definition
			if node == "" {
				node = f.ID("hq")
			}
			if identity == "" {
				identity = f.ID("eve") // not assigned there
			}
			if definition == "" {
				definition = f.ID("full")
			}
			err := f.Inventory.Assign(ctx, test.actor, store.NoKey, node, identity, definition)
			if models.CodeOf(err) != test.code {
				t.Fatalf("Assign returns %v, want %s", err, test.code)
			}
			servicetest.Expect(t, "the fields of the error", servicetest.Pointers(err), test.pointers)
			want := test.code
			if test.unassign != "" {
				want = test.unassign
			}
			if err := f.Inventory.Unassign(ctx, test.actor, store.NoKey, node, identity); models.CodeOf(err) != want {
				t.Errorf("Unassign returns %v, want %s", err, want)
			}
			servicetest.Expect(t, "what it left", count(), before)
		})
	}
}

// Two concurrent assignments of the same identity both succeed, one after the other.
func TestConcurrentAssignments(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	gate := servicetest.Begin(t, f)
	servicetest.ExecIn(t, gate, `SELECT FROM inventory_nodes WHERE id = $1 FOR UPDATE`, f.ID("annex"))
	done := make(chan error, 2)
	for _, definition := range []string{"full", "reading"} {
		go func() {
			done <- f.Inventory.Assign(ctx, ann, store.NoKey, f.ID("annex"), f.ID("bob"), f.ID(definition))
		}()
	}
	servicetest.AwaitLocks(t, f, 2)
	servicetest.Must(t, gate.Commit(ctx))
	servicetest.Must(t, <-done, <-done)
	who := ann.Name + " " + ann.IdentityID + " "
	servicetest.Expect(t, "the log", servicetest.LogOf(f, f.ID("annex")), who+"assignment.created\n"+who+"assignment.changed")
}

// An integration that is deleted while it is assigned ends up without permissions.
func TestDeletingAnIntegrationWhileItIsAssigned(t *testing.T) {
	f := servicetest.New(t)
	ctx, ann, id := t.Context(), servicetest.Person(t, f, "ann"), f.ID("outsider")
	gate := servicetest.Begin(t, f)
	servicetest.ExecIn(t, gate, `SELECT FROM integrations WHERE id = $1 FOR UPDATE`, id)
	deleted, assigned := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := f.Integrations.DeleteIntegration(ctx, ann, store.NoKey, id)
		deleted <- err
	}()
	servicetest.AwaitLocks(t, f, 1)
	go func() { assigned <- f.Inventory.Assign(ctx, ann, store.NoKey, f.ID("annex"), id, f.ID("full")) }()
	servicetest.AwaitLocks(t, f, 2)
	servicetest.Must(t, gate.Commit(ctx))
	servicetest.Must(t, <-deleted)
	if err := <-assigned; err != nil && models.CodeOf(err) != models.CodeValidationFailed {
		t.Error(err)
	}
	servicetest.Expect(t, "assignments of the deleted integration", servicetest.Value[int](f, `SELECT count(*) FROM assignments WHERE identity_id = $1`, id), 0)
}
