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

// Writes at the same time leave what each would have left alone.
func TestConcurrentWrites(t *testing.T) {
	f := servicetest.NewHarness(t)
	id := f.NewWorkOrder([]string{"erp"}, nil)
	title := "Replace belt"
	bodies := make([][]byte, 9)
	writes := []func() error{
		func() error {
			result, err := f.Records.UpdateWorkOrder(t.Context(), f.Actor("erp"), store.ForCall("k", "PATCH", "/x", []byte("f"), ""), id,
				records.WorkOrderPatch{Title: sent(title)})
			bodies[0] = result.Body
			return err
		},
		func() error {
			_, err := f.Records.CreateFeedback(t.Context(), f.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"})
			return err
		},
	}
	for i := range 7 {
		writes = append(writes, func() error {
			result, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.ForCall(fmt.Sprint(i), "POST", "/x", []byte("f"), ""),
				records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: fmt.Sprintf("Replace filter %d", i), Assignees: f.IDs("ann"), Consultants: f.IDs("cat")})
			bodies[i+2] = result.Body
			return err
		})
	}
	servicetest.Must(t, together(writes...)...)
	if got := servicetest.Read[models.WorkOrderRecord](t, bodies[0]); got.ID != id || got.Title != title {
		t.Errorf("the change returned %s %q", got.ID, got.Title)
	}
	numbers := map[int64]bool{}
	for i := range 7 {
		got := servicetest.Read[models.WorkOrderRecord](t, bodies[i+2])
		if want := fmt.Sprintf("Replace filter %d", i); got.Title != want || len(got.Assignees) != 1 || len(got.Consultants) != 1 {
			t.Errorf("creation %d returned %q for %v and %v", i, got.Title, got.Assignees, got.Consultants)
		}
		numbers[got.Number] = true
		for what, sql := range map[string]string{
			"history":          `SELECT count(*) FROM history WHERE record_id = $1 AND changes -> 'title' ->> 'to' = $2`,
			"log records":      `SELECT count(*) FROM log_records WHERE record_id = $1 AND $2 <> ''`,
			"events":           `SELECT count(*) FROM events WHERE record_id = $1 AND $2 <> ''`,
			"dirty records":    `SELECT count(*) FROM dirty_records WHERE record_id = $1 AND $2 <> ''`,
			"stored responses": `SELECT count(*) FROM stored_responses WHERE record_id = $1 AND convert_from(body, 'UTF8') LIKE '%' || $2 || '%'`,
		} {
			servicetest.Expect(t, fmt.Sprint(what, " of creation ", i), servicetest.Value[int](f.Fixture, sql, got.ID, got.Title), 1)
		}
		delivered := `SELECT string_agg(d.webhook_id, ' ' ORDER BY d.webhook_id) FROM all_deliveries d JOIN events e ON e.id = d.event_id
			WHERE e.record_id = $1 AND d.record_id = $1 AND e.type = 'work_order.created'`
		if got, alone := servicetest.Value[string](f.Fixture, delivered, got.ID), servicetest.Value[string](f.Fixture, delivered, id); got != alone {
			t.Errorf("creation %d goes to %s, one that ran alone to %s", i, got, alone)
		}
		servicetest.Expect(t, fmt.Sprint("people, ann and cat, notified of creation ", i), servicetest.Value[int](f.Fixture, `SELECT count(*) FROM notices WHERE record_id = $1`, got.ID), 2)
	}
	if len(numbers) != 7 {
		t.Errorf("the creations have the numbers %v, want seven", numbers)
	}
}

// A write that fails leaves no rows and no connection in use, and those at the same time succeed.
func TestOneOfConcurrentWritesFails(t *testing.T) {
	noise := func(f *servicetest.Harness, _ string) error {
		_, err := f.Records.CreateFeedback(t.Context(), f.As("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"})
		return err
	}
	titled := func(title string) func(f *servicetest.Harness, id string) error {
		return func(f *servicetest.Harness, id string) error {
			return updates(f, "erp", id, records.WorkOrderPatch{Title: sent(title)})
		}
	}
	const violated = `RAISE EXCEPTION 'no' USING ERRCODE = '23000', CONSTRAINT = 'feedback_external_id'`
	for name, test := range map[string]struct {
		// action is what the trigger does to the writes that its condition selects.
		action, trigger string
		write           func(f *servicetest.Harness, id string) error
		code            models.Code
	}{
		"a rule rejects it": {
			write: func(f *servicetest.Harness, id string) error { return does(f, "rita", models.OperationCancel, id) },
			code:  models.CodePermissionDenied,
		},
		"its record is unknown": {
			write: func(f *servicetest.Harness, _ string) error {
				return does(f, "erp", models.OperationCancel, "wo_01kjq7k69re00b2a00av14smbj")
			},
			code: models.CodeNotFound,
		},
		"a trigger rejects it": {
			action: violated, trigger: `TRIGGER act BEFORE INSERT ON feedback FOR EACH ROW`, write: noise, code: models.CodeExternalIDTaken,
		},
		"its commit is rejected": {
			action: violated, trigger: `CONSTRAINT TRIGGER act AFTER UPDATE ON work_orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.title = 'Refuse')`,
			write: titled("Refuse"), code: models.CodeExternalIDTaken,
		},
		"its connection is lost": {
			action: `PERFORM pg_terminate_backend(pg_backend_pid())`, trigger: `TRIGGER act BEFORE UPDATE ON work_orders FOR EACH ROW WHEN (NEW.title = 'Break')`,
			write: titled("Break"), code: models.CodeUnavailable,
		},
		"it panics": {
			write: func(f *servicetest.Harness, id string) (err error) {
				defer func() {
					if recover() != nil {
						err = models.NotFound()
					}
				}()
				return f.Store.Run(t.Context(), f.Acme.OrganizationID, store.Lock{Table: "work_orders", ID: id}, nil, func(tx *store.Tx) error {
					_, _ = tx.Guard(t.Context(), `INSERT INTO log (organization_id, record_id, action, changes, created_at) VALUES ($1, $2, 'x', '{}', now())`, f.Acme.OrganizationID, id)
					panic("a bug")
				})
			}, code: models.CodeNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.NewHarness(t)
			if test.trigger != "" {
				f.Exec(`CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + test.action + `; RETURN NEW; END $$`)
				f.Exec(`CREATE ` + test.trigger + ` EXECUTE FUNCTION act()`)
			}
			id := f.NewWorkOrder([]string{"erp"}, nil)
			before := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM history`)
			create := func() error { return creates(f, "erp") }
			f.As("rita") // loaded before the writes run at the same time
			errs := together(create, func() error { return test.write(f, id) }, create)
			if errs[0] != nil || errs[2] != nil || models.CodeOf(errs[1]) != test.code {
				t.Errorf("the errors are %v, want only the second write rejected, with %s", errs, test.code)
			}
			servicetest.Expect(t, "committed changes", servicetest.Value[int](f.Fixture, `SELECT count(*) FROM history`)-before, 2)
			servicetest.Await(t, "no connection is in use", func() bool { return f.Store.Pool.Stat().AcquiredConns() == 0 })
			servicetest.Must(t, does(f, "erp", models.OperationUpdate, id)) // the next change of the work order
		})
	}
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
