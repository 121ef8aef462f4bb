package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
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
)

// everyModel is a row of each table that writes change.
var everyModel = []any{
	&models.Assignment{}, &models.Comment{}, &models.EndedRelation{}, &models.Feedback{}, &models.Form{}, &models.FormKey{}, &models.Identity{}, &models.ImportDigest{},
	&models.ImportKey{}, &models.Integration{}, &models.InventoryNode{}, &models.LogEntry{}, &models.OpenIDAccount{}, &models.Organization{},
	&models.OrganizationPermissionDefinition{}, &models.PermissionDefinition{}, &models.Person{}, &models.Plan{}, &models.Question{}, &models.QuestionOption{},
	&models.ServiceCompany{}, &models.Session{}, &models.SignInLink{}, &models.StoredResponse{}, &models.TeamMember{}, &models.Webhook{}, &models.WorkOrder{}, &models.WorkOrderAssignee{},
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
	case *models.Digests:
		*value = models.Digests{"name": fmt.Sprint(n)}
		return
	case *models.TextArray:
		*value = models.TextArray{"a", fmt.Sprintf(`"%d,`, n)}
		return
	case *[]byte:
		*value = bytes.Repeat([]byte{byte(n)}, 32)
		return
	}
	switch v.Kind() { //nolint:exhaustive // models have no others
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

// write runs a write of the ERP.
func write(f *servicetest.Fixture, read func(*pgx.Batch), do func(*store.WriteTx) error) error {
	_, err := f.Store.WriteOne(context.Background(), f.Actor("erp"), store.NoKey, http.StatusOK, read, func(t *store.WriteTx) (string, any, error) {
		return f.ID("ahu1"), struct{}{}, do(t)
	})
	return err
}

func nothing(*pgx.Batch) {}

// What is created and updated through a write is read back equal, for every model.
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
			if err != nil {
				t.Fatal(err)
			}
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
				if err := f.Store.ORM.Where(before, primary...).Take(found).Error; err != nil {
					t.Fatal(err)
				}
				if id := reflect.ValueOf(found).Elem().FieldByName("ID"); id.IsValid() && id.CanInt() {
					id.SetZero()
				}
				return found
			}
			if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Create(before) }); err != nil {
				t.Fatal(err)
			}
			if got := stored(); !reflect.DeepEqual(got, before) {
				t.Errorf("created was\n%+v, stored is\n%+v", before, got)
			}
			if kind == reflect.TypeFor[models.LogEntry]() {
				return // entries never change
			}
			if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Update(before, after) }); err != nil {
				t.Fatal(err)
			}
			if got := stored(); !reflect.DeepEqual(got, after) {
				t.Errorf("updated was\n%+v, stored is\n%+v", after, got)
			}
		})
	}
}

// An update names the columns that differ and no others: what another write changed in the meantime stays.
func TestAnUpdateNamesWhatDiffers(t *testing.T) {
	f := servicetest.New(t)
	comment := models.Comment{ID: "cmt_00000000000000000000000001", OrganizationID: f.ID("acme"), RecordID: f.ID("ahu1"), CreatedBy: f.ID("ann"), CreatedAt: models.TimeOf(f.Clock.Now())}
	text := "Ladder needed"
	comment.Text = &text
	if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Create(&comment) }); err != nil {
		t.Fatal(err)
	}
	f.Exec(`UPDATE comments SET created_by = $1`, f.ID("bob"))
	removed := comment
	removed.Text = nil
	for range 2 { // the second one has no difference
		if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Update(comment, &removed) }); err != nil {
			t.Fatal(err)
		}
		comment = removed
	}
	if got := servicetest.Value[string](f, `SELECT created_by || ' ' || (text IS NULL)::text FROM comments`); got != f.ID("bob")+" true" {
		t.Errorf("the comment is %s", got)
	}
	other := comment
	other.ID = "cmt_00000000000000000000000002"
	if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Update(comment, &other) }); err == nil {
		t.Error("a row became another one")
	}
	if err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Update(comment, &models.Plan{}) }); err == nil {
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
	err := write(f, nothing, func(tx *store.WriteTx) error { return tx.Create(&owner{ID: "a", Owned: []owned{{"b", "a"}}}) })
	if err == nil || !strings.Contains(err.Error(), "associations") {
		t.Errorf("the error is %v", err)
	}
}

