package service

import (
	"database/sql/driver"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"millwright/models"
)

// bulkStatement is a statement that serves any number of rows at once. Its parameters are
// arrays with an element for each row, which it unnests WITH ORDINALITY; the rows
// of its answer begin with that number. So the same place in several writes costs
// one statement.
type bulkStatement struct {
	// stage is where in a write it comes; see merge.
	stage stage
	sql   string
	// shared is asked instead where writes share the transaction, "" for the same.
	shared string
}

// stage orders the bulks as writes ask for them.
type stage int

const (
	stageKey stage = iota
	stageStored
	stageLock
	stageRules
	stageRecord
	stageRecordRow
	stageHistory
	stageLog
	stageNotices
	stageEvent
	stageDeliveries
	stageDirty
	stageRead
	stageResponse
)

// queueBulk queues rows of a bulk that changes something.
func (t *tx) queueBulk(s *bulkStatement, rows ...[]any) {
	if len(rows) > 0 {
		t.asked = append(t.asked, &queuedStatement{bulk: s, rows: rows, changes: true})
	}
}

// queueBulkOne queues one row of a bulk whose answer is exactly one row, and puts it
// into into. Without a row flush returns missing, or pgx.ErrNoRows when that is nil.
func queueBulkOne[T any](t *tx, s *bulkStatement, into *T, missing error, row ...any) {
	found := 0
	t.asked = append(t.asked, &queuedStatement{
		bulk: s, rows: [][]any{row},
		each: func(row pgx.CollectableRow) (err error) {
			found++
			*into, err = pgx.RowToStructByName[T](row)
			return err
		},
		done: func() error {
			switch {
			case found == 1:
				return nil
			case found > 1:
				return pgx.ErrTooManyRows
			case missing != nil:
				return missing
			}
			return pgx.ErrNoRows
		},
	})
}

// lockOf is the bulk that locks rows of the table by their ids, as a statement of
// its own: what follows it sees what the writer it waited for committed. In a
// shared transaction a row that somebody else holds is left out.
func lockOf(table string) *bulkStatement {
	lock := `SELECT u.nth FROM unnest($1::text[]) WITH ORDINALITY u (id, nth) JOIN ` + table + ` w ON w.id = u.id FOR NO KEY UPDATE OF w`
	return &bulkStatement{stage: stageLock, sql: lock, shared: lock + ` SKIP LOCKED`}
}

// lock queues the lock of a record. Where it is not had at once in a shared
// transaction, flush returns errRunAlone; a record that is not there locks nothing.
func (t *tx) lock(s *bulkStatement, id string) {
	locked := false
	t.asked = append(t.asked, &queuedStatement{
		bulk: s, rows: [][]any{{id}},
		each: func(pgx.CollectableRow) error { locked = true; return nil },
		done: func() error {
			if !locked && t.group.shared {
				return errRunAlone
			}
			return nil
		},
	})
}

// joined is a list of ids as one value of a row, which the bulk takes apart again
// with listOf. An id has no comma; a text that has one names nothing.
func joined(ids []string) string { return strings.Join(ids, ",") }

// listOf is the array of a value of joined.
func listOf(value string) string { return `string_to_array(` + value + `, ',')` }

// table is what GORM knows of a model's table: the columns a row is written to.
type table struct {
	name   string
	fields []*schema.Field
	// insert takes rows of the values of fields.
	insert *bulkStatement
}

// inserts say at which place writes insert rows of a table, the others' first, and
// what becomes of a row that is there already.
var inserts = map[string]struct {
	place    stage
	conflict string
}{
	"work_orders":          {place: stageRecord},
	"feedback":             {place: stageRecord},
	"work_order_assignees": {place: stageRecordRow},
	"history":              {place: stageHistory},
	"log_records":          {place: stageLog},
	"events":               {place: stageEvent},
	"idempotency_keys":     {stageResponse, replaceExpiredKey},
}

// table returns the table of the model's type.
func (s *Service) table(model reflect.Type) (*table, error) {
	if known, ok := s.tables.Load(model); ok {
		return known.(*table), nil //nolint:forcetypeassert // nothing else is stored
	}
	statement := &gorm.Statement{DB: s.orm}
	if err := statement.Parse(reflect.New(model).Interface()); err != nil {
		return nil, fmt.Errorf("read the columns of a model: %w", err)
	}
	found := &table{name: statement.Schema.Table}
	var columns, selected, unnested []string
	for _, field := range statement.Schema.Fields {
		if field.DBName == "" || !field.Creatable || field.AutoIncrement {
			continue
		}
		array, cast, err := columnTypes(field.IndirectFieldType)
		if err != nil {
			return nil, err
		}
		found.fields = append(found.fields, field)
		columns = append(columns, field.DBName)
		selected = append(selected, "u."+field.DBName+cast)
		unnested = append(unnested, fmt.Sprintf("$%d::%s[]", len(columns), array))
	}
	found.insert = &bulkStatement{stage: inserts[found.name].place, sql: `INSERT INTO ` + found.name + ` (` + strings.Join(columns, ", ") + `)
		SELECT ` + strings.Join(selected, ", ") + ` FROM unnest(` + strings.Join(unnested, ", ") + `)
		WITH ORDINALITY u (` + strings.Join(columns, ", ") + `, nth) ORDER BY u.nth` + inserts[found.name].conflict}
	s.tables.Store(model, found)
	return found, nil
}

