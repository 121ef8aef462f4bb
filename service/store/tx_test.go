package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm/schema"

	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
	"millwright/service/storetest"
)

// everyModel is a row of each table that writes change.
var everyModel = []any{
	&models.Answer{}, &models.Assignment{}, &models.Comment{}, &models.EndedRelation{}, &models.Feedback{}, &models.Form{}, &models.FormKey{}, &models.Identity{}, &models.ImportDigest{},
	&models.ImportKey{}, &models.Integration{}, &models.InventoryNode{}, &models.LogEntry{}, &models.OpenIDAccount{}, &models.Organization{},
	&models.OrganizationPermissionDefinition{}, &models.PermissionDefinition{}, &models.Person{}, &models.Plan{}, &models.Question{}, &models.QuestionOption{},
	&models.ServiceCompany{}, &models.Session{}, &models.SignInLink{}, &models.StoredResponse{}, &models.TeamMember{}, &models.Webhook{}, &models.WorkOrder{}, &models.WorkOrderAssignee{},
	&models.WorkOrderWords{},
}

// withoutModel are the tables that only statements write, which choose their rows.
var withoutModel = []string{
	"assigned_positions", "attempts", "call_counts", "cluster_mark", "deleted_webhooks", "deliveries", "delivery_hours", "dirty_records", "events", "fold_version",
	"inactivated_identities", "inventory_closure", "last_backup", "moved_nodes", "notices", "open_deliveries", "rate_counters", "redeliveries", "revoked_tokens",
	"watermarks", "webhook_health", "webhook_leases", "webhook_tests", "work_order_positions",
}

// A table has a model, unless only statements write it.
func TestEveryTableHasAModel(t *testing.T) {
	f := servicetest.New(t)
	rows, err := f.Store.Pool.Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace AND relname <> 'goose_db_version'`)
	servicetest.Must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	servicetest.Must(t, err)
	listed := slices.Clone(withoutModel)
	for _, model := range everyModel {
		parsed, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
		servicetest.Must(t, err)
		listed = append(listed, parsed.Table)
	}
	slices.Sort(tables)
	slices.Sort(listed)
	if !slices.Equal(tables, listed) {
		t.Errorf("the tables are\n%q, those with a model and without\n%q", tables, listed)
	}
}

// fill gives a value to each field of a row, another one for another n.
func fill(v reflect.Value, name string, n int) {
	switch value := v.Addr().Interface().(type) {
	case *models.Time:
		*value = models.TimeOf(servicetest.Start.Add(time.Duration(n) * time.Hour))
		return
	case *time.Time:
		*value = servicetest.Start.Add(time.Duration(n) * time.Hour)
		return
	case *models.JSON:
		*value = models.JSON{"n": fmt.Sprint(n)}
		return
	case *json.RawMessage:
		*value = json.RawMessage(fmt.Sprintf(`{"n": %d}`, n))
		return
	case *models.Digests:
		*value = models.Digests{"name": fmt.Sprint(n)}
		return
	case *models.Words:
		return // no read has it
	case *models.TextArray:
		*value = models.TextArray{"a", fmt.Sprintf(`"%d,`, n)}
		return
	case *[]byte:
		*value = bytes.Repeat([]byte{byte(n)}, 32)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Name, n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name, n)
	case reflect.String:
		text := fmt.Sprintf("a%d", n)
		if strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "By") || name == "ReplacedBy" {
			text = fmt.Sprintf("idn_%026d", n)
		}
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(n%2 == 0)
	case reflect.Int, reflect.Int64:
		if name == "Slot" { // a partition
			n %= 3
		}
		v.SetInt(int64(n))
	default:
		panic("a model has a field of the type " + v.Type().String())
	}
}

// unchecked drops what keeps made-up rows out of the tables.
func unchecked(f *servicetest.Fixture) {
	f.Exec(`DO $$ DECLARE c record; BEGIN
		FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint WHERE contype IN ('c', 'f') AND conrelid <> 0 AND conparentid = 0 LOOP
			EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', c.t, c.conname);
		END LOOP;
		FOR c IN SELECT oid::regclass AS t, '' AS conname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
			EXECUTE format('ALTER TABLE %s DISABLE TRIGGER ALL', c.t);
		END LOOP; END $$`)
}

// write runs a write of the ERP's organization.
func write(t *testing.T, f *servicetest.Fixture, read func(*pgx.Batch), do func(*store.Tx) error) error {
	t.Helper()
	return f.Store.Run(t.Context(), f.ID("acme"), store.Lock{}, read, do)
}

