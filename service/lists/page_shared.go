package lists

import (
	"fmt"
	"slices"

	"millwright/service/store"
)

// A page shows each record's node with its path, and its people. Many records have the same node,
// almost all nodes the same ones above them, and a few people have most records. So a page reads
// each of these nodes and people once, and the API server gives them to the records.

// Shared is part of the row of a page whose records show their nodes and people.
type Shared struct {
	// Nodes are what NodesOfPage selects, Named what PeopleOfPage does: in one of the rows, nil in
	// the others.
	Nodes, Named []string
}

// OfPage returns what the row holds for its page.
func (s *Shared) OfPage() *Shared { return s }

// sharingRow is a row that has Shared.
type sharingRow interface {
	OfPage() *Shared
	// Node returns the record's node and where its JSON belongs.
	Node() (id string, into *[]byte)
	// Identities returns the ids of the people in the record, and where their JSON belongs.
	Identities() (ids []string, into *[]byte)
}

// PeopleOfPage selects, as the column named of one row, the {named} identities of all records of
// page, if they are shown: each id and its JSON.
const PeopleOfPage = `CASE WHEN {people} AND row_number() OVER () = 1 THEN ARRAY(
			SELECT unnest(ARRAY[shown.identity_id::text, row_to_json(shown)::text]) FROM (
				SELECT ` + store.NamedIdentity + ` FROM ({named}) named (id)
				CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = named.id LIMIT 1) i
				LEFT JOIN LATERAL (SELECT * FROM people WHERE id = named.id LIMIT 1) p ON true) shown) END AS named`

// showPeople gives the record of a row the JSON of its people.
func showPeople(row sharingRow, people map[string]string) {
	ids, into := row.Identities()
	slices.Sort(ids)
	var b []byte
	for _, id := range slices.Compact(ids) {
		if named, known := people[id]; known {
			b = append(append(b, ','), named...)
		}
	}
	if len(b) > 0 {
		b[0] = '['
		b = append(b, ']')
		*into = b
	}
}

// nodeFields is the number of strings in Nodes for each node.
const nodeFields = 4

// NodesOfPage selects, as the column nodes of one row, the nodes of all records of page and
// those above them: id, parent, and what their JSON has before external_id and there.
const NodesOfPage = `CASE WHEN row_number() OVER () = 1 THEN ARRAY(
			SELECT unnest(ARRAY[v.id::text, coalesce(v.parent_id::text, ''),
				'{"id":"' || v.id || '","kind":"' || v.kind || '","name":' || to_json(v.name)::text,
				',"external_id":' || coalesce(to_json(v.external_id)::text, 'null')])
			FROM (SELECT DISTINCT above.ancestor_id
				FROM (SELECT DISTINCT inventory_id FROM page) own
				CROSS JOIN LATERAL (SELECT ancestor_id FROM inventory_closure WHERE node_id = own.inventory_id OFFSET 0) above) shown
			CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = shown.ancestor_id LIMIT 1) v) END AS nodes`

// shownNode is a node of a page.
type shownNode struct {
	parent, head, code string
	// json is what the node's records show.
	json []byte
}

// ShowShared gives the records of a page the JSON of their nodes and people, if its rows have
// Shared. Errors: a record whose node was not read.
func ShowShared[Row any, P rowPointer[Row]](page []Row) error {
	rows := make([]sharingRow, len(page))
	nodes, people := map[string]*shownNode{}, map[string]string{}
	for n := range page {
		row, ok := any(P(&page[n])).(sharingRow)
		if !ok {
			return nil
		}
		rows[n] = row
		for of := range slices.Chunk(row.OfPage().Nodes, nodeFields) {
			nodes[of[0]] = &shownNode{parent: of[1], head: of[2], code: of[3]}
		}
		for of := range slices.Chunk(row.OfPage().Named, 2) {
			people[of[0]] = of[1]
		}
	}
	for _, row := range rows {
		id, into := row.Node()
		shown := nodes[id]
		if shown == nil {
			return fmt.Errorf("the node %s of a page is missing", id)
		}
		if shown.json == nil {
			shown.json = shown.reference(nodes)
		}
		*into = shown.json
		if len(people) > 0 {
			showPeople(row, people)
		}
	}
	return nil
}

// reference encodes a models.NodeReference, as the SQL of NodeReference does.
func (s *shownNode) reference(byID map[string]*shownNode) []byte {
	b := append(append(make([]byte, 0, store.RecordSize/2), s.head...), s.code...)
	return append(byID[s.parent].appendPath(append(b, `,"path":[`...), byID), "]}"...)
}

// appendPath appends the node, if there is one, after those above it.
func (s *shownNode) appendPath(b []byte, byID map[string]*shownNode) []byte {
	if s == nil {
		return b
	}
	if b = byID[s.parent].appendPath(b, byID); b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return append(append(b, s.head...), '}')
}
