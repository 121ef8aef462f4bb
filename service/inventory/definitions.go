package inventory

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// DefinitionUse is an organization permission definition with how many have it.
type DefinitionUse struct {
	DefinitionSummary
	// People are those who can sign in, Integrations those that are not deleted.
	People, Integrations int
}

// NodeDefinitionUse is a permission definition with how often it is assigned, counted up to
// models.MaxCounted.
type NodeDefinitionUse struct {
	NodeDefinition
	InventoryManager bool
	// Retired is whether it gets no new assignments.
	Retired bool
	// Assignments are on nodes. Identities have them: people, teams, integrations and
	// organizations.
	Assignments, Identities int
}

// Definitions are the permission definitions of an organization.
type Definitions struct {
	// Organization and Nodes are by name, at most 200 each.
	Organization []DefinitionUse
	Nodes        []NodeDefinitionUse
	// Administrators have every organization permission without a definition.
	Administrators int
}

// definitionUsesQuery goes through the people once. Its first row counts the administrators,
// since they can have a definition, too.
const definitionUsesQuery = `
	WITH people AS MATERIALIZED (SELECT organization_definition_id AS id, count(*) AS n, count(*) FILTER (WHERE admin) AS admins FROM people
		WHERE organization_id = @organization AND deactivated_at IS NULL GROUP BY 1)
	SELECT '' AS id, '' AS name, false AS retired, '{}'::text[] AS grants, coalesce(sum(admins), 0)::integer AS people, 0 AS integrations FROM people
	UNION ALL (SELECT d.id, d.name, d.retired, d.grants, coalesce(p.n, 0), coalesce(i.n, 0)
		FROM organization_permission_definitions d
		LEFT JOIN people p ON p.id = d.id
		LEFT JOIN (SELECT organization_definition_id AS id, count(*) AS n FROM integrations
			WHERE organization_id = @organization AND deleted_at IS NULL GROUP BY 1) i ON i.id = d.id
		WHERE d.organization_id = @organization
		ORDER BY d.sort_key, d.id LIMIT @limit)`

const nodeDefinitionUsesQuery = `
	SELECT d.id, d.name, d.applies_below, d.inventory_manager, d.retired, d.grants, g.assignments, g.identities
	FROM permission_definitions d
	CROSS JOIN LATERAL (SELECT count(*) AS assignments, count(DISTINCT identity_id) AS identities
		FROM (SELECT identity_id FROM assignments WHERE definition_id = d.id LIMIT @max) x) g
	WHERE d.organization_id = @organization
	ORDER BY d.sort_key, d.id LIMIT @limit`

// Definitions returns the permission definitions of the actor's organization, with how many
// have them. Any person of the organization may read them. Errors: permission_denied for an
// integration, unavailable.
func (s *Inventory) Definitions(ctx context.Context, actor store.Actor) (Definitions, error) {
	var found Definitions
	if err := access.RequirePerson(actor, "The list of permission definitions"); err != nil {
		return found, err
	}
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "limit": MaxChoices, "max": models.MaxCounted}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found.Organization, definitionUsesQuery, args)
		store.QueueAll(pipeline, &found.Nodes, nodeDefinitionUsesQuery, args)
		return nil
	}, func() (Definitions, error) {
		found.Administrators, found.Organization = found.Organization[0].People, found.Organization[1:]
		return found, nil
	})
}

// DefinitionSummary is an organization permission definition.
type DefinitionSummary struct {
	ID   string
	Name string
	// Retired is whether no one gets it who does not have it.
	Retired bool
	Grants  []models.OrganizationGrant
}

// MaxChoices bounds what a list on a form offers: definitions, nodes, questions of a form and choices of a question.
const MaxChoices = 200

// NodeDefinition is a permission definition: the permissions of an identity on a node.
type NodeDefinition struct {
	ID, Name     string
	AppliesBelow bool
	Grants       []models.Grant
}

// AssignableNode is a node on which a person may give permissions.
type AssignableNode struct {
	ID, Name   string
	Kind       models.NodeKind
	ExternalID *string
}