// A guarded update is sent at once, and its rows are counted.
func TestAGuardCountsItsRows(t *testing.T) {
	f := servicetest.New(t)
	for condition, want := range map[string]int64{"true": 1, "false": 0} {
		if err := write(f, nothing, func(tx *store.WriteTx) error {
			changed, err := tx.Guard(t.Context(), `UPDATE identities SET name = 'ERP' WHERE id = @id AND `+condition, pgx.NamedArgs{"id": f.ID("erp")})
			if changed != want {
				t.Errorf("%d rows were changed, want %d", changed, want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// What a rule rejects, or a statement, leaves no row. So does a transaction that failed before its COMMIT.
func TestAFailedWriteLeavesNothing(t *testing.T) {
	f := servicetest.New(t)
	create := func(tx *store.WriteTx) error {
		return tx.Create(&models.FormKey{PersonID: f.ID("ann"), Key: "k", RecordID: f.ID("ahu1"), UsedAt: tx.At})
	}
	rejected := models.NotFound()
	for name, test := range map[string]struct {
		read func(*pgx.Batch)
		do   func(*store.WriteTx) error
		want error
	}{
		"a rule": {nothing, func(tx *store.WriteTx) error { return errors.Join(create(tx), rejected) }, rejected},
		"a missing row": {func(reading *pgx.Batch) {
			store.QueueOne(reading, new(struct{ ID string }), rejected, `SELECT id FROM identities WHERE false`)
		}, create, rejected},
		"a statement":           {nothing, func(tx *store.WriteTx) error { tx.Queue(`SELECT 1 / 0`); return create(tx) }, nil},
		"a failed transaction":  {nothing, func(tx *store.WriteTx) error { _, _ = tx.Guard(t.Context(), `SELECT 1 / 0`); return create(tx) }, nil},
		"a statement of a read": {func(reading *pgx.Batch) { reading.Queue(`SELECT 1 / 0`) }, create, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := write(f, test.read, test.do); err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("the error is %v", err)
			}
			if n := servicetest.Value[int](f, `SELECT count(*) FROM form_keys`); n != 0 {
				t.Errorf("%d rows are left", n)
			}
		})
	}
}

// A write that loses a deadlock runs again.
func TestAWriteThatLosesADeadlockRunsAgain(t *testing.T) {
	f := servicetest.New(t)
	for losses, ok := range map[int]bool{2: true, 3: false} {
		runs := 0
		err := write(f, nothing, func(tx *store.WriteTx) error {
			if runs++; runs <= losses {
				_, err := tx.Guard(t.Context(), `DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$`)
				return err
			}
			return nil
		})
		if (err == nil) != ok {
			t.Errorf("after %d deadlocks: %v", losses, err)
		}
	}
}

// counted counts the round trips of a connection: the writes of the client to the network.
type counted struct {
	net.Conn
	trips *atomic.Int64
	// lose is true if the next message is delivered and its response is lost.
	lose *atomic.Bool
	lost atomic.Bool
}

func (c *counted) Write(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, net.ErrClosed
	}
	c.trips.Add(1)
	n, err := c.Conn.Write(p)
	if err == nil && bytes.Contains(p, []byte("COMMIT")) && c.lose.Load() {
		c.lost.Store(true)
		var response []byte
		for buffer := make([]byte, 4096); !bytes.Contains(response, []byte("COMMIT\x00")); {
			read, err := c.Conn.Read(buffer)
			if err != nil {
				return 0, err
			}
			response = append(response, buffer[:read]...)
		}
	}
	return n, err
}

func (c *counted) Read(p []byte) (int, error) {
	if c.lost.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// onNetwork has the fixture's writes use connections that count.
func onNetwork(t *testing.T, f *servicetest.Fixture) (trips *atomic.Int64, lose *atomic.Bool) {
	t.Helper()
	trips, lose = &atomic.Int64{}, &atomic.Bool{}
	config := f.Store.Pool.Config()
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &counted{Conn: conn, trips: trips, lose: lose}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.Store.Pool = pool
	return trips, lose
}

// A write takes two round trips, and three with a guarded update.
func TestRoundTripsOfAWrite(t *testing.T) {
	f := servicetest.New(t)
	trips, _ := onNetwork(t, f)
	key := 0
	took := func(guarded bool) int64 {
		t.Helper()
		before := trips.Load()
		key++
		_, err := f.Store.WriteOne(t.Context(), f.Actor("erp"), store.ForCall(fmt.Sprint(key), "POST", "/x", []byte{1}, ""), http.StatusOK, func(reading *pgx.Batch) {
			store.QueueLockRow(reading, "identities", f.ID("erp"))
		}, func(tx *store.WriteTx) (string, any, error) {
			if guarded {
				if _, err := tx.Guard(t.Context(), `UPDATE identities SET name = name WHERE id = $1`, f.ID("erp")); err != nil {
					return "", nil, err
				}
			}
			return f.ID("ahu1"), struct{}{}, tx.Create(&models.FormKey{PersonID: f.ID("ann"), Key: fmt.Sprint(key), RecordID: f.ID("ahu1"), UsedAt: tx.At})
		})
		if err != nil {
			t.Fatal(err)
		}
		return trips.Load() - before
	}
	took(true) // prepares the statements
	if n := took(false); n != 2 {
		t.Errorf("a write took %d round trips, want 2", n)
	}
	if n := took(true); n != 3 {
		t.Errorf("a write with a guarded update took %d round trips, want 3", n)
	}
}

// If no response comes to COMMIT, the write ends as the transaction did.
func TestAWriteWhoseCommitGetsNoResponse(t *testing.T) {
	f := servicetest.New(t)
	_, lose := onNetwork(t, f)
	runs := 0
	create := func(tx *store.WriteTx) error {
		runs++
		return tx.Create(&models.FormKey{PersonID: f.ID("ann"), Key: "k", RecordID: f.ID("ahu1"), UsedAt: tx.At})
	}
	if err := write(f, nothing, create); err != nil { // prepares the statements
		t.Fatal(err)
	}
	f.Exec(`DELETE FROM form_keys`)
	lose.Store(true)
	if err := write(f, nothing, create); err != nil || runs != 2 {
		t.Errorf("after %d runs: %v", runs, err)
	}
	lose.Store(false)
	if n := servicetest.Value[int](f, `SELECT count(*) FROM form_keys`); n != 1 {
		t.Errorf("%d rows are stored, want 1", n)
	}
}

// Both kinds of writes wait for each other's keys and replay each other's responses while there are two.
func TestAKeyIsUsedOnce(t *testing.T) {
	f := servicetest.New(t)
	key := store.ForCall("k", "POST", "/x", []byte{1}, "")
	one := func() (store.WriteResult, error) {
		return f.Store.WriteOne(t.Context(), f.Actor("erp"), key, http.StatusCreated, nothing, func(*store.WriteTx) (string, any, error) {
			return f.ID("ahu1"), map[string]int{"n": 1}, nil
		})
	}
	together := func() (store.WriteResult, error) {
		return f.Store.WriteRecord(t.Context(), f.Actor("erp"), key, http.StatusCreated, nil, func(context.Context, *store.Tx) (string, any, error) {
			return f.ID("ahu1"), map[string]int{"n": 2}, nil
		})
	}
	for i, do := range []func() (store.WriteResult, error){one, one, together} {
		result, err := do()
		if err != nil || string(result.Body) != `{"n":1}` || result.Replayed != (i > 0) {
			t.Errorf("call %d: %s, replayed %v, %v", i, result.Body, result.Replayed, err)
		}
	}
	key = store.ForCall("k", "POST", "/x", []byte{2}, "")
	if _, err := one(); models.CodeOf(err) != models.CodeIdempotencyKeyReused {
		t.Errorf("another request with the key: %v", err)
	}
}
