package store

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

// JoinIDs makes a list of ids one value of a row; the statement splits it with
// SplitIDs. No id contains a comma: text from a caller that does names nothing.
func JoinIDs(ids []string) string { return strings.Join(ids, ",") }

// SplitIDs is the SQL for the array of ids in a value of JoinIDs.
func SplitIDs(value string) string { return `string_to_array(` + value + `, ',')` }

// modelTable is the table of a model, from its GORM schema.
type modelTable struct {
	name string
	// fields are the columns that an INSERT sets.
	fields []*schema.Field
	// insert takes rows with the values of fields.
	insert *batch.Statement
}

// inserts are the stages at which frequent writes insert into a table, and the
// ON CONFLICT clauses. Other tables are inserted into at the first stage.
var inserts = map[string]struct {
	stage      int
	onConflict string
}{
	"work_orders":          {stage: stageRecord},
	"feedback":             {stage: stageRecord},
	"comments":             {stage: stageRecord},
	"work_order_assignees": {stage: stageRecordRow},
	"log":                  {stage: stageLog},
	"stored_responses":     {stageResponse, replaceExpiredResponse},
}

// table returns the table of a model's type.
func (s *Store) table(model reflect.Type) (*modelTable, error) {
	if known, ok := s.tables.Load(model); ok {
		return known.(*modelTable), nil //nolint:forcetypeassert // the map holds only these
	}
	statement := &gorm.Statement{DB: s.ORM}
	if err := statement.Parse(reflect.New(model).Interface()); err != nil {
		return nil, fmt.Errorf("read the columns of a model: %w", err)
	}
	found := &modelTable{name: statement.Schema.Table}
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
		WITH ORDINALITY u (` + strings.Join(columns, ", ") + `, nth) ORDER BY u.nth` + inserts[found.name].onConflict}
	s.tables.Store(model, found)
	return found, nil
}

// columnTypes returns the element type of the array that carries a column's values,
// and the cast from it to the column's type, "" if they are the same.
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

// fieldValue returns ColumnValue of a field of a model, which may be changed. It does not
// copy what most fields are.
func fieldValue(field reflect.Value) (any, error) {
	switch p := field.Addr().Interface().(type) {
	case *string:
		return *p, nil
	case **string:
		if *p == nil {
			return nil, nil //nolint:nilnil // NULL
		}
		return **p, nil
	case *models.Time:
		return p.Time, nil
	}
	return ColumnValue(field.Interface())
}

// ColumnValue returns a value as an element of the array that carries it.
func ColumnValue(value any) (any, error) {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil //nolint:nilnil // NULL
	}
	if valuer, ok := value.(driver.Valuer); ok {
		return valuer.Value()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return ColumnValue(v.Elem().Interface())
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int64:
		return v.Int(), nil
	default:
		return value, nil
	}
}

// Insert queues the INSERT of a model, or of a slice of models. rows is a pointer.
func (t *Tx) Insert(rows any) error {
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
			if all[i][c], err = fieldValue(value.Index(i).FieldByIndex(field.StructField.Index)); err != nil {
				return fmt.Errorf("write the column %s: %w", field.DBName, err)
			}
		}
	}
	t.QueueBulk(table.insert, all...)
	return nil
}

// Update queues the UPDATE of columns in the row of the model with the id.
func (t *Tx) Update(model reflect.Type, id string, columns map[string]any) error {
	table, err := t.table(model)
	if err != nil {
		return err
	}
	row := []any{id}
	names := slices.Sorted(maps.Keys(columns))
	for _, name := range names {
		value, err := ColumnValue(columns[name])
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

// updateOf returns the statement that sets the named columns in rows of the table by
// their ids. That they are among $1 follows from the join, but makes Postgres look them up
// even if the table was empty when it planned.
func (s *Store) updateOf(table *modelTable, names []string) (*batch.Statement, error) {
	key := table.name + " " + strings.Join(names, " ")
	if known, ok := s.updates.Load(key); ok {
		return known.(*batch.Statement), nil //nolint:forcetypeassert // the map holds only these
	}
	var sets []string
	unnested := []string{"$1::text[]"}
	for i, name := range names {
		n := slices.IndexFunc(table.fields, func(f *schema.Field) bool { return f.DBName == name })
		array, cast := "text", "" // a column that the model does not have
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
		FROM unnest(` + strings.Join(unnested, ", ") + `) u (id, ` + strings.Join(names, ", ") + `) WHERE w.id = u.id AND w.id = ANY ($1)`})
	return known.(*batch.Statement), nil //nolint:forcetypeassert // the map holds only these
}
