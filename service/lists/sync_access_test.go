package lists_test

import (
	"encoding/json"
	"slices"
	"testing"

	"millwright/models"
	"millwright/service/imports"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// watched are the integrations whose tokens the changes of accessChanges may void: the reader has an assignment, the
// outsider is in the team crew, and dispatch and back_office are of the service company.
var watched = []string{"reader", "outsider", "dispatch", "back_office"}

// accessChange is a change of permissions with the watched integrations whose sync tokens it voids.
type accessChange struct {
	name, sql string
	args      []any
	void      []string
}

// definitions are more permission definitions, with applies_below and their grants.
var definitions = map[string]struct {
	below  bool
	grants []string
}{
	"reading_and_updating": {true, []string{"inventory.read", "work_orders.read", "work_orders.update", "feedback.create"}},
	"reading_and_creating": {true, []string{"inventory.read", "work_orders.read", "work_orders.create"}},
	"reading_feedback":     {true, []string{"inventory.read", "work_orders.read", "feedback.read"}},
	"reading_here":         {false, []string{"inventory.read", "work_orders.read"}},
	"without_grants":       {true, []string{}},
	"of_the_company":       {true, []string{"inventory.read"}},
}

// newAccessFixture is the fixture with these definitions, the outsider in the crew, and work orders that the reader and
// the company's integration read.
func newAccessFixture(t *testing.T) *servicetest.Fixture {
	t.Helper()
	f := servicetest.New(t)
	define := func(organization *imports.Result, name string, below bool, grants []string) {
		organization.IDs[name] = servicetest.Value[string](f, `INSERT INTO permission_definitions (id, organization_id, name, applies_below, grants)
			SELECT 'def_' || lpad(count(*)::text, 26, '0'), $1, $2, $3, $4 FROM permission_definitions RETURNING id`,
			organization.OrganizationID, name, below, grants)
	}
	for name, d := range definitions {
		define(&f.Acme, name, d.below, d.grants)
	}
	define(&f.Polar, "depot_reading", true, []string{"inventory.read", "work_orders.read"})
	define(&f.Polar, "depot_nothing", true, []string{})
	f.Exec(`UPDATE assignments SET definition_id = $2 WHERE identity_id = $1`, f.ID("polar"), f.ID("of_the_company"))
	f.Exec(`INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`, f.ID("crew"), f.ID("outsider"), f.Acme.OrganizationID)
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, 2) n`,
		f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
	f.Exec(`INSERT INTO work_order_assignees SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("polar"))
	return f
}

