package inventory

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// A person sees a node on which it has any permission (api.md 5.7). An
// administrator sees every node of its organization, since it may give permissions on it.

// NodeSearch selects nodes.
type NodeSearch struct {
	// Text are words of the name and the code (external_id) and, apart from one of them, of the path.
	Text string
	// Grant restricts the nodes to those on which the person has the permission, "" to those
	// that it sees.
	Grant models.Grant
	// NotSubEquipment leaves sub-equipment out, on which there are no work orders.
	NotSubEquipment bool
	// Retired includes retired nodes.
	Retired bool
	// Limit is the number of nodes at most; 0 is the size of a page.
	Limit int
}

// FoundNode is a node that a search found.
type FoundNode struct {
	models.NodeReference
	Retired bool
}

// MaxWordNodes limits the nodes with a word that a search looks at.
const MaxWordNodes = 20_000

// NodesWithWords selects nodes with the words that they and the nodes above have in their names
// and codes, each a bit, and those that they have themselves, NULL if none. @terms are a tsquery
// for each word, of which @most nodes are looked at. OFFSET has the nodes below each looked up by index.
const NodesWithWords = `
	SELECT c.node_id, bit_or(h.word) AS words, bit_or(h.word) FILTER (WHERE c.node_id = h.id) AS own
	FROM unnest(@terms::text[]) WITH ORDINALITY t (term, nth)
	CROSS JOIN LATERAL (SELECT id, 1::bigint << (t.nth - 1)::int AS word FROM inventory_nodes
		WHERE words @@ t.term::tsquery LIMIT @most) h
	CROSS JOIN LATERAL (SELECT node_id FROM inventory_closure WHERE ancestor_id = h.id OFFSET 0) c
	GROUP BY c.node_id`

// maxNodeWords limits the words of a search of nodes.
const maxNodeWords = 20

// nodesWithWord selects the nodes with the only word of a search, nodesWithEach those that have one of several words
// themselves and the others at least on their path.
const nodesWithWord = `SELECT id AS node_id, true AS own FROM inventory_nodes WHERE words @@ (@terms::text[])[1]::tsquery LIMIT @most`

var nodesWithEach = `SELECT n.node_id, n.own = n.words AS own FROM (` + NodesWithWords + `) n
		WHERE n.words = (1::bigint << cardinality(@terms::text[])) - 1 AND n.own IS NOT NULL`

// searchNodesQuery finds the nodes of the subquery worded first and then checks them, best first, until there are
// enough: nodes with this code or name, nodes whose name begins with it, those that have all words, and those with some of
// the words on the path.
func searchNodesQuery(worded string) string {
	return `
	WITH worded AS MATERIALIZED (` + worded + `), granted AS MATERIALIZED (SELECT node_id, applies_below FROM assigned_rights WHERE actor_id = @actor AND (@grant = '' OR @grant = ANY (grants)))
	SELECT n.id, n.name, n.kind, n.external_id, n.retired, ` + access.PathOf("n.id") + `
	FROM (SELECT m.* FROM (
			SELECT v.id, v.name, v.sort_key, v.kind, v.external_id, v.retired_at IS NOT NULL AS retired,
				CASE WHEN v.words @@ @code::tsquery OR v.sort_key = @key THEN 0
					WHEN starts_with(v.sort_key, @key) THEN 1
					WHEN worded.own THEN 2 ELSE 3 END AS rank
			FROM worded CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = worded.node_id LIMIT 1) v
			WHERE NOT (@upper AND v.kind = 'sub_equipment') AND (@retired OR v.retired_at IS NULL)
			ORDER BY rank, v.sort_key, v.id OFFSET 0) m
		WHERE @grant = '' AND ` + access.IsAdmin("@actor", "@organization") + ` OR ` + lists.AmongGranted("m.id") + `
		LIMIT @limit) n
	ORDER BY n.rank, n.sort_key, n.id`
}

// SearchNodes returns the nodes that a person sees, or on which it has a permission, by words of
// their name, code and path; none if it is empty. The best matches come first: it is for
// choosing one, so a search that finds more than its limit is to be narrowed. Errors:
// permission_denied for an integration, unavailable.
func (s *Inventory) SearchNodes(ctx context.Context, actor store.Actor, search NodeSearch) ([]FoundNode, error) {
	if err := access.RequirePerson(actor, "The search of the inventory"); err != nil {
		return nil, err
	}
	words := models.SearchWords(search.Text)
	if len(words) == 0 || len(words) > maxNodeWords {
		return nil, nil
	}
	terms := make([]string, len(words))
	for i := range words {
		terms[i] = models.WordQuery(words[i:i+1], actor.OrganizationID)
	}
	worded := nodesWithWord
	if len(words) > 1 {
		worded = nodesWithEach
	}
	var found []FoundNode
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found, searchNodesQuery(worded), pgx.NamedArgs{
			"actor": actor.IdentityID, "organization": actor.OrganizationID,
			"code": models.WordQuery([]models.SearchedWord{models.CodeWord(search.Text)}, actor.OrganizationID), "key": models.SortKey(search.Text), "terms": terms, "most": MaxWordNodes, "grant": string(search.Grant), "upper": search.NotSubEquipment, "retired": search.Retired,
			"limit": min(cmp.Or(search.Limit, models.DefaultPageSize), models.MaxPageSize+1),
		})
		return nil
	}, func() ([]FoundNode, error) { return found, nil })
}

// QueueNamedNodes reads the nodes that a person names by an id or a code (external_id), a few of them if
// several have the code. They meet the condition on the node n by @actor.
func QueueNamedNodes(pipeline *pgx.Batch, into *[]models.NodeReference, actor store.Actor, idOrCode, condition string) {
	store.QueueAll(pipeline, into, `
	SELECT n.id, n.name, n.kind, n.external_id, `+access.PathOf("n.id")+` FROM inventory_nodes n
	WHERE (n.id = @node OR n.words @@ @code::tsquery) AND `+condition+`
	ORDER BY n.id LIMIT 4`,
		pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "node": idOrCode, "code": models.WordQuery([]models.SearchedWord{models.CodeWord(idOrCode)}, actor.OrganizationID)})
}

// EnterID asks for the id of one of the nodes, which have the same code.
func EnterID(nodes []models.NodeReference) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name + " (" + n.ID + ")"
	}
	return "Several places have this code. Enter the id of one: " + strings.Join(names, ", ") + "."
}

// OnlyNode returns the id of the node that a code names, or the error if none has it.
// Errors: validation_failed (/node).
func OnlyNode(nodes []models.NodeReference, unknown error) (string, error) {
	switch len(nodes) {
	case 0:
		return "", unknown
	case 1:
		return nodes[0].ID, nil
	}
	return "", models.Invalid(models.FieldError{Pointer: "/node", Code: "ambiguous", Detail: EnterID(nodes)})
}
