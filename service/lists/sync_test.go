package lists_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/servicetest"
)

// writer changes work orders in transactions that it holds open for a while.
type writer struct {
	name   int
	random *rand.Rand
	f      *servicetest.Fixture
	nodes  []string
	// committed is the latest committed title, by id.
	committed map[string]string
	own       []string
}

// write runs one transaction: it creates some work orders, changes some that only it
// changes and one that all writers change, waits, then commits or rolls back.
func (w *writer) write(ctx context.Context, round int, shared string) error {
	tx, err := w.f.Pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	titles, created := map[string]string{}, []string{}
	for i := range w.random.IntN(5) {
		id := fmt.Sprintf("wo_%02d%024d", w.random.IntN(79), w.name*1_000_000+round*10+i) // ids are not in the order of time
		titles[id] = fmt.Sprintf("made by %d in turn %d", w.name, round)
		created = append(created, id)
		if _, err := tx.Exec(ctx, `
			INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			VALUES ($1, $2, $3, $4, 'none', $5, $6, now(), now())`,
			id, w.f.Acme.OrganizationID, w.nodes[w.random.IntN(len(w.nodes))], titles[id], servicetest.Writable[w.random.IntN(3)], w.f.ID("ann")); err != nil {
			return err
		}
	}
	change := func(id string) error {
		titles[id] = fmt.Sprintf("changed by %d in turn %d", w.name, round)
		_, err := tx.Exec(ctx, `UPDATE work_orders SET title = $2, status = $3, changed_at = now() WHERE id = $1`,
			id, titles[id], servicetest.Writable[w.random.IntN(3)])
		return err
	}
	for range w.random.IntN(3) {
		if len(w.own) > 0 {
			if err := change(w.own[w.random.IntN(len(w.own))]); err != nil {
				return err
			}
		}
	}
	if w.random.IntN(4) == 0 {
		if err := change(shared); err != nil {
			return err
		}
	}
	held := time.NewTimer(time.Duration(w.random.Int64N(int64(time.Second))))
	defer held.Stop()
	<-held.C
	if w.random.IntN(5) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	delete(titles, shared)
	maps.Copy(w.committed, titles)
	w.own = append(w.own, created...)
	return nil
}