// Every model that a write creates and updates is read back equal.
func TestEveryModelIsWrittenAsItIs(t *testing.T) {
	f := servicetest.New(t)
	unchecked(f)
	for _, model := range everyModel {
		kind := reflect.TypeOf(model).Elem()
		t.Run(kind.Name(), func(t *testing.T) {
			row := func(n int) any {
				made := reflect.New(kind)
				fill(made.Elem(), "", n)
				return made.Interface()
			}
			before, after := row(7), row(8)
			parsed, err := schema.Parse(before, &sync.Map{}, schema.NamingStrategy{})
			servicetest.Must(t, err)
			var primary []any
			for _, field := range parsed.Fields {
				was, is := reflect.ValueOf(before).Elem().FieldByName(field.Name), reflect.ValueOf(after).Elem().FieldByName(field.Name)
				switch {
				case field.AutoIncrement: // an entry of the log
					was.SetZero()
					primary = append(primary, "Action")
				case field.PrimaryKey:
					primary = append(primary, field.Name)
					is.Set(was)
				case !field.Updatable:
					is.Set(was)
				}
			}
			stored := func() any {
				found := reflect.New(kind).Interface()
				servicetest.Must(t, f.Store.ORM.Where(before, primary...).Take(found).Error)
				if id := reflect.ValueOf(found).Elem().FieldByName("ID"); id.IsValid() && id.CanInt() {
					id.SetZero()
				}
				return found
			}
			unread := func(row any) { // columns that follow from others
				for _, field := range parsed.Fields {
					if !field.Readable {
						reflect.ValueOf(row).Elem().FieldByName(field.Name).SetZero()
					}
				}
			}
			left := servicetest.Value[int](f, `SELECT count(*) FROM `+parsed.Table)
			servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Create(before) }))
			unread(before)
			if got := stored(); !reflect.DeepEqual(got, before) {
				t.Errorf("created was\n%+v, stored is\n%+v", before, got)
			}
			if kind == reflect.TypeFor[models.LogEntry]() {
				return // entries never change
			}
			servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Update(before, after) }))
			unread(after)
			if got := stored(); !reflect.DeepEqual(got, after) {
				t.Errorf("updated was\n%+v, stored is\n%+v", after, got)
			}
			servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Upsert(before) }))
			unread(before)
			if got := stored(); !reflect.DeepEqual(got, before) {
				t.Errorf("upserted was\n%+v, stored is\n%+v", before, got)
			}
			servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Delete(before) }))
			servicetest.Expect(t, "rows are left", servicetest.Value[int](f, `SELECT count(*) FROM `+parsed.Table), left)
		})
	}
}

// An update names the columns that differ and no others: what another write changed in the meantime stays.
func TestAnUpdateNamesWhatDiffers(t *testing.T) {
	f := servicetest.New(t)
	comment := models.Comment{ID: "cmt_00000000000000000000000001", OrganizationID: f.ID("acme"), RecordID: f.ID("ahu1"), CreatedBy: f.ID("ann"), CreatedAt: models.TimeOf(f.Clock.Now())}
	text := "Ladder needed"
	comment.Text = &text
	servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Create(&comment) }))
	f.Exec(`UPDATE comments SET created_by = $1`, f.ID("bob"))
	removed := comment
	removed.Text = nil
	for range 2 { // the second one has no difference
		servicetest.Must(t, write(t, f, nil, func(tx *store.Tx) error { return tx.Update(comment, &removed) }))
		comment = removed
	}
	servicetest.Expect(t, "the comment",
		servicetest.Value[string](f, `SELECT created_by || ' ' || (text IS NULL)::text FROM comments`), f.ID("bob")+" true")
	other := comment
	other.ID = "cmt_00000000000000000000000002"
	if err := write(t, f, nil, func(tx *store.Tx) error { return tx.Update(comment, &other) }); err == nil {
		t.Error("a row became another one")
	}
	if err := write(t, f, nil, func(tx *store.Tx) error { return tx.Update(comment, &models.Plan{}) }); err == nil {
		t.Error("a comment became a plan")
	}
}

// GORM would write what a model is associated with, too.
func TestModelsWithAssociationsAreRefused(t *testing.T) {
	type owned struct{ ID, OwnerID string }
	type owner struct {
		ID    string
		Owned []owned `gorm:"foreignKey:OwnerID"`
	}
	f := servicetest.New(t)
	err := write(t, f, nil, func(tx *store.Tx) error { return tx.Create(&owner{ID: "a", Owned: []owned{{"b", "a"}}}) })
	if err == nil || !strings.Contains(err.Error(), "associations") {
		t.Errorf("the error is %v", err)
	}
}

