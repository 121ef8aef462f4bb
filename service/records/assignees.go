package records

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/store"
)

// Assignee is an identity that was assigned to a node or above it.
type Assignee struct {
	IdentityID, Name string
	Kind             models.IdentityKind
	// Email is a person's. Deactivated people keep their permissions and cannot use them.
	Email        *string
	Deactivated  bool
	DefinitionID string
	Definition   string
	AppliesBelow bool
	Manager      bool
	Grants       []models.Grant
	// Depth is 0 for an assignment on the node itself, else how far above the source is.
	Depth int
	// SourceID and Source are the node that was assigned; SourceSeen is whether the person who
	// asks sees it.
	SourceID, Source string
	SourceSeen       bool
}

// AssigneePage selects the assignees of a node to read.
type AssigneePage struct {
	// After is the last one of the previous page, empty for the first page.
	After AssigneePosition
	// Limit is the number of assignees at most; 0 is the size of a page.
	Limit int
}

// AssigneePosition is the place of an assignee in the list.
type AssigneePosition struct {
	Depth            int
	Name, IdentityID string
}

// AssigneeColumns are the columns of Assignee for the assignment g of the definition d to the
// identity i at c.depth above the node.
const AssigneeColumns = `i.id AS identity_id, i.name, i.kind, p.email, p.deactivated_at IS NOT NULL AS deactivated,
		d.id AS definition_id, d.name AS definition, d.applies_below, d.inventory_manager AS manager, d.grants, c.depth, v.id AS source_id, v.name AS source`

// AssigneesOf are the assignments that have an effect on the node, or are its own.
func AssigneesOf(node string) string {
	return `FROM inventory_closure c
		CROSS JOIN LATERAL (SELECT * FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) v
		JOIN assignments g ON g.node_id = c.ancestor_id
		CROSS JOIN LATERAL (SELECT * FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
		CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = g.identity_id LIMIT 1) i
		LEFT JOIN LATERAL (SELECT * FROM people WHERE id = i.id LIMIT 1) p ON true
		WHERE c.node_id = ` + node + ` AND (c.depth = 0 OR d.applies_below AND d.grants <> '{}')`
}

var assigneesQuery = `
	SELECT ` + AssigneeColumns + `, ` + access.PersonSees("v.id", "@actor", "@organization") + ` AS source_seen
	` + AssigneesOf("@node") + ` AND (@id = '' OR (c.depth, i.sort_key, i.id) > (@depth, @key, @id))
	ORDER BY c.depth, i.sort_key, i.id LIMIT @limit`

// Assignees returns who has which permission definition on a node that the person sees: by
// an assignment on the node itself first, then by those above that apply below. Errors:
// not_found, permission_denied for an integration, unavailable.
func (s *Records) Assignees(ctx context.Context, actor store.Actor, nodeID string, page AssigneePage) ([]Assignee, error) {
	if err := access.RequirePerson(actor, "The list of assignees"); err != nil {
		return nil, err
	}
	if !inventory.IsNodeID(nodeID) {
		return nil, models.NotFound()
	}
	if !models.IsText(page.After.Name + page.After.IdentityID) {
		return nil, models.Errorf(models.CodeInvalidRequest, "The page does not exist.")
	}
	args := pgx.NamedArgs{
		"actor": actor.IdentityID, "organization": actor.OrganizationID, "node": nodeID,
		"depth": page.After.Depth, "key": models.SortKey(page.After.Name), "id": page.After.IdentityID,
		"limit": min(cmp.Or(page.Limit, models.DefaultPageSize), models.MaxPageSize+1),
	}
	return store.KnownList[Assignee](ctx, s.Store, actor.OrganizationID, inventory.SeesNode, []any{args}, assigneesQuery, []any{args})
}

// AssigneeChoices are what a person can choose from to assign someone to a node, at most 200
// of each. Definitions are those that the person may give there. Identities are teams, organizations and integrations first, then people by name.
type AssigneeChoices struct {
	Node        inventory.NodeView
	Definitions []inventory.NodeDefinition
	Identities  []inventory.AssignableIdentity
}

// AssigneeChoices returns what the person can choose from on the node, on which it has to be
// allowed to give permissions. Errors: not_found, permission_denied, unavailable.
func (s *Records) AssigneeChoices(ctx context.Context, actor store.Actor, nodeID string) (AssigneeChoices, error) {
	var choices AssigneeChoices
	var err error
	if choices.Node, err = inventory.ManagedNode(ctx, s.Store, actor, nodeID); err != nil {
		return choices, err
	}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &choices.Definitions, `
			SELECT p.id, p.name, p.applies_below, p.grants FROM permission_definitions p
			WHERE p.organization_id = $1 AND NOT p.retired AND ((SELECT admin FROM people WHERE id = $3) OR `+inventory.Exceeds("$3", "$4")+` = '{}')
			ORDER BY p.sort_key, p.id LIMIT $2`, actor.OrganizationID, inventory.MaxChoices, actor.IdentityID, nodeID)
		store.QueueAll(pipeline, &choices.Identities, `SELECT i.id, i.name, i.kind, i.email, i.owner_names FROM `+inventory.AssignableIdentities("$1")+` i
			ORDER BY i.kind = 'person', i.sort_key, i.id LIMIT $2`, actor.OrganizationID, inventory.MaxChoices)
		return nil
	}, func() (AssigneeChoices, error) { return choices, nil })
}