// columnTypes returns the type in which a column's values travel in an array, and
// the cast to the column's own type, "" where there is none.
func columnTypes(t reflect.Type) (array, cast string, err error) {
	switch t {
	case reflect.TypeFor[models.Time]():
		return "timestamptz", "", nil
	case reflect.TypeFor[models.JSON]():
		return "text", "::jsonb", nil
	case reflect.TypeFor[models.TextArray]():
		return "text", "::text[]", nil
	case reflect.TypeFor[[]byte]():
		return "bytea", "", nil
	}
	switch t.Kind() {
	case reflect.String:
		return "text", "", nil
	case reflect.Bool:
		return "boolean", "", nil
	case reflect.Int, reflect.Int64:
		return "bigint", "", nil
	default:
		return "", "", fmt.Errorf("no column holds a %s", t)
	}
}

// columnValue returns a value as it travels in an array.
func columnValue(value any) (any, error) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil //nolint:nilnil // a null of the database
	}
	if valuer, ok := value.(driver.Valuer); ok {
		return valuer.Value()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return columnValue(v.Elem().Interface())
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int64:
		return v.Int(), nil
	default:
		return value, nil
	}
}

// insert queues the INSERT of a row, or of a slice of rows, of a model. rows is a pointer.
func (t *tx) insert(rows any) error {
	value := reflect.ValueOf(rows).Elem()
	if value.Kind() != reflect.Slice {
		value = reflect.Append(reflect.MakeSlice(reflect.SliceOf(value.Type()), 0, 1), value)
	}
	table, err := t.table(value.Type().Elem())
	if err != nil {
		return err
	}
	all := make([][]any, value.Len())
	for i := range all {
		all[i] = make([]any, len(table.fields))
		for c, field := range table.fields {
			if all[i][c], err = columnValue(value.Index(i).FieldByIndex(field.StructField.Index).Interface()); err != nil {
				return fmt.Errorf("write the column %s: %w", field.DBName, err)
			}
		}
	}
	t.queueBulk(table.insert, all...)
	return nil
}

// update queues the UPDATE of the columns of the model's row with the id.
func (t *tx) update(model reflect.Type, id string, columns map[string]any) error {
	table, err := t.table(model)
	if err != nil {
		return err
	}
	row := []any{id}
	names := slices.Sorted(maps.Keys(columns))
	for _, name := range names {
		value, err := columnValue(columns[name])
		if err != nil {
			return fmt.Errorf("write the column %s: %w", name, err)
		}
		row = append(row, value)
	}
	changed, err := t.updateOf(table, names)
	if err != nil {
		return err
	}
	t.queueBulk(changed, row)
	return nil
}

// updateOf is the bulk that changes these columns of rows of the table by their ids.
func (s *Service) updateOf(table *table, names []string) (*bulkStatement, error) {
	key := table.name + " " + strings.Join(names, " ")
	if known, ok := s.updates.Load(key); ok {
		return known.(*bulkStatement), nil //nolint:forcetypeassert // nothing else is stored
	}
	var sets []string
	unnested := []string{"$1::text[]"}
	for i, name := range names {
		n := slices.IndexFunc(table.fields, func(f *schema.Field) bool { return f.DBName == name })
		array, cast := "text", "" // of what no record shows
		if n >= 0 {
			var err error
			if array, cast, err = columnTypes(table.fields[n].IndirectFieldType); err != nil {
				return nil, err
			}
		}
		sets = append(sets, fmt.Sprintf("%s = u.%s%s", name, name, cast))
		unnested = append(unnested, fmt.Sprintf("$%d::%s[]", i+2, array))
	}
	known, _ := s.updates.LoadOrStore(key, &bulkStatement{stage: stageRecord, sql: `UPDATE ` + table.name + ` w SET ` + strings.Join(sets, ", ") + `
		FROM unnest(` + strings.Join(unnested, ", ") + `) u (id, ` + strings.Join(names, ", ") + `) WHERE w.id = u.id`})
	return known.(*bulkStatement), nil //nolint:forcetypeassert // nothing else is stored
}
