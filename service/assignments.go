package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// Assign gives an identity a permission definition on a node (spec section 1,
// the steps in the app), in place of the one it has there. Who may is an
// inventory manager of the node or an administrator. What an integration may
// read changes with it, so its sync tokens end. Errors: not_found,
// permission_denied, validation_failed, unavailable.
func (s *Service) Assign(ctx context.Context, actor Actor, nodeID, identityID, definitionID string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		node, err := t.manageNode(ctx, actor, nodeID)
		if err != nil {
			return err
		}
		known, err := t.assignable(ctx, node, nodeID, identityID, definitionID)
		if err != nil {
			return err
		}
		if err := known.check(node); err != nil {
			return err
		}
		action := "assignment.created"
		switch {
		case known.Held == nil:
		case *known.Held == definitionID:
			return nil
		default:
			action = "assignment.changed"
		}
		t.Queue(`
			INSERT INTO assignments (node_id, identity_id, definition_id, organization_id) VALUES ($1, $2, $3, $4)
			ON CONFLICT (node_id, identity_id) DO UPDATE SET definition_id = excluded.definition_id`,
			nodeID, identityID, definitionID, node.OrganizationID)
		return t.log(actor, node.OrganizationID, action, nodeID)
	})
}

// Unassign takes from an identity what it was assigned on the node itself; what
// reaches it from above stays. Errors: not_found, also when it is not assigned,
// permission_denied, unavailable.
func (s *Service) Unassign(ctx context.Context, actor Actor, nodeID, identityID string) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		node, err := t.manageNode(ctx, actor, nodeID)
		if err != nil {
			return err
		}
		if !models.IsID(identityID, models.PrefixIdentity) {
			return models.NotFound()
		}
		var gone struct{ DefinitionID string }
		batch.QueueOne(t.Tx, &gone, models.NotFound(),
			`DELETE FROM assignments WHERE node_id = $1 AND identity_id = $2 RETURNING definition_id`, nodeID, identityID)
		if err := t.Flush(ctx); err != nil {
			return err
		}
		return t.log(actor, node.OrganizationID, "assignment.deleted", nodeID)
	})
}

// managedNode is a node on which permissions are given or taken, locked.
type managedNode struct {
	OrganizationID string
	Kind           models.NodeKind
	// May is whether the actor may do it, Visible whether it may know the node.
	May, Visible bool
}

const managedNodeQuery = `
	SELECT n.organization_id, n.kind,
		EXISTS (SELECT FROM people p WHERE p.id = @actor AND p.organization_id = n.organization_id
			AND (p.admin OR EXISTS (SELECT FROM node_rights r
				WHERE r.actor_id = p.id AND r.node_id = n.id AND r.inventory_manager))) AS may,
		@operates OR EXISTS (SELECT FROM node_rights r WHERE r.actor_id = @actor AND r.node_id = n.id) AS visible
	FROM inventory_nodes n
	WHERE n.id = @node
	FOR NO KEY UPDATE OF n`

// manageNode locks the node for the actor, who must be a person and the node's
// inventory manager or an administrator: operators look after integrations, not
// after what they may see. Errors: not_found (unknown, another organization's,
// or one the actor has no permission on), permission_denied, unavailable.
func (t *tx) manageNode(ctx context.Context, actor Actor, nodeID string) (managedNode, error) {
	var node managedNode
	if !models.IsID(nodeID, models.PrefixLocation, models.PrefixSystem, models.PrefixEquipment, models.PrefixSubEquipment) {
		return node, models.NotFound()
	}
	batch.QueueOne(t.Tx, &node, models.NotFound(), managedNodeQuery, pgx.NamedArgs{
		"node": nodeID, "actor": actor.IdentityID, "operates": actor.isOperator(),
	})
	if err := t.Flush(ctx); err != nil {
		return node, err
	}
	switch {
	case node.May:
		return node, nil
	case node.Visible:
		return node, models.Errorf(models.CodePermissionDenied,
			"Permissions on a node are given by its inventory managers and by administrators.")
	}
	return node, models.NotFound()
}

// assignable is what the rules of an assignment need to know.
type assignable struct {
	IdentityKnown   bool
	DefinitionKnown bool
	// Held is the definition the identity has on the node already.
	Held *string
}

// A deleted integration is nobody to give permissions to.
var assignableQuery = `
	SELECT cardinality(` + with(knownIdentities, "organization", "@organization::text", "identities", "@identities") + `) = 1
			AND NOT EXISTS (SELECT FROM integrations i WHERE i.id = @identity AND i.deleted_at IS NOT NULL) AS identity_known,
		EXISTS (SELECT FROM permission_definitions d
			WHERE d.id = @definition AND d.organization_id = @organization) AS definition_known,
		(SELECT a.definition_id FROM assignments a WHERE a.node_id = @node AND a.identity_id = @identity) AS held`

// assignable reads what the rules need. An integration is locked, so that it is
// not deleted meanwhile; the node already is.
func (t *tx) assignable(ctx context.Context, node managedNode, nodeID, identityID, definitionID string) (assignable, error) {
	var known assignable
	if !models.IsID(identityID, models.PrefixIdentity) {
		identityID = ""
	}
	if !models.IsID(definitionID, models.PrefixDefinition) {
		definitionID = ""
	}
	t.Queue(`SELECT FROM integrations WHERE id = $1 AND organization_id = $2 FOR NO KEY UPDATE`, identityID, node.OrganizationID)
	batch.QueueOne(t.Tx, &known, nil, assignableQuery, pgx.NamedArgs{
		"organization": node.OrganizationID, "node": nodeID, "definition": definitionID,
		"identity": identityID, "identities": []string{identityID},
	})
	return known, t.Flush(ctx)
}

// check names what cannot be assigned: sub-equipment has the permissions of its
// equipment (spec section 5, permissions).
func (a assignable) check(node managedNode) error {
	var fields []models.FieldError
	if node.Kind == models.NodeSubEquipment {
		fields = append(fields, models.FieldError{Pointer: "/node_id", Code: "kind",
			Detail: "Permissions are given on a location, a system or a piece of equipment, not on sub-equipment."})
	}
	if !a.IdentityKnown {
		fields = append(fields, unknownField("/identity_id", "identity"))
	}
	if !a.DefinitionKnown {
		fields = append(fields, unknownField("/definition_id", "permission definition"))
	}
	if len(fields) > 0 {
		return models.Invalid(fields...)
	}
	return nil
}
