package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm/schema"
)

// Numbered replaces the parameters @name of a query by numbered ones. pgx.NamedArgs does
// the same, but parses the query: 50 µs for that of a page.
func Numbered(sql string, named pgx.NamedArgs) (query string, args []any) {
	var b strings.Builder
	b.Grow(len(sql))
	var names []string
	for {
		before, rest, found := strings.Cut(sql, "@")
		b.WriteString(before)
		if !found {
			return b.String(), args
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' })
		if end < 0 {
			end = len(rest)
		}
		if end == 0 { // part of an operator
			b.WriteByte('@')
			sql = rest
			continue
		}
		n := slices.Index(names, rest[:end])
		if n < 0 {
			n = len(names)
			names, args = append(names, rest[:end]), append(args, named[rest[:end]])
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n + 1))
		sql = rest[end:]
	}
}

// ColumnsOf lists the columns of the model for the row with the name. The model is the
// only list: a column added there appears in every query that loads the record.
func ColumnsOf[Model any](row string) string {
	parsed, err := schema.Parse(new(Model), &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		panic(fmt.Sprintf("parse the schema of a model: %v", err)) // a mistake in package models
	}
	var columns []string
	for _, name := range parsed.DBNames {
		if parsed.FieldsByDBName[name].Readable {
			columns = append(columns, row+"."+name)
		}
	}
	return strings.Join(columns, ", ")
}

// ByPeople makes two forms of a query: one names the people in a record, the
// other does not. A parameter instead would prevent a generic plan, since half
// of the query falls away once its value is known.
func ByPeople[Q any](query func(people string) Q) map[bool]Q {
	return map[bool]Q{true: query("true"), false: query("false")}
}

// PeopleAmong selects, as the column people, the identities in a record by their
// ids, a list or a subquery. The condition people decides whether they are shown at all.
func PeopleAmong(people, ids string) string {
	return `CASE WHEN ` + people + ` THEN (
		SELECT array_to_json(array_agg(named ORDER BY named.identity_id))
		FROM (SELECT ` + NamedIdentity + `
			FROM identities i LEFT JOIN people p ON p.id = i.id
			WHERE i.id IN (` + ids + `)) named
	) END AS people`
}

// NamedIdentity are the columns of the identity i with the person p that records show.
const NamedIdentity = `i.id AS identity_id, i.kind, i.name, p.email, p.phone`

// InventoryOf selects, as the column inventory, the node of the record w.
var InventoryOf = NodeReference("w.inventory_id") + ` AS inventory`

// NodeReference selects the node with its path, as records show it: row_to_json
// and array_to_json write no spaces. LIMIT makes Postgres look up each node by its id,
// even on a page of records.
func NodeReference(node string) string {
	return `(SELECT row_to_json(shown) FROM (
		SELECT v.id, v.kind, v.name, v.external_id,
			ARRAY(SELECT above FROM inventory_closure c
				CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) above
				WHERE c.node_id = v.id AND c.depth > 0 ORDER BY c.depth DESC) AS path
		FROM inventory_nodes v WHERE v.id = ` + node + `) shown)`
}

// TextsOf returns the values as plain strings.
func TextsOf[S ~string](values []S) []string {
	all := make([]string, len(values))
	for i, s := range values {
		all[i] = string(s)
	}
	return all
}

// Overwrite sets the field if a value is given.
func Overwrite[T any](field, given *T) {
	if given != nil {
		*field = *given
	}
}

// TextOf returns the text, "" for nil.
func TextOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// IndexPlans makes Postgres plan each statement of the transaction once per connection,
// with indexes. It may otherwise plan a statement again for each execution; planning takes ten
// times as long as executing. A plan is kept for as long as the connection: one made while
// a table was empty would read all of it until it is analyzed. A statement that looks rows
// up by keys needs LATERAL … LIMIT 1 as well: an index without rows seems as cheap to read
// from end to end.
const IndexPlans = `SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true)`

// AllowLongStatement gives the rest of a transaction enough time for every record.
const AllowLongStatement = `SET LOCAL statement_timeout = '10min'`