// A client that follows sync tokens sees every change in its newest state, whatever
// writers do, and what moves to where it may read (api.md 4.15).
func TestNoChangeIsLost(t *testing.T) {
	const writers, duration = 8, 8 * time.Second
	f := servicetest.New(t)
	random := servicetest.Seeded(t)
	ctx := t.Context()
	moving := rand.New(rand.NewPCG(random.Uint64(), 99))
	nodes := []string{f.ID("hq"), f.ID("hvac"), f.ID("ahu1"), f.ID("roof")}
	shared := "wo_" + strings.Repeat("5", 26)
	f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		VALUES ($1, $2, $3, 'shared', 'none', 'open', $4, now(), now())`, shared, f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
	all := func(servicetest.Identified) bool { return true }
	pollers := []*servicetest.Poller{
		{Name: "by one", Actor: f.Actor("erp"), Limit: 1, Matches: all},
		{Name: "by pages of 200", Actor: f.Actor("erp"), Limit: 200, Paging: true, Matches: all},
		{
			Name: "by pages of 7, of two statuses", Actor: f.Actor("erp"), Limit: 7, Paging: true,
			Filter:  records.WorkOrderFilter{Statuses: []models.WorkOrderStatus{models.StatusOpen, models.StatusOnHold}},
			Matches: func(r servicetest.Identified) bool { return r.Status.Code != "in_progress" },
		},
		{Name: "by 3, of the nodes it may read", Actor: f.Actor("reader"), Limit: 3},
	}
	visible := map[string]bool{}
	pollers[3].Matches = func(r servicetest.Identified) bool { return visible[r.ID] }

	writing, stop := context.WithCancel(ctx)
	var polling, working sync.WaitGroup
	for _, p := range pollers {
		p.Seen, p.Since = map[string]servicetest.Identified{}, "2020-01-01T00:00:00Z"
		polling.Go(func() {
			again := time.NewTicker(5 * time.Millisecond)
			defer again.Stop()
			for writing.Err() == nil {
				if err := p.Poll(ctx, f.Service); err != nil {
					t.Errorf("%s: %v", p.Name, err)
					return
				}
				<-again.C
			}
		})
	}
	deadline, end := context.WithTimeout(ctx, duration)
	defer end()
	crowd := make([]*writer, writers)
	for i := range crowd {
		w := &writer{
			name: i, f: f, nodes: nodes, committed: map[string]string{},
			random: rand.New(rand.NewPCG(random.Uint64(), uint64(i))),
		}
		crowd[i] = w
		working.Go(func() {
			for round := 0; deadline.Err() == nil; round++ {
				if err := w.write(ctx, round, shared); err != nil {
					t.Errorf("writer %d: %v", w.name, err)
					return
				}
			}
		})
	}
	// ahu1 moves between a node that the reader reads and one that it does not.
	working.Go(func() {
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for deadline.Err() == nil {
			<-again.C
			if moving.IntN(10) == 0 {
				if _, err := f.Pool.Exec(ctx, servicetest.MoveNode, f.ID([]string{"hvac", "mast"}[moving.IntN(2)]), f.ID("ahu1")); err != nil {
					t.Errorf("moving a node: %v", err)
				}
			}
			if _, err := f.RemoveExpired(ctx, 20, func() bool { return true }); err != nil && !strings.Contains(err.Error(), "lock timeout") {
				t.Errorf("housekeeping: %v", err)
			}
		}
	})
	working.Wait()
	stop()
	polling.Wait()
	f.Exec(servicetest.MoveNode, f.ID("hvac"), f.ID("ahu1"))
	f.WaitForOpenTransactions()
	servicetest.Housekeep(t, f)
	f.WaitForOpenTransactions()
	for _, p := range pollers {
		if err := p.Poll(ctx, f.Service); err != nil {
			t.Fatal(err)
		}
	}

	final := map[string]servicetest.Identified{}
	for _, row := range servicetest.RowsOf(t, f, `SELECT json_build_object('id', id, 'title', title, 'status', json_build_object('code', status),
		'visible', inventory_id IN ('`+f.ID("hvac")+`', '`+f.ID("ahu1")+`')) FROM work_orders`) {
		r := servicetest.Read[servicetest.Identified](t, row)
		final[r.ID] = r
		visible[r.ID] = servicetest.Read[struct{ Visible bool }](t, row).Visible
	}
	commits := 1
	for _, w := range crowd {
		for id, title := range w.committed {
			commits++
			if final[id].Title != title {
				t.Errorf("%s was committed as %q, Postgres has %q", id, title, final[id].Title)
			}
		}
	}
	if commits != len(final) || commits < 40 {
		t.Errorf("the writers committed %d work orders, Postgres has %d", commits, len(final))
	}
	for _, p := range pollers {
		for id, want := range final {
			if got := p.Seen[id]; p.Matches(want) && (got.Title != want.Title || got.Status.Code != want.Status.Code) {
				t.Errorf("%s: %s was last listed as %q %s, it is %q %s", p.Name, id, got.Title, got.Status.Code, want.Title, want.Status.Code)
			}
		}
		for id := range p.Seen {
			if _, committed := final[id]; !committed {
				t.Errorf("%s: %s was listed, but never committed", p.Name, id)
			}
		}
	}
	t.Logf("%d work orders committed", commits)
}

// accessChanges are changes of what integrations may read, each with the
// integrations whose sync tokens it voids: the reader has an assignment, dispatch
// has its organization's incoming work orders.
func accessChanges(f *servicetest.Fixture) []struct {
	name, sql string
	args      []any
	void      []string
} {
	type change = struct {
		name, sql string
		args      []any
		void      []string
	}
	assign := `INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)`
	member := `INSERT INTO team_members (team_id, member_id, organization_id) VALUES ($1, $2, $3)`
	acme, reader := f.Acme.OrganizationID, []string{"reader"}
	return []change{
		{"an assignment added", assign, []any{f.ID("roof"), f.ID("reader"), f.ID("working"), acme}, reader},
		{"an assignment with another definition", `UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, []any{f.ID("creating"), f.ID("reader")}, reader},
		{"an assignment on another node", `UPDATE assignments SET node_id = $1 WHERE identity_id = $2`, []any{f.ID("mast"), f.ID("reader")}, reader},
		{"an assignment given to another", `UPDATE assignments SET identity_id = $1 WHERE identity_id = $2`, []any{f.ID("outsider"), f.ID("reader")}, reader},
		{"an assignment removed", `DELETE FROM assignments WHERE identity_id = $1`, []any{f.ID("reader")}, reader},
		{"the definition's grants", `UPDATE permission_definitions SET grants = '{work_orders.read}' WHERE id = $1`, []any{f.ID("reading")}, reader},
		{"the definition no longer applies below", `UPDATE permission_definitions SET applies_below = false WHERE id = $1`, []any{f.ID("reading")}, reader},
		{"a place in a team", member, []any{f.ID("crew"), f.ID("reader"), acme}, reader},
		{"an assignment of the organization", assign, []any{f.ID("roof"), acme, f.ID("working"), acme}, reader},
		{"more scopes", `UPDATE integrations SET scopes = scopes || '{forms:read}' WHERE id = $1`, []any{f.ID("reader")}, reader},
		{"the organization definition's grants", `UPDATE organization_permission_definitions SET grants = '{}' WHERE id = $1`, []any{f.Polar.IDs["org_incoming"]}, []string{"dispatch"}},
		{"another organization definition", `UPDATE integrations SET organization_definition_id = NULL WHERE id = $1`, []any{f.ID("dispatch")}, []string{"dispatch"}},

		{"another's assignment", assign, []any{f.ID("roof"), f.ID("outsider"), f.ID("working"), acme}, nil},
		{"another's assignment removed", `DELETE FROM assignments WHERE identity_id = $1`, []any{f.ID("creator")}, nil},
		{"another's definition", `UPDATE permission_definitions SET grants = '{}' WHERE id = $1`, []any{f.ID("creating")}, nil},
		{"another's place in a team", member, []any{f.ID("crew"), f.ID("cat"), acme}, nil},
		{"another's organization definition", `UPDATE organization_permission_definitions SET grants = '{people}' WHERE id = $1`, []any{f.ID("org_nothing")}, nil},
		{"the name of a definition", `UPDATE permission_definitions SET name = 'Renamed' WHERE id = $1`, []any{f.ID("reading")}, nil},
		{"the name of the integration", `UPDATE identities SET name = 'Renamed' WHERE id = $1`, []any{f.ID("reader")}, nil},
		{"a node moved", `UPDATE inventory_nodes SET parent_id = $1 WHERE id = $2`, []any{f.ID("roof"), f.ID("hvac")}, nil},
		{"a new node", `INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			VALUES ('eqp_00000000000000000000000001', $1, 'equipment', $2, 'x', now(), now())`, []any{acme, f.ID("hvac")}, nil},
		{"a secret renewed", `UPDATE integrations SET secret_hash = sha256('another') WHERE id = $1`, []any{f.ID("reader")}, nil},
		{"a plan with fewer calls", `UPDATE plans SET calls_per_minute = 99 WHERE organization_id = $1`, []any{acme}, nil},
	}
}

