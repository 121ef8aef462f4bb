package lists_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"millwright/models"
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
		if err := servicetest.Write(ctx, tx, `
			INSERT INTO work_orders (id, organization_id, inventory_id, title, priority, status, created_by, created_at, changed_at)
			VALUES ($1, $2, $3, $4, 'none', $5, $6, now(), now())`,
			id, w.f.Acme.OrganizationID, w.nodes[w.random.IntN(len(w.nodes))], titles[id], servicetest.Writable[w.random.IntN(3)], w.f.ID("ann")); err != nil {
			return err
		}
	}
	change := func(id string) error {
		titles[id] = fmt.Sprintf("changed by %d in turn %d", w.name, round)
		return servicetest.Write(ctx, tx, `UPDATE work_orders SET title = $2, status = $3, changed_at = now() WHERE id = $1`,
			id, titles[id], servicetest.Writable[w.random.IntN(3)])
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
			if _, err := f.Upkeep.RemoveExpired(ctx, 20, func() bool { return true }); err != nil && !strings.Contains(err.Error(), "lock timeout") {
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
		servicetest.Must(t, p.Poll(ctx, f.Service))
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
