package upkeep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/upkeep"
)

// moveOfHVAC is an import that moves hvac, with ahu1 and fan1 below, to the roof.
const moveOfHVAC = `
organization: {key: acme, name: Acme Facilities}
inventory: [{key: hq, kind: location, name: Headquarters, children: [{key: roof, kind: location, name: Roof,
  children: [{key: hvac, kind: system, name: HVAC}]}]}]
`

// plantBelow inserts work orders of a node with the numbers from first to last in
// their ids.
func plantBelow(f *servicetest.Fixture, node string, first, last int) {
	f.Plant(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series($4::integer, $5) n`,
		f.Acme.OrganizationID, node, f.ID("ann"), first, last)
}

// repositionedSince counts the rows that were repositioned after the transaction.
func repositionedSince(f *servicetest.Fixture, table string, xid uint64) int {
	return servicetest.Value[int](f, `SELECT count(*) FROM `+table+` WHERE changed_xid > ($1::bigint)::text::xid8`, int64(xid))
}

func moves(f *servicetest.Fixture) int {
	return servicetest.Value[int](f, `SELECT count(*) FROM moved_nodes`)
}

// An import that moves a node repositions nothing below it and waits for no writer of
// records below. Housekeeping repositions them in batches, and continues after an
// interruption where it stopped.
func TestAMoveLeavesTheRecordsBelowToHousekeeping(t *testing.T) {
	const many = 2500
	f := servicetest.New(t)
	plantBelow(f, f.ID("ahu1"), 1, many)
	plantBelow(f, f.ID("roof"), many+1, many+10)
	_, err := f.Records.CreateFeedback(t.Context(), f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("fan1"), Subject: "Noise"})
	servicetest.Must(t, err)
	writing := servicetest.Begin(t, f)
	insertBelow(t, f, writing, "ahu1", many+11)
	before := servicetest.Value[uint64](f, `SELECT pg_current_xact_id()`)
	f.Clock.Advance(time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := f.Imports.Run(ctx, []byte(moveOfHVAC)); err != nil {
		t.Fatalf("the move waits for a creation: %v", err)
	}
	if got := []int{repositionedSince(f, "work_orders", before), repositionedSince(f, "feedback", before), repositionedSince(f, "inventory_nodes", before), moves(f)}; !slices.Equal(got, []int{0, 0, 1, 1}) {
		t.Errorf("the import repositioned %d work orders, %d feedback and %d nodes and left %d moves, want the node alone and one move", got[0], got[1], got[2], got[3])
	}
	servicetest.Expect(t, "the fan's ancestors with itself and the roof",
		servicetest.Value[int](f, `SELECT count(*) FROM inventory_closure WHERE node_id = $1`, f.ID("fan1")), 5)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got != (upkeep.RemovalResult{}) || moves(f) != 1 {
		t.Errorf("while an earlier transaction runs, housekeeping did %+v and left %d moves", got, moves(f))
	}
	servicetest.Must(t, writing.Commit(t.Context()))
	f.WaitForOpenTransactions()

	transactions := 0
	f.Service = f.NewInstance(func(o *store.Options) { o.AfterCommit = func() { transactions++ } })
	first := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, upkeep.Expiries+1) // one for each table, then another batch of records
	if first.Repositioned != 2*upkeep.RemovalBatch || !first.More || transactions != upkeep.Expiries+1 {
		t.Errorf("the first %d transactions did %+v", transactions, first)
	}
	f.Service = f.NewInstance(func(o *store.Options) { o.AfterCommit = func() { transactions++ } })
	transactions = 0
	rest := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0)
	if total := first.Repositioned + rest.Repositioned; total != many+1+1+2 || moves(f) != 0 || transactions != upkeep.Expiries {
		t.Errorf("%d records were repositioned, %d moves are left after %d more transactions; want all records, with two nodes, once", total, moves(f), transactions)
	}
	servicetest.Expect(t, "work orders were repositioned", repositionedSince(f, "work_orders", before), many+1)
	servicetest.Expect(t, "nodes changed at the time of the move",
		servicetest.Value[int](f, `SELECT count(*) FROM inventory_nodes WHERE changed_at = $1`, f.Clock.Now()), 3)
	servicetest.Expect(t, "work orders with another changed_at, as a move is no change of them",
		servicetest.Value[int](f, `SELECT count(*) FROM work_orders WHERE changed_at <> created_at`), 0)
	if got := servicetest.Remove(t, f.Service, upkeep.RemovalBatch, 0); got != (upkeep.RemovalResult{}) {
		t.Errorf("once more, housekeeping did %+v", got)
	}
}

// workOrderID is the id of the n-th work order of plantBelow.
func workOrderID(n int) string { return fmt.Sprintf("wo_%026d", n) }

// plantNode inserts a node of the first organization.
func plantNode(f *servicetest.Fixture, id, kind, parent string) {
	f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
		SELECT $1, organization_id, $2, id, 'x', now(), now() FROM inventory_nodes WHERE id = $3`, id, kind, parent)
}

