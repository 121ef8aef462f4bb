package records

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/store"
)

// wordSearch is what a search has found out about its words. A work order matches if each occurs
// in its number, title or external id, or in the name or code of a node on its path.
type wordSearch struct {
	words []models.SearchedWord
	// owners are the organizations whose work orders the actor may read.
	owners []string
	// found are work orders that match. many is true if too many contain all words in their own
	// fields: these are found in the order of the list.
	found []string
	many  bool
	// nodes have some of the words, the fewest nodes first.
	nodes []nodesWithWords
}

// nodesWithWords are nodes with the words, as bits, that they and the nodes above have.
type nodesWithWords struct {
	Words int64
	Nodes []string
	// Found is true if found has their work orders.
	Found bool `db:"-"`
}

// ownersQuery selects the organizations whose work orders an actor may read: its own, and those whose service
// company it is.
const ownersQuery = `
	SELECT @organization::text AS id UNION ALL (SELECT customer_id FROM service_companies WHERE company_id = @organization LIMIT @customers)`

// nodesQuery selects the nodes that have words of @terms, by which they have.
var nodesQuery = `SELECT words, array_agg(node_id) AS nodes FROM (` + inventory.NodesWithWords + `) n
	GROUP BY words ORDER BY count(*), words`

// queueMatches adds the queries of the work orders that have all words, and of the nodes that
// have some. An external id is none of a node.
func (f *workOrderFinder) queueMatches(pipeline *pgx.Batch) {
	f.Args["words"] = f.words.query(f.words.every())
	pipeline.Queue(`SELECT id FROM work_order_words WHERE words @@ $1::tsquery LIMIT $2`, f.Args["words"], maxWordMatches+1).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if f.words.many = len(found) > maxWordMatches; !f.words.many {
			f.words.found = found
		}
		return err
	})
	if f.search.ExternalID != "" {
		return
	}
	terms := make([]string, len(f.words.words))
	for i := range terms {
		terms[i] = f.words.query(1 << i)
	}
	most := inventory.MaxWordNodes
	if len(terms) == 1 { // more are left out anyway
		most = maxWordNodes + 1
	}
	store.QueueAll(pipeline, &f.words.nodes, nodesQuery, pgx.NamedArgs{"terms": terms, "most": most})
}

// mixedQuery selects work orders that have some words, with their nodes; an empty row if there are
// more than $2.
const mixedQuery = `
	WITH m AS MATERIALIZED (SELECT id FROM work_order_words WHERE words @@ $1::tsquery LIMIT $2 + 1), n AS MATERIALIZED (SELECT count(*) FROM m)
	SELECT m.id, w.inventory_id FROM m
	CROSS JOIN LATERAL (SELECT inventory_id FROM work_orders WHERE id = m.id LIMIT 1) w
	WHERE (SELECT count FROM n) <= $2
	UNION ALL SELECT '', '' FROM n WHERE count > $2`

// queueMixed adds the queries for work orders that contain the words missing on their node's path,
// for the largest groups of nodes.
func (f *workOrderFinder) queueMixed(pipeline *pgx.Batch) error {
	queries := 0
	for i := len(f.words.nodes) - 1; i >= 0 && queries < maxMixed && !f.nothing; i-- {
		group := &f.words.nodes[i]
		rest := f.words.without(group.Words)
		if rest == "" {
			continue
		}
		queries++
		pipeline.Queue(mixedQuery, rest, maxWordMatches).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ ID, Node string }])
			if group.Found = len(found) == 0 || found[0].ID != ""; !group.Found {
				return err
			}
			nodes := make(map[string]bool, len(group.Nodes))
			for _, id := range group.Nodes {
				nodes[id] = true
			}
			for _, one := range found {
				if nodes[one.Node] {
					f.words.found = append(f.words.found, one.ID)
				}
			}
			return err
		})
	}
	return nil
}

// searched are the groups whose work orders are read node by node, as many as is fast enough. The
// rest is left out: people can filter by place instead.
func (s *wordSearch) searched() (groups []nodesWithWords) {
	room := maxWordNodes
	for _, group := range s.nodes {
		if !group.Found && len(group.Nodes) <= room {
			room -= len(group.Nodes)
			groups = append(groups, group)
		}
	}
	return groups
}

// without returns the tsquery of the remaining words, or an empty string.
func (s *wordSearch) without(words int64) string { return s.query(s.every() &^ words) }

// every has a bit for each word.
func (s *wordSearch) every() int64 { return 1<<len(s.words) - 1 }

// query returns the tsquery of the words that have a bit.
func (s *wordSearch) query(bits int64) string {
	var words []models.SearchedWord
	for nth, word := range s.words {
		if bits&(1<<nth) != 0 {
			words = append(words, word)
		}
	}
	return models.WordQuery(words, s.owners...)
}

// wordCandidates select the work orders that were found by words, and those on nodes with words.
func (f *workOrderFinder) wordCandidates(looked int, statuses []string) []string {
	const cut = 2 * (maxMixed + 1) * maxWordMatches // more than were found
	past, _ := f.order()
	f.Args["found"] = f.words.found
	sources := []string{candidateRows(`'words'`, `''`, isOther, cut, f.byID(`m`, `unnest(@found::public_id[]) m WHERE true`, ` AND m `+past+` @after`, cut))}
	var nodes []string
	for _, group := range f.words.searched() {
		nodes = append(nodes, group.Nodes...)
	}
	if len(nodes) == 0 {
		return sources
	}
	how := isOnNode
	if f.access.Nodes != nil {
		how = isReadable
		nodes = slices.DeleteFunc(nodes, func(id string) bool { return !slices.Contains(f.access.Nodes, id) })
	}
	if !f.counts {
		looked = min(looked, maxWordMatches)
	}
	return append(append(sources, f.ownCandidates(looked)...), f.onNodes(nodes, how, looked, leastOfWordNode, statuses))
}

// leastOfWordNode is the number of work orders that are looked at of each node with words.
const leastOfWordNode = 8

// haveWords is the condition that w matches the words. IS TRUE makes Postgres look the ids up
// in hash tables that it makes once.
func (f *workOrderFinder) haveWords() string {
	const text = `(SELECT x.words FROM work_order_words x WHERE x.id = w.id) @@ `
	f.Args["found"] = f.words.found
	ways := []string{`w.id IN (SELECT unnest(@found::text[]))`}
	for i, group := range f.words.searched() {
		name := strconv.Itoa(i)
		way := `w.inventory_id IN (SELECT unnest(@wordnodes` + name + `::text[]))`
		f.Args["wordnodes"+name] = group.Nodes
		if rest := f.words.without(group.Words); rest != "" {
			way += ` AND ` + text + `@rest` + name + `::tsquery`
			f.Args["rest"+name] = rest
		}
		ways = append(ways, way)
	}
	if f.words.many {
		ways = append(ways, text+`@words::tsquery`)
	}
	return `(` + strings.Join(ways, ` OR `) + `) IS TRUE`
}
