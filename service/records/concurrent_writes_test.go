package records_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// together runs the writes concurrently, and returns the error of each.
func together(writes ...func() error) []error {
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, write := range writes {
		all.Go(func() { errs[i] = write() })
	}
	all.Wait()
	return errs
}

// Writes at the same time return and leave each its own.
func TestConcurrentWrites(t *testing.T) {
	f := servicetest.NewHarness(t)
	const creations = 8
	erp, bodies := f.Actor("erp"), make([][]byte, creations)
	var writes []func() error
	for i := range bodies {
		writes = append(writes, func() error {
			result, err := f.Records.CreateWorkOrder(t.Context(), erp, store.ForCall(fmt.Sprint(i), "POST", "/x", []byte("f"), ""),
				records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: fmt.Sprint("Replace filter ", i), Assignees: f.IDs("ann"), Consultants: f.IDs("cat")})
			bodies[i] = result.Body
			return err
		})
	}
	servicetest.Must(t, together(writes...)...)
	numbers := map[int64]bool{}
	for i, body := range bodies {
		got := servicetest.Read[models.WorkOrderRecord](t, body)
		servicetest.Expect(t, "the title", got.Title, fmt.Sprint("Replace filter ", i))
		numbers[got.Number] = true
		for what, sql := range map[string]string{
			"history":          `SELECT count(*) FROM history WHERE record_id = $1 AND changes -> 'title' ->> 'to' = $2`,
			"events":           `SELECT count(*) FROM events WHERE record_id = $1 AND $2 <> ''`,
			"stored responses": `SELECT count(*) FROM stored_responses WHERE record_id = $1 AND convert_from(body, 'UTF8') LIKE '%' || $2 || '%'`,
			"half the notices": `SELECT count(*) / 2 FROM notices WHERE record_id = $1 AND $2 <> ''`,
		} {
			servicetest.Expect(t, fmt.Sprint(what, " of creation ", i), servicetest.Value[int](f.Fixture, sql, got.ID, got.Title), 1)
		}
	}
	servicetest.Expect(t, "different numbers", len(numbers), creations)
}

// A change waits for another process that changes its work order, and then applies to what that has
// committed. Another work order's change does not wait.
func TestAWriteWaitsForALock(t *testing.T) {
	f := servicetest.NewHarness(t)
	held, free := f.NewWorkOrder([]string{"erp"}, nil), f.NewWorkOrder([]string{"erp"}, nil)
	other := servicetest.Begin(t, f.Fixture)
	servicetest.ExecIn(t, other, `UPDATE work_orders SET title = 'Held', changed_at = changed_at + interval '1 hour' WHERE id = $1`, held)
	erp := f.Actor("erp")
	change := func(id, title string) error {
		_, err := f.Records.UpdateWorkOrder(t.Context(), erp, store.ForCall(title, "PATCH", "/x", []byte("f"), ""), id,
			records.WorkOrderPatch{Title: sent(title)})
		return err
	}
	waited := make(chan error, 1)
	go func() { waited <- change(held, "Changed after") }()
	servicetest.AwaitLocks(t, f.Fixture, 1)
	servicetest.Must(t, change(free, "Free"), other.Commit(t.Context()))
	servicetest.Must(t, <-waited)
	servicetest.Expect(t, "the title that the change that waited replaced", servicetest.Value[string](f.Fixture, `SELECT changes -> 'title' ->> 'from' FROM history WHERE record_id = $1 AND action = 'work_order.updated'`, held), "Held")
	if ordered := servicetest.Value[bool](f.Fixture, `SELECT changed_at > created_at + interval '1 hour' FROM work_orders WHERE id = $1`, held); !ordered {
		t.Error("the change that waited is not later than the one before")
	}
}

// A call that ends no longer waits for other changes of its work order.
func TestACallEndsWhileItsWriteWaits(t *testing.T) {
	f := servicetest.NewHarness(t)
	id, erp := f.NewWorkOrder([]string{"erp"}, nil), f.Actor("erp")
	other := servicetest.Begin(t, f.Fixture)
	servicetest.ExecIn(t, other, `SELECT FROM work_orders WHERE id = $1 FOR UPDATE`, id)
	change := func(ctx context.Context, title string) error {
		return servicetest.ErrorOf(f.Records.UpdateWorkOrder(ctx, erp, store.NoKey, id, records.WorkOrderPatch{Title: sent(title)}))
	}
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- change(t.Context(), "First") }()
	servicetest.AwaitLocks(t, f.Fixture, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { second <- change(ctx, "Second") }()
	servicetest.Await(t, "the second change waits for the first", func() bool { return storetest.WritesWaiting(f.Store) == 1 })
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
	servicetest.Expect(t, "writes that still wait", storetest.WritesWaiting(f.Store), 0)
	servicetest.Must(t, other.Rollback(t.Context()))
	servicetest.Must(t, <-first)
}

// Concurrent writes that many addresses receive leave a delivery of each to each.
func TestConcurrentWritesToManyAddresses(t *testing.T) {
	f := servicetest.NewHarness(t)
	const writes, addresses = 5, 100
	f.AddAddresses(addresses)
	f.Exec(`INSERT INTO assignments (organization_id, node_id, identity_id, definition_id)
		SELECT a.organization_id, a.node_id, i.id, a.definition_id
		FROM assignments a, integrations i WHERE a.identity_id = $1 AND i.id LIKE 'idn\_0000%'`, f.ID("erp"))
	f.As("erp") // loaded before the writes run at the same time
	servicetest.Must(t, together(slices.Repeat([]func() error{func() error { return creates(f, "erp") }}, writes)...)...)
	servicetest.Expect(t, "deliveries", servicetest.Value[int](f.Fixture, `SELECT count(DISTINCT (event_id, webhook_id)) FROM all_deliveries WHERE webhook_id LIKE 'whk\_0000%'`), writes*addresses)
}

// A replacement that runs again after a deadlock follows the role that the person has by then.
func TestAReplacementRunsAgainWithoutMemory(t *testing.T) {
	f := servicetest.NewHarness(t)
	id := f.NewWorkOrder([]string{"erp"}, []string{"cat"})
	f.Exec(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF OLD.role = 'consultant' THEN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END IF; RETURN OLD; END $$`)
	f.Exec(`CREATE TRIGGER lose BEFORE DELETE ON work_order_assignees FOR EACH ROW EXECUTE FUNCTION lose()`)
	runs := 0
	s := f.NewInstance(func(o *store.Options) {
		o.Now = func() time.Time {
			if runs++; runs == secondRun {
				f.Exec(`UPDATE work_order_assignees SET role = 'worker' WHERE work_order_id = $1 AND identity_id = $2`, id, f.ID("cat"))
			}
			return f.Clock.Now()
		}
	})
	servicetest.Must(t, records.ReplaceAssignee(t.Context(), s.Store, f.As("ann"), id, f.ID("cat"), f.ID("dan")))
	if got := servicetest.Value[string](f.Fixture, `SELECT role FROM work_order_assignees WHERE work_order_id = $1 AND identity_id = $2`, id, f.ID("dan")); got != "worker" || runs < secondRun {
		t.Errorf("after %d looks at the clock the replacement is a %s, want a worker", runs, got)
	}
}

// secondRun is the look at the clock with which a transaction runs again: each run takes two, for the time of the write and for
// the age of stored responses.
const secondRun = 3