func insertBelow(t *testing.T, f *servicetest.Fixture, tx pgx.Tx, node string, n int) {
	t.Helper()
	servicetest.ExecIn(t, tx, `INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
		VALUES ($1, $2, $3, 'x', 'none', 'open', $4, now(), now())`, workOrderID(n), f.Acme.OrganizationID, f.ID(node), f.ID("ann"))
}

// A client that follows tokens sees every record below a moved node that it may read
// then, in its newest state, whatever happens when. The reader reads hvac and what is
// below it; mast moves there from the roof with the work orders 10 to 39. pump is an
// equipment below mast.
func TestFollowersSeeEverythingBelowAMove(t *testing.T) {
	t.Parallel()
	type scene struct {
		*servicetest.Fixture
		t    *testing.T
		poll func()
		move func()
	}
	for name, play := range map[string]func(s scene){
		"nothing else": func(s scene) { s.move() },
		"a record committed after the move by an earlier transaction": func(s scene) {
			early := servicetest.Begin(s.t, s.Fixture)
			insertBelow(s.t, s.Fixture, early, "mast", 5)
			s.move()
			s.poll()
			if n := servicetest.Housekeep(s.t, s.Fixture); n != 0 || moves(s.Fixture) != 1 {
				s.t.Errorf("housekeeping repositioned %d records while one may be missing", n)
			}
			servicetest.Must(s.t, early.Commit(s.t.Context()))
		},
		"a record changed by an earlier transaction": func(s scene) {
			early := servicetest.Begin(s.t, s.Fixture)
			servicetest.ExecIn(s.t, early, `UPDATE work_orders SET title = 'new' WHERE id = $1`, workOrderID(20))
			s.move()
			s.poll()
			servicetest.Housekeep(s.t, s.Fixture)
			servicetest.Must(s.t, early.Commit(s.t.Context()))
		},
		"a record committed while the move runs": func(s scene) {
			moving := servicetest.Begin(s.t, s.Fixture)
			servicetest.ExecIn(s.t, moving, servicetest.MoveNode, s.ID("hvac"), s.ID("mast"))
			during := servicetest.Begin(s.t, s.Fixture)
			insertBelow(s.t, s.Fixture, during, "mast", 5)
			servicetest.Must(s.t, during.Commit(s.t.Context()))
			s.poll()
			servicetest.Housekeep(s.t, s.Fixture)
			s.poll()
			servicetest.Must(s.t, moving.Commit(s.t.Context()))
		},
		"a record committed behind the batches by a later transaction": func(s scene) {
			s.move()
			s.WaitForOpenTransactions()
			late := servicetest.Begin(s.t, s.Fixture)
			insertBelow(s.t, s.Fixture, late, "mast", 5)
			if n := servicetest.Housekeep(s.t, s.Fixture); n != 31 || moves(s.Fixture) != 0 {
				s.t.Errorf("housekeeping repositioned %d records, want all 31", n)
			}
			s.poll()
			servicetest.Must(s.t, late.Commit(s.t.Context()))
		},
		"a record changed while a batch has repositioned it, and pages in between": func(s scene) {
			s.move()
			s.WaitForOpenTransactions()
			release := servicetest.Hold(s.t, s.Fixture, `AFTER UPDATE ON work_orders FOR EACH ROW WHEN (OLD.id = '`+workOrderID(20)+`' AND OLD.title = NEW.title)`)
			repositioned := make(chan int, 1)
			go func() { repositioned <- servicetest.Housekeep(s.t, s.Fixture) }()
			servicetest.AwaitLocks(s.t, s.Fixture, 1)
			s.poll()
			changed := make(chan error, 1)
			go func() {
				changed <- pgx.BeginFunc(s.t.Context(), s.Pool, func(tx pgx.Tx) error {
					return servicetest.Write(s.t.Context(), tx, `UPDATE work_orders SET title = 'new' WHERE id = $1`, workOrderID(20))
				})
			}()
			servicetest.AwaitLocks(s.t, s.Fixture, 2)
			s.poll()
			release()
			if err := <-changed; err != nil {
				s.t.Error(err)
			}
			<-repositioned
		},
		"a batch that meets a locked record": func(s scene) {
			s.move()
			s.WaitForOpenTransactions()
			locking := servicetest.Begin(s.t, s.Fixture)
			servicetest.ExecIn(s.t, locking, `UPDATE work_orders SET title = 'new' WHERE id = $1`, workOrderID(20))
			for i := range 30 {
				revokedToken(s.Fixture, workOrderID(i), 2*time.Hour)
			}
			removed, err := s.Upkeep.RemoveExpired(s.t.Context(), 7, func() bool { return true })
			if err == nil || !strings.Contains(err.Error(), "lock timeout") {
				s.t.Errorf("housekeeping ended with %v, want a lock timeout", err)
			}
			if removed.RevokedTokens != 30 {
				s.t.Errorf("housekeeping removed %d revoked tokens during the moves, want all", removed.RevokedTokens)
			}
			s.poll()
			servicetest.Must(s.t, locking.Commit(s.t.Context()))
		},
		"a node below that moves on between two batches": func(s scene) {
			s.move()
			s.WaitForOpenTransactions()
			servicetest.Remove(s.t, s.Service, 7, 8)
			s.poll()
			s.Exec(servicetest.MoveNode, s.ID("hvac"), "eqp_"+workOrderID(1)[3:])
		},
		"a node below that moves on by a transaction with an earlier id": func(s scene) {
			second := servicetest.Begin(s.t, s.Fixture)
			servicetest.ExecIn(s.t, second, `SELECT pg_current_xact_id()`)
			between := servicetest.Begin(s.t, s.Fixture)
			servicetest.ExecIn(s.t, between, `INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
				VALUES ($1, $2, $3, 'x', 'none', 'open', $4, now(), now())`, workOrderID(5), s.Acme.OrganizationID, "eqp_"+workOrderID(1)[3:], s.ID("ann"))
			servicetest.Must(s.t, between.Commit(s.t.Context()))
			s.move()
			s.poll()
			servicetest.ExecIn(s.t, second, servicetest.MoveNode, s.ID("hvac"), "eqp_"+workOrderID(1)[3:])
			s.poll()
			servicetest.Must(s.t, second.Commit(s.t.Context()))
		},
		"a move there and back and there again": func(s scene) {
			s.move()
			s.Exec(servicetest.MoveNode, s.ID("roof"), s.ID("mast"))
			s.WaitForOpenTransactions()
			servicetest.Remove(s.t, s.Service, 7, 8)
			s.poll()
			s.move()
		},
		"a moved node that is removed": func(s scene) {
			plantNode(s.Fixture, "sys_x", "system", s.ID("roof"))
			s.Exec(servicetest.MoveNode, s.ID("hvac"), "sys_x")
			s.Exec(`DELETE FROM inventory_nodes WHERE id = 'sys_x'`)
			s.move()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := servicetest.New(t)
			pump := "eqp_" + workOrderID(1)[3:]
			plantNode(f, pump, "equipment", f.ID("mast"))
			plantBelow(f, f.ID("mast"), 10, 24)
			plantBelow(f, pump, 25, 39)
			f.WaitForOpenTransactions()
			follower := &servicetest.Poller{Name: "reader", Actor: f.Actor("reader"), Limit: 3, Seen: map[string]servicetest.Identified{}, Since: "2020-01-01T00:00:00Z"}
			s := scene{
				Fixture: f, t: t,
				poll: func() {
					t.Helper()
					servicetest.Must(t, follower.Poll(t.Context(), f.Service))
				},
				move: func() { f.Exec(servicetest.MoveNode, f.ID("hvac"), f.ID("mast")) },
			}
			s.poll()
			if len(follower.Seen) != 0 {
				t.Fatalf("before the move the reader sees %v", follower.Seen)
			}
			play(s)
			for range 2 {
				s.poll()
				f.WaitForOpenTransactions()
				servicetest.Housekeep(t, f)
				f.WaitForOpenTransactions()
			}
			s.poll()
			servicetest.Expect(t, "moves left", moves(f), 0)
			for _, row := range servicetest.RowsOf(t, f, `SELECT json_build_object('id', id, 'title', title) FROM work_orders`) {
				want := servicetest.Read[servicetest.Identified](t, row)
				if got := follower.Seen[want.ID]; got.Title != want.Title {
					t.Errorf("%s was last seen as %q, it is %q", want.ID, got.Title, want.Title)
				}
			}
		})
	}
}

