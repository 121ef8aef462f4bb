package service

import (
	"fmt"
	"strings"
	"sync"

	"gorm.io/gorm/schema"
)

// with fills the placeholders of a piece of SQL: with(readableWorkOrder, "w", "w", "actor", "$1").
func with(sql string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		sql = strings.ReplaceAll(sql, "{"+pairs[i]+"}", pairs[i+1])
	}
	return sql
}

// columnsOf lists the columns of the model for its row {w}. The model is the
// only list: a column added there appears in every query that loads the record.
func columnsOf[Model any]() string {
	parsed, err := schema.Parse(new(Model), &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		panic(fmt.Sprintf("parse the schema of a model: %v", err)) // a mistake in package models
	}
	columns := make([]string, len(parsed.DBNames))
	for i, name := range parsed.DBNames {
		columns[i] = "{w}." + name
	}
	return strings.Join(columns, ", ")
}

// byPeople makes two forms of a query: one names the people in a record, the
// other does not. A parameter instead would prevent a generic plan, since half
// of the query falls away once its value is known.
func byPeople[Q any](query func(people string) Q) map[bool]Q {
	return map[bool]Q{true: query("true"), false: query("false")}
}

// peopleAmong selects, as the column people, the identities in a record by their
// ids, a list or a subquery. {people} decides whether they are shown at all.
func peopleAmong(ids string) string {
	return `CASE WHEN {people} THEN (
		SELECT json_agg(json_build_object('identity_id', i.id, 'kind', i.kind, 'name', i.name,
			'email', p.email, 'phone', p.phone) ORDER BY i.id)
		FROM identities i LEFT JOIN people p ON p.id = i.id
		WHERE i.id IN (` + ids + `)
	) END AS people`
}

// inventoryOf selects, as the column inventory, the node of the record {w}.
var inventoryOf = with(nodeReference, "node", "{w}.inventory_id") + ` AS inventory`

// nodeReference selects the node {node} with its path, as records show it. LIMIT makes
// Postgres look up each node by its id, even on a page of records.
const nodeReference = `(SELECT json_build_object('id', v.id, 'kind', v.kind, 'name', v.name, 'external_id', v.external_id,
		'path', (SELECT coalesce(json_agg(json_build_object('id', a.id, 'kind', a.kind, 'name', a.name) ORDER BY c.depth DESC), '[]')
			FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT id, kind, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) a
			WHERE c.node_id = v.id AND c.depth > 0))
	FROM inventory_nodes v WHERE v.id = {node})`

// textOrNil returns nil, a NULL in Postgres, for an empty text.
func textOrNil[S ~string](text S) any {
	if text == "" {
		return nil
	}
	return string(text)
}

// textsOf returns the values as plain strings.
func textsOf[S ~string](values []S) []string {
	texts := make([]string, len(values))
	for i, s := range values {
		texts[i] = string(s)
	}
	return texts
}
