package service

import (
	"database/sql/driver"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"millwright/models"
	"millwright/service/batch"
)

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
	insert *batch.Statement
}

// inserts say at which place writes insert rows of a table, the others' first, and
// what becomes of a row that is there already.
var inserts = map[string]struct {
	stage    int
	conflict string
}{
	"work_orders":          {stage: stageRecord},
	"feedback":             {stage: stageRecord},
	"work_order_assignees": {stage: stageRecordRow},
	"history":              {stage: stageHistory},
	"log_records":          {stage: stageLog},
	"events":               {stage: stageEvent},
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
	found.insert = &batch.Statement{Stage: inserts[found.name].stage, SQL: `INSERT INTO ` + found.name + ` (` + strings.Join(columns, ", ") + `)
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
	t.QueueBulk(table.insert, all...)
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
	t.QueueBulk(changed, row)
	return nil
}

// updateOf is the bulk that changes these columns of rows of the table by their ids.
func (s *Service) updateOf(table *table, names []string) (*batch.Statement, error) {
	key := table.name + " " + strings.Join(names, " ")
	if known, ok := s.updates.Load(key); ok {
		return known.(*batch.Statement), nil //nolint:forcetypeassert // nothing else is stored
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
	known, _ := s.updates.LoadOrStore(key, &batch.Statement{Stage: stageRecord, SQL: `UPDATE ` + table.name + ` w SET ` + strings.Join(sets, ", ") + `
		FROM unnest(` + strings.Join(unnested, ", ") + `) u (id, ` + strings.Join(names, ", ") + `) WHERE w.id = u.id`})
	return known.(*batch.Statement), nil //nolint:forcetypeassert // nothing else is stored
}