// Many moved nodes share a batch, and a large one delays a small one by one batch.
func TestMovesShareBatches(t *testing.T) {
	f := servicetest.New(t)
	plantBelow(f, f.ID("hvac"), 1, 500)
	f.Exec(servicetest.MoveNode, f.ID("roof"), f.ID("hvac"))
	for i := range 20 {
		id := "sys_" + workOrderID(i)[3:]
		plantNode(f, id, "system", f.ID("hq"))
		plantBelow(f, id, 1000+i, 1000+i)
		f.Exec(servicetest.MoveNode, f.ID("roof"), id)
	}
	f.WaitForOpenTransactions()
	// 105 records are five for each of the 21 moves.
	if got := servicetest.Remove(t, f.Service, 105, 8); got.Repositioned != 20+4 || moves(f) != 1 {
		t.Errorf("the first batch repositioned %d records and left %d moves, want one record below each small move", got.Repositioned, moves(f))
	}
	if got := servicetest.Remove(t, f.Service, 105, 0); got.Repositioned != 500+2-4 || moves(f) != 0 {
		t.Errorf("the others repositioned %d records and left %d moves", got.Repositioned, moves(f))
	}
}

// Organizations share a batch, whatever the number of their moves.
func TestOrganizationsShareBatchesOfMoves(t *testing.T) {
	f := servicetest.New(t)
	move := func(organization, above, to string, n, records int) {
		t.Helper()
		id := "sys_" + workOrderID(n)[3:]
		plantNode(f, id, "system", above)
		f.Exec(`INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			SELECT 'wo_' || lpad(n::text, 26, '0'), $1, $2, 'x', 'none', 'open', $3, now(), now() FROM generate_series($4::integer, $5) n`,
			organization, id, f.ID("ann"), 1000*n, 1000*n+records-1)
		f.Exec(servicetest.MoveNode, to, id)
	}
	for n := range 30 {
		move(f.Acme.OrganizationID, f.ID("hq"), f.ID("hvac"), n+1, 10)
	}
	for _, id := range []string{"loc_a", "loc_b"} {
		f.Exec(`INSERT INTO inventory_nodes (id, organization_id, kind, name, created_at, changed_at)
			VALUES ($1, $2, 'location', 'x', now(), now())`, id, f.Polar.OrganizationID)
	}
	move(f.Polar.OrganizationID, "loc_a", "loc_b", 40, 100)
	f.WaitForOpenTransactions()
	before := servicetest.Value[uint64](f, `SELECT pg_current_xact_id()`)
	repositioned := func(organization string) int {
		return servicetest.Value[int](f, `SELECT count(*) FROM work_orders WHERE organization_id = $1 AND changed_xid > ($2::bigint)::text::xid8`, organization, int64(before))
	}
	// Each move has its node, which is not repositioned again, before its work orders.
	servicetest.Remove(t, f.Service, 20, 8)
	if acme, polar := repositioned(f.Acme.OrganizationID), repositioned(f.Polar.OrganizationID); acme != 0 || polar != 9 {
		t.Errorf("of 20 records the first batch repositioned %d work orders below 30 moves of one organization and %d below one move of another, want the nodes of ten moves and 9 work orders", acme, polar)
	}
	servicetest.Housekeep(t, f)
	if acme, polar := repositioned(f.Acme.OrganizationID), repositioned(f.Polar.OrganizationID); acme != 300 || polar != 100 || moves(f) != 0 {
		t.Errorf("%d and %d work orders are repositioned and %d moves left, want all repositioned", acme, polar, moves(f))
	}
}

// A node that is inserted below a moving one gets the ancestors after the move.
func TestANodeInsertedDuringAMove(t *testing.T) {
	f := servicetest.New(t)
	moving := servicetest.Begin(t, f)
	servicetest.ExecIn(t, moving, servicetest.MoveNode, f.ID("roof"), f.ID("hvac"))
	inserted := make(chan error, 1)
	go func() {
		_, err := f.Pool.Exec(t.Context(), `INSERT INTO inventory_nodes (id, organization_id, kind, parent_id, name, created_at, changed_at)
			VALUES ('eqp_new', $1, 'equipment', $2, 'x', now(), now())`, f.Acme.OrganizationID, f.ID("hvac"))
		inserted <- err
	}()
	servicetest.AwaitLocks(t, f, 1)
	servicetest.Must(t, moving.Commit(t.Context()))
	servicetest.Must(t, <-inserted)
	servicetest.Expect(t, "the new node's ancestors: itself, hvac, roof and hq",
		servicetest.Value[int](f, `SELECT count(*) FROM inventory_closure WHERE node_id = 'eqp_new'`), 4)
}