func accessChanges(f *servicetest.Fixture) []accessChange {
	const (
		insert   = `INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`
		again    = insert + ` ON CONFLICT (node_id, identity_id) DO UPDATE SET definition_id = excluded.definition_id`
		redefine = `UPDATE assignments SET definition_id = $2 WHERE identity_id = $1`
		move     = `UPDATE assignments SET node_id = $2 WHERE identity_id = $1`
		remove   = `DELETE FROM assignments WHERE identity_id = $1`
		member   = `INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`
		grants   = `UPDATE permission_definitions SET grants = $2 WHERE id = $1`
	)
	acme, polar := f.Acme.OrganizationID, f.Polar.OrganizationID
	reader, outsider, company := []string{"reader"}, []string{"outsider"}, []string{"dispatch", "back_office"}
	assign := func(node, identity, definition string) []any {
		return []any{f.ID(node), f.ID(identity), f.ID(definition), acme}
	}
	ids := func(keys ...string) (args []any) {
		for _, key := range keys {
			args = append(args, f.ID(key))
		}
		return args
	}
	return []accessChange{
		{"an assignment added", insert, assign("roof", "reader", "working"), reader},
		{"an assignment without permissions added", insert, assign("roof", "reader", "without_grants"), nil},
		{"an assignment written again", again, assign("hvac", "reader", "reading"), nil},
		{"all assignments written again", `UPDATE assignments SET definition_id = definition_id`, nil, nil},
		{"a definition with other rights of reading", redefine, ids("reader", "creating"), reader},
		{"a definition with the same rights of reading", redefine, ids("reader", "reading_and_updating"), nil},
		{"a definition to create what was read already", redefine, ids("reader", "reading_and_creating"), nil},
		{"a definition to read feedback, too", redefine, ids("reader", "reading_feedback"), reader},
		{"a definition that does not apply below", redefine, ids("reader", "reading_here"), reader},
		{"a definition without permissions", redefine, ids("reader", "without_grants"), reader},
		{"an assignment on another node", move, ids("reader", "mast"), reader},
		{"an assignment given to another", `UPDATE assignments SET identity_id = $2 WHERE identity_id = $1`, ids("reader", "outsider"), []string{"reader", "outsider"}},
		{"an assignment removed", remove, ids("reader"), reader},
		{"two assignments, one of which reads the same", `UPDATE assignments SET definition_id = CASE identity_id WHEN $1 THEN $2::text ELSE $4 END WHERE identity_id IN ($1, $3)`,
			ids("reader", "reading_and_updating", "crew", "creating"), outsider},

		{"an assignment of the organization", insert, assign("roof", "acme", "working"), []string{"reader", "outsider"}},
		{"an assignment of the organization without permissions", insert, assign("roof", "acme", "without_grants"), nil},
		{"an assignment of the team added", insert, assign("annex", "crew", "working"), outsider},
		{"the team's assignment written again", again, assign("hq", "crew", "working"), nil},
		{"the team's assignment with other rights of reading", redefine, ids("crew", "reading"), outsider},
		{"the team's assignment on another node", move, ids("crew", "annex"), outsider},
		{"the team's assignment removed", remove, ids("crew"), outsider},
		{"another's assignment", insert, assign("annex", "roofer", "working"), nil},
		{"another's assignment removed", remove, ids("creator"), nil},

		{"the service company assigned to another node", insert, assign("roof", "polar", "reading"), nil},
		{"the service company assigned again", again, assign("ahu1", "polar", "of_the_company"), nil},
		{"the service company's definition changed", redefine, ids("polar", "full"), nil},
		{"the service company's assignment on another node", move, ids("polar", "mast"), nil},
		{"the service company's assignment removed", remove, ids("polar"), nil},
		{"all assignments of the customer removed", `DELETE FROM assignments WHERE organization_id = $1`, []any{acme}, []string{"reader", "outsider"}},
		{"a definition without permissions on the company's own node", redefine, ids("dispatch", "depot_nothing"), []string{"dispatch"}},
		{"a definition with the same rights of reading on the company's own node", redefine, ids("dispatch", "depot_reading"), nil},
		{"the company assigned in its own organization", insert, []any{f.Polar.IDs["depot"], polar, f.Polar.IDs["full"], polar}, company},
		{"the relation with the company ended", `INSERT INTO ended_relations (company_id, customer_id, actor_id, ended_at) VALUES ($1, $2, $3, now())`, []any{polar, acme, f.ID("ann")}, company},

		{"the definition's grants", grants, []any{f.ID("reading"), []string{"inventory.read", "work_orders.create"}}, reader},
		{"the definition's grants, but not what they read", grants, []any{f.ID("reading"), []string{"work_orders.read", "work_orders.forward"}}, nil},
		{"the definition without grants", grants, []any{f.ID("working"), []string{}}, outsider},
		{"the definition no longer applies below", `UPDATE permission_definitions SET applies_below = false WHERE id = $1`, ids("reading"), reader},
		{"the definition written again", `UPDATE permission_definitions SET grants = grants, applies_below = applies_below`, nil, nil},
		{"the name, the manager and the end of a definition", `UPDATE permission_definitions SET name = 'Renamed', inventory_manager = true, retired = true WHERE id = $1`, ids("reading"), nil},
		{"another's definition", grants, []any{f.ID("creating"), []string{}}, nil},
		{"the definition of the service company alone", grants, []any{f.ID("of_the_company"), []string{"work_orders.read"}}, nil},

		{"a place in a team", member, []any{f.ID("crew"), f.ID("reader"), acme}, reader},
		{"a place in a team lost", `DELETE FROM team_members WHERE member_id = $1`, ids("outsider"), outsider},
		{"a place in a team given to another", `UPDATE team_members SET member_id = $2 WHERE member_id = $1`, ids("outsider", "reader"), []string{"reader", "outsider"}},
		{"the places in teams written again", `UPDATE team_members SET team_id = team_id, member_id = member_id`, nil, nil},
		{"another's place in a team", member, []any{f.ID("crew"), f.ID("cat"), acme}, nil},
		{"another's place in a team given to another", `UPDATE team_members SET member_id = $2 WHERE member_id = $1`, ids("dan", "cat"), nil},

		{"more scopes", `UPDATE integrations SET scopes = scopes || '{forms:read}' WHERE id = $1`, ids("reader"), reader},
		{"the organization definition's grants", `UPDATE organization_permission_definitions SET grants = '{}' WHERE id = $1`, []any{f.Polar.IDs["org_incoming"]}, []string{"dispatch"}},
		{"another organization definition", `UPDATE integrations SET organization_definition_id = NULL WHERE id = $1`, ids("dispatch"), []string{"dispatch"}},
		{"another's organization definition", `UPDATE organization_permission_definitions SET grants = '{people}' WHERE id = $1`, ids("org_nothing"), nil},
		{"the name of the integration", `UPDATE identities SET name = 'Renamed' WHERE id = $1`, ids("reader"), nil},
		{"a node moved", `UPDATE inventory_nodes SET parent_id = $1 WHERE id = $2`, ids("roof", "hvac"), nil},
		{"a new node", `INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			VALUES ('eqp_00000000000000000000000001', $1, 'equipment', $2, 'x', now(), now())`, []any{acme, f.ID("hvac")}, nil},
		{"a secret renewed", `UPDATE integrations SET secret_hash = sha256('another') WHERE id = $1`, ids("reader"), nil},
		{"a plan with fewer calls", `UPDATE plans SET calls_per_minute = 99 WHERE organization_id = $1`, []any{acme}, nil},
	}
}

