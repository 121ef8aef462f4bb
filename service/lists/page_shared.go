package lists

import (
	"fmt"
	"slices"

	"millwright/models"
)

// A page shows each record's node with its path, and its people. Many records have the same node,
// almost all nodes the same ones above them, and a few people have most records. So a page reads
// each of these nodes and people once, and the API server gives them to the records.

// Shared is part of the row of a page whose records show their nodes and people.
type Shared struct {
	// Nodes are what NodesOfPage selects, Named what PeopleOfPage does: in one of the rows, nil in
	// the others.
	Nodes, Named []*string
}

// OfPage returns what the row holds for its page.
func (s *Shared) OfPage() *Shared { return s }

// sharingRow is a row that has Shared.
type sharingRow interface {
	OfPage() *Shared
	// Node returns the id of the record's node, and where the node belongs.
	Node() (id string, into **models.NodeReference)
	// Identities returns the ids of the people in the record, and where they belong.
	Identities() (ids []string, into *[]models.NamedIdentity)
}

// personFields and nodeFields are the number of strings in Named and Nodes for each.
const personFields, nodeFields = 5, 5

// PeopleOfPage selects, as the column named of one row, the identities with the ids of the query named of all records of
// page, if they are shown: if people is true. Strings take less time to read than JSON.
func PeopleOfPage(people, named string) string {
	return `CASE WHEN ` + people + ` AND row_number() OVER () = 1 THEN ARRAY(
			SELECT unnest(ARRAY[i.id, i.kind, i.name, p.email, p.phone]::text[])
			FROM (` + named + `) named (id)
			CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = named.id LIMIT 1) i
			LEFT JOIN LATERAL (SELECT * FROM people WHERE id = named.id LIMIT 1) p ON true) END AS named`
}

// NodesOfPage selects, as the column nodes of one row, the nodes of all records of page and
// those above them.
const NodesOfPage = `CASE WHEN row_number() OVER () = 1 THEN ARRAY(
			SELECT unnest(ARRAY[v.id, v.kind, v.name, v.external_id, v.parent_id]::text[])
			FROM (SELECT DISTINCT above.ancestor_id
				FROM (SELECT DISTINCT inventory_id FROM page) own
				CROSS JOIN LATERAL (SELECT ancestor_id FROM inventory_closure WHERE node_id = own.inventory_id OFFSET 0) above) shown
			CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = shown.ancestor_id LIMIT 1) v) END AS nodes`

// shownNode is a node of a page.
type shownNode struct {
	models.NodeReference
	parentID *string
}

// ShowShared gives the records of a page their nodes and people, if its rows have Shared.
// Errors: a record whose node was not read.
func ShowShared[Row any, P rowPointer[Row]](page []Row) error {
	rows := make([]sharingRow, len(page))
	nodes, people := map[string]*shownNode{}, map[string]models.NamedIdentity{}
	for n := range page {
		row, ok := any(P(&page[n])).(sharingRow)
		if !ok {
			return nil
		}
		rows[n] = row
		for of := range slices.Chunk(row.OfPage().Nodes, nodeFields) {
			nodes[*of[0]] = &shownNode{models.NodeReference{ID: *of[0], Kind: models.NodeKind(*of[1]), Name: *of[2], ExternalID: of[3]}, of[4]}
		}
		for of := range slices.Chunk(row.OfPage().Named, personFields) {
			people[*of[0]] = models.NamedIdentity{IdentityID: *of[0], Kind: models.IdentityKind(*of[1]), Name: *of[2], Email: of[3], Phone: of[4]}
		}
	}
	for _, row := range rows {
		id, into := row.Node()
		shown := nodes[id]
		if shown == nil {
			return fmt.Errorf("the node %s of a page is missing", id)
		}
		if shown.Path == nil {
			shown.Path = shown.path(nodes)
		}
		*into = &shown.NodeReference
		if len(people) > 0 {
			showPeople(row, people)
		}
	}
	return nil
}

// path returns the nodes above the node, from the root down.
func (s *shownNode) path(byID map[string]*shownNode) []models.PathNode {
	path := []models.PathNode{}
	for s.parentID != nil && byID[*s.parentID] != nil {
		s = byID[*s.parentID]
		path = append(path, models.PathNode{ID: s.ID, Kind: s.Kind, Name: s.Name})
	}
	slices.Reverse(path)
	return path
}

// showPeople gives the record of a row its people.
func showPeople(row sharingRow, people map[string]models.NamedIdentity) {
	ids, into := row.Identities()
	slices.Sort(ids)
	var shown []models.NamedIdentity
	for _, id := range slices.Compact(ids) {
		if named, known := people[id]; known {
			shown = append(shown, named)
		}
	}
	*into = shown
}
