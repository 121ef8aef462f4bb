package records_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// together runs the writes concurrently, so that they share a transaction unless
// their conflict keys overlap, and returns the error of each.
func together(t *testing.T, s *store.Store, writes ...func() error) []error {
	t.Helper()
	release := storetest.HoldWrites(t.Context(), s)
	errs := make([]error, len(writes))
	var all sync.WaitGroup
	for i, write := range writes {
		all.Go(func() { errs[i] = write() })
		servicetest.Await(t, "a write waits for a transaction", func() bool { return storetest.WritesWaiting(s) > i })
	}
	release()
	all.Wait()
	return errs
}

func TestConcurrentWritesShareATransaction(t *testing.T) {
	f := servicetest.NewHarness(t)
	id := f.NewWorkOrder([]string{"erp"}, nil)
	title := "Replace belt"
	bodies := make([][]byte, 9)
	writes := []func() error{
		func() error {
			result, err := f.Records.UpdateWorkOrder(t.Context(), f.Actor("erp"), store.ForCall("k", "PATCH", "/x", []byte("f"), ""), id,
				records.WorkOrderPatch{Title: records.Sent[string]{Value: title, Set: true}})
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
	for i, err := range together(t, f.Store, writes...) {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if n := servicetest.Value[int](f.Fixture, `SELECT count(DISTINCT xmin::text) FROM log WHERE action <> 'work_order.created' OR record_id <> $1`, id); n != 1 {
		t.Errorf("the nine writes took %d transactions, want 1", n)
	}
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
			if n := servicetest.Value[int](f.Fixture, sql, got.ID, got.Title); n != 1 {
				t.Errorf("creation %d left %d %s, want 1", i, n, what)
			}
		}
		delivered := `SELECT string_agg(d.webhook_id, ' ' ORDER BY d.webhook_id) FROM all_deliveries d JOIN events e ON e.id = d.event_id
			WHERE e.record_id = $1 AND d.record_id = $1 AND e.type = 'work_order.created'`
		if got, alone := servicetest.Value[string](f.Fixture, delivered, got.ID), servicetest.Value[string](f.Fixture, delivered, id); got != alone {
			t.Errorf("creation %d goes to %s, one that ran alone to %s", i, got, alone)
		}
		if n := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM notices WHERE record_id = $1`, got.ID); n != 2 {
			t.Errorf("creation %d notified %d people, want ann and cat", i, n)
		}
	}
	if len(numbers) != 7 {
		t.Errorf("the creations have the numbers %v, want seven", numbers)
	}
}

// A write that fails gets its own error, as if it were alone, and the others succeed.
func TestOneOfAGroupFails(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(f *servicetest.Harness)
		write   func(f *servicetest.Harness, id string) error
		code    models.Code
		panics  bool
	}{
		"a rule rejects it": {
			write: func(f *servicetest.Harness, id string) error {
				_, err := f.Records.CancelWorkOrder(t.Context(), f.As("rita"), store.NoKey, id, nil)
				return err
			}, code: models.CodePermissionDenied,
		},
		"its record is unknown": {
			write: func(f *servicetest.Harness, _ string) error {
				_, err := f.Records.CancelWorkOrder(t.Context(), f.As("erp"), store.NoKey, "wo_01kjq7k69re00b2a00av14smbj", nil)
				return err
			}, code: models.CodeNotFound,
		},
		"a trigger rejects it": {
			prepare: func(f *servicetest.Harness) {
				f.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					RAISE EXCEPTION 'no' USING ERRCODE = '23000', CONSTRAINT = 'feedback_external_id'; END $$`)
				f.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON feedback FOR EACH ROW EXECUTE FUNCTION refuse()`)
			},
			write: func(f *servicetest.Harness, _ string) error {
				_, err := f.Records.CreateFeedback(t.Context(), f.As("erp"), store.NoKey, records.NewFeedback{InventoryID: f.ID("ahu1"), Subject: "Noise"})
				return err
			}, code: models.CodeExternalIDTaken,
		},
		"its commit is rejected": {
			prepare: func(f *servicetest.Harness) {
				f.Exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF NEW.title = 'Refuse' THEN RAISE EXCEPTION 'no' USING ERRCODE = '23000', CONSTRAINT = 'feedback_external_id'; END IF; RETURN NULL; END $$`)
				f.Exec(`CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON work_orders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
			},
			write: func(f *servicetest.Harness, id string) error {
				_, err := f.Records.UpdateWorkOrder(t.Context(), f.As("erp"), store.NoKey, id,
					records.WorkOrderPatch{Title: records.Sent[string]{Value: "Refuse", Set: true}})
				return err
			}, code: models.CodeExternalIDTaken,
		},
		"it panics": {
			write: func(f *servicetest.Harness, _ string) (err error) {
				defer func() {
					if recover() != nil {
						err = models.NotFound()
					}
				}()
				return storetest.Panic(t.Context(), f.Store)
			}, code: models.CodeNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.NewHarness(t)
			if test.prepare != nil {
				test.prepare(f)
			}
			id := f.NewWorkOrder([]string{"erp"}, nil)
			before := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM history`)
			create := func() error {
				_, err := f.Records.CreateWorkOrder(t.Context(), f.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
				return err
			}
			f.As("rita") // loaded before the writes are collected
			errs := together(t, f.Store, create, func() error { return test.write(f, id) }, create)
			if errs[0] != nil || errs[2] != nil || models.CodeOf(errs[1]) != test.code {
				t.Errorf("the errors are %v, want only the second write rejected, with %s", errs, test.code)
			}
			if n := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM history`) - before; n != 2 {
				t.Errorf("%d changes were committed, want 2", n)
			}
		})
	}
}

// A write that waits for a lock does not delay its group.
func TestAWriteThatWaitsForALockLeavesItsGroup(t *testing.T) {
	f := servicetest.NewHarness(t)
	held, free := f.NewWorkOrder([]string{"erp"}, nil), f.NewWorkOrder([]string{"erp"}, nil)
	other, err := f.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), `UPDATE work_orders SET title = 'Held', changed_at = changed_at + interval '1 hour' WHERE id = $1`, held); err != nil {
		t.Fatal(err)
	}
	change := func(id, title string) error {
		_, err := f.Records.UpdateWorkOrder(t.Context(), f.As("erp"), store.ForCall(title, "PATCH", "/x", []byte("f"), ""), id,
			records.WorkOrderPatch{Title: records.Sent[string]{Value: title, Set: true}})
		return err
	}
	waited := make(chan error, 1)
	errs := together(t, f.Store,
		func() error { return change(free, "Free") },
		func() error { go func() { waited <- change(held, "Changed after") }(); return nil })
	if errs[0] != nil {
		t.Fatalf("the change that waits for no lock: %v", errs[0])
	}
	servicetest.AwaitLocks(t, f.Fixture, 1)
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatalf("the change that waited: %v", err)
	}
	if changes := servicetest.Value[string](f.Fixture, `SELECT changes -> 'title' ->> 'from' FROM history WHERE record_id = $1 AND action = 'work_order.updated'`, held); changes != "Held" {
		t.Errorf("the change that waited replaced the title %q, want Held: what the other transaction committed", changes)
	}
}

// If the connection is lost before COMMIT was sent, only the write that loses it fails.
func TestAGroupWhoseConnectionIsLost(t *testing.T) {
	f := servicetest.NewHarness(t)
	f.Exec(`CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.title = 'Break' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END $$`)
	f.Exec(`CREATE TRIGGER break_off BEFORE INSERT ON work_orders FOR EACH ROW EXECUTE FUNCTION break_off()`)
	create := func(title string) func() error {
		return func() error {
			_, err := f.Records.CreateWorkOrder(t.Context(), f.As("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: title})
			return err
		}
	}
	f.As("erp")
	errs := together(t, f.Store, create("Replace filter"), create("Break"), create("Replace belt"))
	if errs[0] != nil || models.CodeOf(errs[1]) != models.CodeUnavailable || errs[2] != nil {
		t.Errorf("the errors are %v, want only the second write to fail, with %s", errs, models.CodeUnavailable)
	}
	if titles := servicetest.Value[string](f.Fixture, `SELECT string_agg(title, ', ' ORDER BY title) FROM work_orders`); titles != "Replace belt, Replace filter" {
		t.Errorf("the work orders %s were committed, want Replace belt, Replace filter", titles)
	}
}

func TestACallEndsWhileItsWriteWaits(t *testing.T) {
	f := servicetest.NewHarness(t)
	release := storetest.HoldWrites(t.Context(), f.Store)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	actor := f.As("erp")
	go func() {
		_, err := f.Records.CreateWorkOrder(ctx, actor, store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
		done <- err
	}()
	servicetest.Await(t, "the write waits for a transaction", func() bool { return storetest.WritesWaiting(f.Store) > 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
	if n := storetest.WritesWaiting(f.Store); n != 0 {
		t.Errorf("%d writes still wait", n)
	}
}

// Writes that publish to many addresses run alone, since their group would wait for them.
func TestAWriteToManyAddressesRunsAlone(t *testing.T) {
	f := servicetest.NewHarness(t)
	for _, copies := range []string{
		`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
			SELECT 'idn_' || lpad(n::text, 26, '0'), organization_id, kind, name, created_at, changed_at
			FROM identities, generate_series(1, 20) n WHERE id = $1`,
		`INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
			SELECT 'idn_' || lpad(n::text, 26, '0'), organization_id, 'cli_' || lpad(n::text, 26, '0'), secret_hash, scopes
			FROM integrations, generate_series(1, 20) n WHERE id = $1`,
		`INSERT INTO assignments (organization_id, node_id, identity_id, definition_id)
			SELECT organization_id, node_id, 'idn_' || lpad(n::text, 26, '0'), definition_id
			FROM assignments, generate_series(1, 20) n WHERE identity_id = $1`,
		`INSERT INTO webhooks (id, organization_id, integration_id, slot, url, events, secret_sealed, created_at, enabled_since)
			SELECT 'whk_' || lpad((5 * n + place)::text, 26, '0'), o.id, 'idn_' || lpad(n::text, 26, '0'), place,
				'http://127.0.0.1:9/' || n, '{work_order.created}', 'sealed', o.created_at, o.created_at
			FROM organizations o, generate_series(1, 20) n, generate_series(1, 5) place
			WHERE o.id = (SELECT organization_id FROM identities WHERE id = $1)`,
	} {
		f.Exec(copies, f.ID("erp"))
	}
	const writes = 5
	var create []func() error
	for range writes {
		create = append(create, func() error {
			_, err := f.Records.CreateWorkOrder(t.Context(), f.Actor("erp"), store.NoKey, records.NewWorkOrder{InventoryID: f.ID("ahu1"), Title: "Replace filter"})
			return err
		})
	}
	for i, err := range together(t, f.Store, create...) {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if n := servicetest.Value[int](f.Fixture, `SELECT count(DISTINCT xmin::text) FROM events`); n != writes {
		t.Errorf("the %d writes took %d transactions", writes, n)
	}
	if n := servicetest.Value[int](f.Fixture, `SELECT count(*) FROM all_deliveries WHERE webhook_id LIKE 'whk_0000%'`); n != writes*100 {
		t.Errorf("%d deliveries were inserted, want %d", n, writes*100)
	}
}