// Tokens end when what an integration may read changes, and neither when a row is written again nor by what a customer
// does with its nodes (api.md 4.15).
func TestTheAccessEpochFollowsTheIntegrationsAccess(t *testing.T) {
	f := newAccessFixture(t)
	for _, change := range accessChanges(f) {
		t.Run(change.name, func(t *testing.T) {
			tx := servicetest.Begin(t, f)
			epochs := func() (all []int) {
				t.Helper()
				for _, who := range watched {
					var epoch int
					servicetest.Must(t, tx.QueryRow(t.Context(), `SELECT access_epoch FROM integrations WHERE id = $1`, f.ID(who)).Scan(&epoch))
					all = append(all, epoch)
				}
				return all
			}
			before := epochs()
			servicetest.ExecIn(t, tx, change.sql, change.args...)
			for i, epoch := range epochs() {
				servicetest.Expect(t, "the tokens of "+watched[i]+" end", epoch != before[i], slices.Contains(change.void, watched[i]))
			}
			servicetest.Must(t, tx.Rollback(t.Context()))
		})
	}
}

// A change of what an integration may read ends its sync tokens and cursors alone. It may start over.
func TestTokensOfAnEarlierEpochAreVoid(t *testing.T) {
	t.Parallel()
	f := newAccessFixture(t)
	f.WaitForOpenTransactions()
	first := lists.ListRequest{Limit: 1, ChangedSince: "2020-01-01T00:00:00Z"}
	list := func(who string, request lists.ListRequest) (servicetest.Page, error) {
		return lists.DecodePage[json.RawMessage](f.Records.WorkOrders(t.Context(), f.Actor(who), records.WorkOrderFilter{}, request))
	}
	before := map[string]servicetest.Page{}
	for _, who := range []string{"reader", "dispatch"} {
		page, err := list(who, first)
		if before[who] = page; err != nil || page.SyncToken == "" || page.NextCursor == "" {
			t.Fatalf("%s: %v, %v, want a page of changes and another one", who, page, err)
		}
	}
	f.Exec(`UPDATE assignments SET definition_id = $2 WHERE identity_id = $1`, f.ID("reader"), f.ID("creating"))
	for who, want := range map[string]models.Code{"reader": models.CodeCursorExpired, "dispatch": ""} {
		_, err := list(who, lists.ListRequest{Limit: 1, ChangedSince: before[who].SyncToken})
		servicetest.WantCode(t, "the sync token of "+who, err, want)
		_, err = list(who, lists.ListRequest{Limit: 1, ChangedSince: first.ChangedSince, Cursor: before[who].NextCursor})
		servicetest.WantCode(t, "the cursor of "+who, err, want)
	}
	fresh, err := list("reader", first)
	servicetest.Must(t, err)
	_, err = list("reader", lists.ListRequest{Limit: 1, ChangedSince: fresh.SyncToken})
	servicetest.WantCode(t, "starting over", err, "")
}