// A guarded update is sent at once, and its rows are counted.
func TestAGuardCountsItsRows(t *testing.T) {
	f := servicetest.New(t)
	for condition, want := range map[string]int64{"true": 1, "false": 0} {
		if err := write(t, f, nil, func(tx *store.Tx) error {
			changed, err := tx.Guard(t.Context(), `UPDATE identities SET name = 'ERP' WHERE id = @id AND `+condition, pgx.NamedArgs{"id": f.ID("erp")})
			servicetest.Expect(t, "changed rows", changed, want)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// What a rule rejects, or a statement, leaves no row, no connection in use and no lock. So does a transaction that failed
// before its COMMIT or at it, and a panic.
func TestAFailedWriteLeavesNothing(t *testing.T) {
	f := servicetest.New(t)
	create := func(tx *store.Tx) error {
		return tx.Create(&models.FormKey{PersonID: f.ID("ann"), Key: "k", RecordID: f.ID("ahu1"), UsedAt: tx.At})
	}
	run := func(read func(*pgx.Batch), do func(*store.Tx) error) error {
		return f.Store.Run(t.Context(), f.ID("acme"), store.Lock{Table: "identities", ID: f.ID("erp")}, read, do)
	}
	const panicked = "a bug"
	rejected := models.NotFound()
	for name, test := range map[string]struct {
		read func(*pgx.Batch)
		do   func(*store.Tx) error
		want models.Code
	}{
		"a rule": {nil, func(tx *store.Tx) error { return errors.Join(create(tx), rejected) }, models.CodeNotFound},
		"a missing row": {func(reading *pgx.Batch) {
			store.QueueOne(reading, new(struct{ ID string }), rejected, `SELECT id FROM identities WHERE false`)
		}, create, models.CodeNotFound},
		"a statement":           {nil, func(tx *store.Tx) error { tx.Queue(`SELECT 1 / 0`); return create(tx) }, models.CodeInternal},
		"a failed transaction":  {nil, func(tx *store.Tx) error { _, _ = tx.Guard(t.Context(), `SELECT 1 / 0`); return create(tx) }, models.CodeInternal},
		"a statement of a read": {func(reading *pgx.Batch) { reading.Queue(`SELECT 1 / 0`) }, create, models.CodeInternal},
		"a constraint at COMMIT": {nil, func(tx *store.Tx) error {
			tx.Queue(`UPDATE questions SET position = 1`)
			return create(tx)
		}, models.CodeInternal},
		"a lost connection": {nil, func(tx *store.Tx) error {
			tx.Queue(`SELECT pg_terminate_backend(pg_backend_pid())`)
			return create(tx)
		}, models.CodeUnavailable},
		"a panic": {nil, func(tx *store.Tx) error { _ = create(tx); panic(panicked) }, models.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			err := func() (err error) {
				defer func() {
					if recover() == panicked {
						err = rejected
					}
				}()
				return run(test.read, test.do)
			}()
			servicetest.WantCode(t, "the write", f.Store.Translate(err), test.want)
			servicetest.Expect(t, "rows are left", servicetest.Value[int](f, `SELECT count(*) FROM form_keys`), 0)
			servicetest.Await(t, "no connection is in use", func() bool { return f.Store.Pool.Stat().AcquiredConns() == 0 })
			servicetest.Must(t, run(nil, func(*store.Tx) error { return nil }))
		})
	}
}

// A write that loses a deadlock runs again.
func TestAWriteThatLosesADeadlockRunsAgain(t *testing.T) {
	f := servicetest.New(t)
	for _, code := range []string{"40P01", "40001"} { // a deadlock, a serialization failure
		for losses, ok := range map[int]bool{2: true, 3: false} {
			runs := 0
			err := write(t, f, nil, func(tx *store.Tx) error {
				if runs++; runs <= losses {
					_, err := tx.Guard(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '`+code+`'; END $$`)
					return err
				}
				return nil
			})
			if (err == nil) != ok || !ok && models.CodeOf(store.Limited(err)) != models.CodeUnavailable {
				t.Errorf("after %d times %s: %v", losses, code, err)
			}
		}
	}
}

// A write whose caller is gone ends with the context's error: the database is not to blame.
func TestAWriteWhoseCallerIsGone(t *testing.T) {
	f := servicetest.New(t)
	blamed := 0
	options := f.Store.Options
	options.Unreachable = func(error) { blamed++ }
	s, err := store.New(f.Store.Pool, options)
	servicetest.Must(t, err)
	for name, then := range map[string]func(context.Context, *store.Tx) error{
		"at COMMIT":             func(context.Context, *store.Tx) error { return nil },
		"at a statement":        func(_ context.Context, tx *store.Tx) error { return tx.Exec(`SELECT 1`) },
		"at a guarded update":   func(ctx context.Context, tx *store.Tx) error { return servicetest.ErrorOf(tx.Guard(ctx, `SELECT 1`)) },
		"and a rule rejects it": func(context.Context, *store.Tx) error { return models.NotFound() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := s.Transaction(ctx, f.ID("acme"), store.NoKey, func(tx *store.Tx) error {
				cancel()
				return then(ctx, tx)
			})
			if !errors.Is(err, context.Canceled) && models.CodeOf(err) != models.CodeNotFound || blamed != 0 {
				t.Errorf("the error is %v, the database was blamed %d times", err, blamed)
			}
		})
	}
}

// network loses a connection once it is armed, at the client's next message.
type network struct {
	// delivers is true if the server still receives that message and executes it; away
	// that there are no connections afterwards.
	delivers, away bool
	armed, lost    atomic.Bool
}

var errLost error = &net.OpError{Op: "read", Err: errors.New("the connection was lost")}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	if n.lost.Load() && n.away {
		return nil, errLost
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, kind, address)
	return &networkConn{Conn: conn, network: n}, err
}

type networkConn struct {
	net.Conn
	network *network
	lost    atomic.Bool
}

func (c *networkConn) Write(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, errLost
	}
	if !c.network.armed.CompareAndSwap(true, false) {
		return c.Conn.Write(p)
	}
	c.lost.Store(true)
	c.network.lost.Store(true)
	if !c.network.delivers {
		return len(p), nil
	}
	if _, err := c.Conn.Write(p); err != nil {
		return 0, err
	}
	var response []byte
	for buffer := make([]byte, 4096); !bytes.Contains(response, []byte("COMMIT\x00")); {
		n, err := c.Conn.Read(buffer)
		if err != nil {
			return 0, err
		}
		response = append(response, buffer[:n]...)
	}
	return len(p), nil
}

func (c *networkConn) Read(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, errLost
	}
	return c.Conn.Read(p)
}

// on has the fixture's writes use the network.
func on(t *testing.T, f *servicetest.Fixture, n *network) {
	t.Helper()
	config := f.Store.Pool.Config()
	config.ConnConfig.DialFunc = n.dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	servicetest.Must(t, err)
	t.Cleanup(pool.Close)
	if f.Store, err = store.New(pool, f.Store.Options); err != nil {
		t.Fatal(err)
	}
}

// If no response comes to COMMIT, the write ends as the transaction did. It fails if that cannot be found out.
func TestAWriteWhoseCommitGetsNoResponse(t *testing.T) {
	for name, test := range map[string]struct {
		network *network
		rows    int
		ok      bool
	}{
		"the transaction was committed":        {&network{delivers: true}, 1, true},
		"it was not":                           {&network{}, 0, false},
		"it was, but the database is away":     {&network{delivers: true, away: true}, 1, false},
		"it was not, and the database is away": {&network{away: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := servicetest.New(t)
			on(t, f, test.network)
			runs := 0
			create := func(tx *store.Tx) error {
				runs++
				test.network.armed.Store(runs == 2) // the first run prepares the statements
				return tx.Create(&models.FormKey{PersonID: f.ID("ann"), Key: "k", RecordID: f.ID("ahu1"), UsedAt: tx.At})
			}
			servicetest.Must(t, write(t, f, nil, create))
			f.Exec(`DELETE FROM form_keys`)
			if err := write(t, f, nil, create); (err == nil) != test.ok || !test.ok && models.CodeOf(err) != models.CodeUnavailable || runs != 2 {
				t.Errorf("after %d runs: %v, want ok %t", runs, err, test.ok)
			}
			servicetest.Expect(t, "rows are stored", servicetest.Value[int](f, `SELECT count(*) FROM form_keys`), test.rows)
		})
	}
}

// A second call with a key replays the response of the first.
func TestAKeyIsUsedOnce(t *testing.T) {
	f := servicetest.New(t)
	runs := 0
	call := func(key store.Key) (store.WriteResult, error) {
		return f.Store.Write(t.Context(), f.Actor("erp"), key, http.StatusCreated, store.Lock{}, nil, func(*store.Tx) (string, any, error) {
			runs++
			return f.ID("ahu1"), map[string]int{"n": runs}, nil
		})
	}
	for i := range 3 {
		result, err := call(store.ForCall("k", "POST", "/x", []byte{1}, ""))
		if err != nil || string(result.Body) != `{"n":1}` || result.Replayed != (i > 0) {
			t.Errorf("call %d: %s, replayed %v, %v", i, result.Body, result.Replayed, err)
		}
	}
	_, err := call(store.ForCall("k", "POST", "/x", []byte{2}, ""))
	servicetest.WantCode(t, "another request with the key", err, models.CodeIdempotencyKeyReused)
	form := store.ForForm(f.ID("ann"), "k", "")
	servicetest.Must(t, servicetest.ErrorOf(call(form)))
	if _, err := call(form); err == nil || !errors.As(err, new(*store.FormDoneError)) {
		t.Errorf("a form that was sent again: %v", err)
	}
	servicetest.Expect(t, "stored responses, without the form's, which may hold a secret",
		servicetest.Value[int](f, `SELECT count(*) FROM stored_responses WHERE length(body) > 0`), 1)
}

// A call waits for another process that runs a call with its key. It holds
// neither a connection nor a place among the writes, and replays the response.
func TestACallWaitsForItsKey(t *testing.T) {
	f := servicetest.New(t)
	var tries atomic.Int64
	options := f.Store.Options
	options.Now = func() time.Time { tries.Add(1); return f.Clock.Now() }
	other, err := store.New(f.Store.Pool, options)
	servicetest.Must(t, err)
	// A path that Postgres would not take as text.
	call := func(s *store.Store, key string, do func()) (store.WriteResult, error) {
		return s.Write(t.Context(), f.Actor("erp"), store.ForCall(key, "POST", "/x\x00", []byte("body"), ""), http.StatusCreated, store.Lock{}, nil, func(*store.Tx) (string, any, error) {
			do()
			return f.ID("ahu1"), struct{}{}, nil
		})
	}
	begun, until := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := call(f.Store, "k", func() { close(begun); <-until })
		first <- err
	}()
	<-begun
	type response struct {
		store.WriteResult
		err error
	}
	second := make(chan response, 3)
	for range 3 {
		go func() {
			result, err := call(other, "k", func() { t.Error("the call ran twice") })
			second <- response{result, err}
		}()
	}
	before := tries.Load()
	servicetest.Await(t, "the call asks for its key again", func() bool { return tries.Load() > before+4 })
	for i := range 3 { // more than the organization's writes at a time
		servicetest.WantCode(t, "another call", servicetest.ErrorOf(call(other, fmt.Sprint("another ", i), func() {})), "")
	}
	close(until)
	if err := <-first; err != nil {
		t.Error(err)
	}
	for range 3 {
		if got := <-second; got.err != nil || !got.Replayed {
			t.Errorf("after the other call: %+v", got)
		}
	}
}

// Writes of one row wait for each other without a connection.
func TestWritesOfOneRowTakeOneConnection(t *testing.T) {
	f := servicetest.New(t)
	lock := store.Lock{Table: "identities", ID: f.ID("erp")}
	begun, until := make(chan struct{}), make(chan struct{})
	errs := make(chan error, 4)
	run := func(do func()) {
		errs <- f.Store.Run(t.Context(), f.ID("acme"), lock, nil, func(*store.Tx) error { do(); return nil })
	}
	go run(func() { close(begun); <-until })
	<-begun
	for range 3 {
		go run(func() {})
	}
	servicetest.Await(t, "three writes wait", func() bool { return storetest.WritesWaiting(f.Store) == 3 })
	servicetest.Expect(t, "connections are in use", f.Store.Pool.Stat().AcquiredConns(), 1)
	servicetest.WantCode(t, "a write of another row",
		f.Store.Run(t.Context(), f.ID("acme"), store.Lock{Table: "identities", ID: f.ID("ann")}, nil, func(*store.Tx) error { return nil }), "")
	close(until)
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// A form may come without a key: it acts each time.
func TestAFormWithoutAKeyActsEachTime(t *testing.T) {
	f := servicetest.New(t)
	for range 2 {
		if err := f.Store.Transaction(t.Context(), f.ID("acme"), store.ForForm(f.ID("ann"), "", ""), func(tx *store.Tx) error {
			return tx.Log(f.Actor("ann"), f.ID("acme"), "person.renamed", f.ID("ann"))
		}); err != nil {
			t.Fatal(err)
		}
	}
	servicetest.Expect(t, "times that it acted",
		servicetest.Value[int](f, `SELECT count(*) FROM log WHERE action = 'person.renamed'`), 2)
}
