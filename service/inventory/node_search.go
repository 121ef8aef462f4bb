package inventory

import (
	"cmp"
	"context"
	"strconv"
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
	// Text is a part of the name or of the code (external_id), in any case, or words that occur in
	// them and on the path. The last word may be a beginning.
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
// and codes, each a bit, and those that they have themselves, NULL if none. {terms} are a tsquery
// for each word, of which {most} nodes are looked at. OFFSET has the nodes below each looked up by index.
const NodesWithWords = `
	SELECT c.node_id, bit_or(h.word) AS words, bit_or(h.word) FILTER (WHERE c.node_id = h.id) AS own
	FROM unnest({terms}) WITH ORDINALITY t (term, nth)
	CROSS JOIN LATERAL (SELECT id, 1::bigint << (t.nth - 1)::int AS word FROM inventory_nodes
		WHERE array_to_tsvector(search_words(organization_id, name || ' ' || coalesce(external_id, ''))) @@ t.term::tsquery LIMIT {most}) h
	CROSS JOIN LATERAL (SELECT node_id FROM inventory_closure WHERE ancestor_id = h.id OFFSET 0) c
	GROUP BY c.node_id`

// WordTerm is the tsquery of the nth word of words, of which the last may be the beginning of one.
const WordTerm = `'''' || word || '''' || CASE WHEN nth = cardinality(words) THEN ':*' ELSE '' END`

// searchNodesQuery finds the nodes first and then checks them, best first, until there are
// enough: nodes with this code or name, nodes that begin with it, those that contain it or all of its
// words, and those with some of the words on the path. A single word is searched as a part.
var searchNodesQuery = `
	WITH terms AS MATERIALIZED (
		SELECT ARRAY(SELECT ` + WordTerm + `
			FROM unnest(words) WITH ORDINALITY u (word, nth) ORDER BY nth) AS terms, (1::bigint << cardinality(words)) - 1 AS every
		FROM search_words(@organization, @text) words WHERE cardinality(words) BETWEEN 2 AND 20
	), worded AS MATERIALIZED (
		SELECT n.node_id, n.own = every AS own FROM terms, (` + store.Fill(NodesWithWords, "terms", "(SELECT terms FROM terms)", "most", strconv.Itoa(MaxWordNodes)) + `) n
		WHERE n.words = every AND n.own IS NOT NULL
	), granted AS MATERIALIZED (SELECT node_id, applies_below FROM assigned_rights WHERE actor_id = @actor AND (@grant = '' OR @grant = ANY (grants)))
	SELECT n.id, n.name, n.kind, n.external_id, n.retired, ` + store.Fill(access.PathOf, "w", "n") + `
	FROM (SELECT m.* FROM (
			SELECT v.id, v.name, v.kind, v.external_id, v.retired_at IS NOT NULL AS retired, lower(v.name) AS folded,
				CASE WHEN @text IN (lower(v.external_id), lower(v.name)) THEN 0
					WHEN starts_with(lower(v.external_id), @text) OR starts_with(lower(v.name), @text) THEN 1
					WHEN v.id IN (SELECT node_id FROM worded WHERE NOT own) THEN 3 ELSE 2 END AS rank
			FROM inventory_nodes v
			WHERE v.organization_id = @organization AND NOT (@upper AND v.kind = 'sub_equipment') AND (@retired OR v.retired_at IS NULL) AND (strpos(lower(v.name), @text) > 0 OR strpos(lower(v.external_id), @text) > 0
				OR v.id IN (SELECT node_id FROM worded))
			ORDER BY rank, folded, v.id OFFSET 0) m
		WHERE @grant = '' AND ` + store.Fill(access.IsAdmin, "actor", "@actor", "organization", "@organization") + ` OR ` + store.Fill(lists.AmongGranted, "node", "m.id") + `
		LIMIT @limit) n
	ORDER BY n.rank, n.folded COLLATE natural_names, n.id`

// SearchNodes returns the nodes that a person sees, or on which it has a permission, by a
// part of their name or code or by words; none if it is empty. The best matches come first: it is for
// choosing one, so a search that finds more than its limit is to be narrowed. Errors:
// permission_denied for an integration, unavailable.
func (s *Inventory) SearchNodes(ctx context.Context, actor store.Actor, search NodeSearch) ([]FoundNode, error) {
	if err := access.RequirePerson(actor, "The search of the inventory"); err != nil {
		return nil, err
	}
	text := strings.ToLower(models.Trim(search.Text))
	if text == "" || !models.IsText(text) {
		return nil, nil
	}
	var found []FoundNode
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found, searchNodesQuery, pgx.NamedArgs{
			"actor": actor.IdentityID, "organization": actor.OrganizationID, "text": text, "grant": string(search.Grant), "upper": search.NotSubEquipment, "retired": search.Retired,
			"limit": min(cmp.Or(search.Limit, models.DefaultPageSize), models.MaxPageSize+1),
		})
		return nil
	}, func() ([]FoundNode, error) { return found, nil })
}

// namedNodesQuery selects the nodes with the id @node, and nodes of @organization with this
// code (external_id), that meet the {condition} on the node n by @actor.
var namedNodesQuery = `
	SELECT n.id, n.name, n.kind, n.external_id, ` + store.Fill(access.PathOf, "w", "n") + ` FROM inventory_nodes n
	WHERE (n.id = @node OR n.organization_id = @organization AND n.external_id = @node) AND {condition}
	ORDER BY n.id LIMIT 4`

// QueueNamedNodes reads the nodes that a person names by an id or a code, a few of them if
// several have the code.
func QueueNamedNodes(pipeline *pgx.Batch, into *[]models.NodeReference, actor store.Actor, idOrCode, condition string) {
	condition = store.Fill(condition, "node", "n.id", "actor", "@actor", "organization", "n.organization_id")
	store.QueueAll(pipeline, into, store.Fill(namedNodesQuery, "condition", condition),
		pgx.NamedArgs{"actor": actor.IdentityID, "organization": actor.OrganizationID, "node": idOrCode})
}

// EnterID asks for the id of one of the nodes, which have the same code.
func EnterID(nodes []models.NodeReference) string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name + " (" + n.ID + ")"
	}
	return "Several nodes have this code. Enter the id of one: " + strings.Join(names, ", ") + "."
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