func TestSyncTokensAreVoidWhenTheIntegrationsAccessChanges(t *testing.T) {
	t.Parallel()
	for i, named := range accessChanges(servicetest.New(t)) {
		t.Run(named.name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
				SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series(1, 2) n`,
				f.Acme.OrganizationID, f.ID("ahu1"), f.ID("ann"))
			f.Exec(`INSERT INTO work_order_assignees SELECT id, $1, 'worker', 0 FROM work_orders`, f.ID("polar"))
			f.WaitForOpenTransactions()
			first := lists.ListRequest{Limit: 1, ChangedSince: "2020-01-01T00:00:00Z"}
			list := func(who string, request lists.ListRequest) (servicetest.Page, error) {
				body, err := f.WorkOrders(t.Context(), f.Actor(who), records.WorkOrderFilter{}, request)
				if err != nil {
					return servicetest.Page{}, err
				}
				return servicetest.Read[servicetest.Page](t, body), nil
			}
			before := map[string]servicetest.Page{}
			for _, who := range []string{"reader", "dispatch"} {
				var err error
				if before[who], err = list(who, first); err != nil || before[who].NextCursor == "" {
					t.Fatalf("%s: %v, %v, want a page of more", who, before[who], err)
				}
			}
			change := accessChanges(f)[i]
			f.Exec(change.sql, change.args...)
			for who, given := range before {
				want := models.Code("")
				if slices.Contains(change.void, who) {
					want = models.CodeCursorExpired
				}
				for name, request := range map[string]lists.ListRequest{
					"sync token": {Limit: 1, ChangedSince: given.SyncToken},
					"cursor":     {Limit: 1, ChangedSince: first.ChangedSince, Cursor: given.NextCursor},
				} {
					if _, err := list(who, request); models.CodeOf(err) != want {
						t.Errorf("the %s of %s: error %v, want %q", name, who, err, want)
					}
				}
				// Starting over always works.
				fresh, err := list(who, first)
				if err == nil {
					_, err = list(who, lists.ListRequest{Limit: 1, ChangedSince: fresh.SyncToken})
				}
				if err != nil {
					t.Errorf("%s starts over: %v", who, err)
				}
			}
		})
	}
}