// A statement ends the tokens of an integration once, regardless of how many rows it writes: Postgres takes ever longer to
// write one row again in one transaction.
func TestAStatementEndsTheTokensOfAnIntegrationOnce(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT 'eqp_' || lpad(n::text, 26, '0'), $1, 'equipment', $2, 'x', now(), now() FROM generate_series(1, 300) n`, f.Acme.OrganizationID, f.ID("hvac"))
	f.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || lpad(n::text, 26, '0'), $1, 'team', 'x', now(), now() FROM generate_series(1, 300) n`, f.Acme.OrganizationID)
	for _, statement := range []struct {
		name, sql string
		args      []any
	}{
		{"assignments added", `INSERT INTO assignments SELECT id, $1, $2, organization_id FROM inventory_nodes WHERE id LIKE 'eqp_0%'`, []any{f.ID("outsider"), f.ID("reading")}},
		{"assignments changed", `UPDATE assignments SET definition_id = $2 WHERE identity_id = $1`, []any{f.ID("outsider"), f.ID("creating")}},
		{"their definition changed", `UPDATE permission_definitions SET grants = '{work_orders.read}' WHERE id = $1`, []any{f.ID("creating")}},
		{"assignments removed", `DELETE FROM assignments WHERE identity_id = $1`, []any{f.ID("outsider")}},
		{"places in teams added", `INSERT INTO team_members SELECT id, $1, organization_id FROM identities WHERE id LIKE 'idn_0000000000%'`, []any{f.ID("outsider")}},
		{"places in teams given to another", `UPDATE team_members SET member_id = $2 WHERE member_id = $1`, []any{f.ID("outsider"), f.ID("roofer")}},
		{"places in teams given back", `UPDATE team_members SET member_id = $2 WHERE member_id = $1`, []any{f.ID("roofer"), f.ID("outsider")}},
		{"places in teams removed", `DELETE FROM team_members WHERE member_id = $1`, []any{f.ID("outsider")}},
	} {
		epoch := func() int {
			return servicetest.Value[int](f, `SELECT access_epoch FROM integrations WHERE id = $1`, f.ID("outsider"))
		}
		before := epoch()
		changed, err := f.Pool.Exec(t.Context(), statement.sql, statement.args...)
		servicetest.Must(t, err)
		if ended := epoch() - before; ended != 1 || changed.RowsAffected() < 300 && statement.name != "their definition changed" {
			t.Errorf("%s: %d rows end the tokens %d times, want once", statement.name, changed.RowsAffected(), ended)
		}
	}
}

// If an assignment and its definition change at the same time, one of the two sees the other and ends the tokens.
func TestTokensEndWhenAnAssignmentAndItsDefinitionChangeAtOnce(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"a definition that gets grants is assigned": {
			`UPDATE permission_definitions SET grants = '{work_orders.read}' WHERE name = 'without_grants'`,
			`INSERT INTO assignments (node_id, identity_id, definition_id, organization_id)
				SELECT n.id, i.id, d.id, n.organization_id FROM inventory_nodes n, identities i, permission_definitions d
				WHERE n.name = 'Roof' AND i.name = 'Reader' AND d.name = 'without_grants'`,
		},
		"a definition that loses grants replaces one that reads the same": {
			`UPDATE permission_definitions SET grants = '{}' WHERE name = 'reading_and_updating'`,
			`UPDATE assignments SET definition_id = (SELECT id FROM permission_definitions WHERE name = 'reading_and_updating')
				WHERE identity_id = (SELECT id FROM identities WHERE name = 'Reader')`,
		},
		"an assignment ends with its definition's grants": {
			`UPDATE permission_definitions SET grants = '{}' WHERE name = 'Reading'`,
			`DELETE FROM assignments WHERE identity_id = (SELECT id FROM identities WHERE name = 'Reader')`,
		},
	} {
		for order, statements := range map[string][2]string{"": pair, ", in the other order": {pair[1], pair[0]}} {
			t.Run(name+order, func(t *testing.T) {
				t.Parallel()
				f := newAccessFixture(t)
				epoch := func() int {
					return servicetest.Value[int](f, `SELECT access_epoch FROM integrations WHERE id = $1`, f.ID("reader"))
				}
				before := epoch()
				first, second := servicetest.Begin(t, f), servicetest.Begin(t, f)
				servicetest.ExecIn(t, first, statements[0])
				executed := make(chan error, 1)
				go func() {
					_, err := second.Exec(t.Context(), statements[1])
					executed <- err
				}()
				servicetest.Await(t, "the second statement has ended or waits for the first", func() bool {
					return len(executed) > 0 || servicetest.LockWaits(f) > 0
				})
				servicetest.Must(t, first.Commit(t.Context()))
				servicetest.Must(t, <-executed)
				servicetest.Must(t, second.Commit(t.Context()))
				if epoch() == before {
					t.Error("the tokens hold")
				}
			})
		}
	}
}
