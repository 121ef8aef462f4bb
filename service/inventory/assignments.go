package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// Assign gives an identity a permission definition on a node (api.md 1.8,
// the steps in the console), replacing the one it has there. Only inventory managers of
// the node, within their own permissions on it, and administrators may. What an integration can read changes with it, so
// a trigger ends the sync tokens. Errors: not_found, permission_denied,
// validation_failed, unavailable.
func (s *Inventory) Assign(ctx context.Context, actor store.Actor, key store.Key, nodeID, identityID, definitionID string) error {
	return s.assignTo(ctx, actor, key, nodeID, definitionID, func(*store.Tx) (string, error) { return identityID, nil })
}

// AssignTo is Assign for an identity that a person names: by its id, its e-mail address, or
// its name if only one has that. Errors: Assign's.
func (s *Inventory) AssignTo(ctx context.Context, actor store.Actor, key store.Key, nodeID, identity, definitionID string) error {
	return s.assignTo(ctx, actor, key, nodeID, definitionID, func(t *store.Tx) (string, error) { return identityToAssign(t, actor, identity) })
}

// assignTo is Assign for the identity that identify returns.
func (s *Inventory) assignTo(ctx context.Context, actor store.Actor, key store.Key, nodeID, definitionID string, identify func(*store.Tx) (string, error)) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		node, err := lockManagedNode(t, actor, nodeID)
		if err != nil {
			return err
		}
		identityID, err := identify(t)
		if err != nil {
			return err
		}
		return assign(ctx, t, actor, key, node, identityID, definitionID)
	})
}

// AssignAt is Assign, as a part of a write, on the node that a person names by its id or its code: a node that the actor
// does not see, and by its code one on which it may give no permissions, is unknown. Errors: Assign's, validation_failed
// (/node).
func AssignAt(ctx context.Context, t *store.Tx, actor store.Actor, key store.Key, node, identityID, definitionID string) error {
	unknown := models.Invalid(models.FieldError{Pointer: "/node", Code: "unknown",
		Detail: "No location, system or equipment on which you may give permissions has this id or code."})
	if !IsNodeID(node) {
		var found []models.NodeReference
		err := t.Read(ctx, func(pipeline *pgx.Batch) {
			QueueNamedNodes(pipeline, &found, actor, node, access.GivesPermissions("n.id", "@actor", "n.organization_id")+` AND n.retired_at IS NULL`)
		})
		if err == nil {
			node, err = OnlyNode(found, unknown)
		}
		if err != nil {
			return err
		}
	}
	locked, err := lockManagedNode(t, actor, node)
	if models.CodeOf(err) == models.CodeNotFound {
		err = unknown
	}
	if err == nil {
		err = assign(ctx, t, actor, key, locked, identityID, definitionID)
	}
	if known, ok := errors.AsType[*models.Error](err); ok {
		for i := range known.Fields {
			if known.Fields[i].Pointer == "/node_id" {
				known.Fields[i].Pointer = "/node"
			}
		}
	}
	return err
}

// assign gives an identity a permission definition on a locked node.
func assign(ctx context.Context, t *store.Tx, actor store.Actor, key store.Key, node lockedNode, identityID, definitionID string) error {
	known, err := checkAssignable(t, node, identityID, definitionID)
	if err != nil {
		return err
	}
	if err := known.check(node); err != nil {
		return err
	}
	if err := withinRights(t, actor, node, definitionID, store.TextOf(known.Held)); err != nil {
		return err
	}
	if err := t.Matches(ctx, key, AssignmentRecord{node.ID, identityID, known.Held}, node.OrganizationID, node.ID); err != nil {
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
	replace := clause.OnConflict{
		Columns:   []clause.Column{{Name: "node_id"}, {Name: "identity_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"definition_id"}),
	}
	if err := t.DB.Clauses(replace).Create(&models.Assignment{
		NodeID: node.ID, IdentityID: identityID, DefinitionID: definitionID, OrganizationID: node.OrganizationID,
	}).Error; err != nil {
		return err
	}
	return t.Log(actor, node.OrganizationID, action, node.ID)
}

// Unassign removes an identity's assignment on the node itself, not on the nodes
// above. Errors: not_found (including if it is not assigned),
// permission_denied, unavailable.
func (s *Inventory) Unassign(ctx context.Context, actor store.Actor, key store.Key, nodeID, identityID string) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		node, err := lockManagedNode(t, actor, nodeID)
		if err != nil {
			return err
		}
		if !models.IsID(identityID, models.PrefixIdentity) {
			return models.NotFound()
		}
		var held models.Assignment
		switch err := t.DB.Take(&held, "node_id = ? AND identity_id = ?", nodeID, identityID).Error; {
		case store.NotFound(err):
			return models.NotFound()
		case err != nil:
			return err
		}
		if err := withinRights(t, actor, node, held.DefinitionID); err != nil {
			return err
		}
		if err := t.Matches(ctx, key, AssignmentRecord{nodeID, identityID, &held.DefinitionID}, node.OrganizationID, nodeID); err != nil {
			return err
		}
		if err := t.DB.Delete(&models.Assignment{}, "node_id = ? AND identity_id = ?", nodeID, identityID).Error; err != nil {
			return err
		}
		return t.Log(actor, node.OrganizationID, "assignment.deleted", nodeID)
	})
}

// AssignmentRecord is the state of an assignment that forms are filled from: the definition
// that the identity has on the node, nil if absent.
type AssignmentRecord struct {
	NodeID       string  `json:"node_id"`
	IdentityID   string  `json:"identity_id"`
	DefinitionID *string `json:"definition_id"`
}

// lockedNode is a node that is to change, or its assignments, locked until the transaction
// ends.
type lockedNode struct {
	models.InventoryNode
	// May is whether the actor may give permissions on it, MayAdd whether it may change the nodes
	// below, MayChange whether it may change the node itself.
	May, MayAdd, MayChange bool
	// Admin is whether the actor is an administrator, Visible whether it may see the node.
	Admin, Visible bool
}

var lockNodeQuery = `
	SELECT n.id, n.organization_id, n.kind, n.parent_id, n.name, n.description, n.external_id, n.created_at, n.changed_at, n.retired_at,
		` + access.GivesPermissions("n.id", "@actor", "n.organization_id") + ` AS may,
		` + access.ManagesBelow("n.id", "@actor", "n.organization_id") + ` AS may_add,
		` + access.ManagesBelow("n.parent_id", "@actor", "n.organization_id") + ` AS may_change,
		coalesce((SELECT admin FROM people WHERE id = @actor), false) AS admin,
		@operator OR EXISTS (SELECT FROM ` + access.RightsOn("n.id", "@actor") + `) AS visible
	FROM inventory_nodes n
	WHERE n.id = @node
	FOR NO KEY UPDATE OF n`

// lockNode locks a node that the actor sees. Errors: not_found (unknown, another
// organization's, or one on which the actor has no permission), unavailable.
func lockNode(t *store.Tx, actor store.Actor, nodeID string) (lockedNode, error) {
	if !IsNodeID(nodeID) {
		return lockedNode{}, models.NotFound()
	}
	node, err := store.ScanOne[lockedNode](t, models.NotFound(), lockNodeQuery, map[string]any{
		"node": nodeID, "actor": actor.IdentityID, "operator": actor.IsOperator(),
	})
	if err == nil && !node.May && !node.Visible {
		err = models.NotFound()
	}
	return node, err
}

// lockManagedNode is lockNode for an actor who must be a person and an administrator or the
// node's inventory manager: operators manage integrations, but not what these may see. Errors:
// lockNode's, permission_denied.
func lockManagedNode(t *store.Tx, actor store.Actor, nodeID string) (lockedNode, error) {
	node, err := lockNode(t, actor, nodeID)
	if err == nil && !node.May {
		err = errNoManager()
	}
	return node, err
}

// Exceeds are the permissions of the definition p that the actor lacks on the node. For
// a definition that applies below, those count that the actor has below too. An inventory
// manager's role is among them as inventory_manager.
func Exceeds(actor, node string) string {
	return `ARRAY(
		SELECT wanted FROM unnest(p.grants || CASE WHEN p.inventory_manager THEN '{inventory_manager}' ELSE '{}' END::text[]) wanted
		EXCEPT SELECT held FROM (SELECT unnest(d.grants || CASE WHEN d.inventory_manager THEN '{inventory_manager}' ELSE '{}' END::text[]) AS held
			FROM ` + access.RightsOn(node, actor) + ` AND (d.applies_below OR NOT p.applies_below)) own
		ORDER BY 1)`
}

// withinRights rejects a manager who would give, replace or take away more than she has on the
// node herself: she could get it by an identity of hers. Administrators may give everything.
// Errors: permission_denied.
func withinRights(t *store.Tx, actor store.Actor, node lockedNode, definitionIDs ...string) error {
	if node.Admin {
		return nil
	}
	type excess struct {
		Name    string
		Missing models.TextArray
	}
	found, err := store.ScanAll[excess](t, `SELECT * FROM (SELECT p.name, `+Exceeds("@actor", "@node")+` AS missing
		FROM permission_definitions p WHERE p.id = ANY (@definitions)) x WHERE cardinality(missing) > 0 ORDER BY name`,
		map[string]any{"actor": actor.IdentityID, "node": node.ID, "definitions": models.TextArray(definitionIDs)})
	if err != nil || len(found) == 0 {
		return err
	}
	return models.Errorf(models.CodePermissionDenied, "“%s” has permissions that you lack on the place (%s). Only an administrator gives, replaces or removes it here.",
		found[0].Name, strings.Join(found[0].Missing, ", "))
}

func errNoManager() error {
	return models.Errorf(models.CodePermissionDenied, "Only inventory managers of the place and administrators may give permissions on it.")
}

// assignable is what the rules of an assignment depend on.
type assignable struct {
	IdentityKnown bool
	// DefinitionRetired is whether the definition gets no new assignments, nil if there is no such
	// definition.
	DefinitionRetired *bool
	// Held is the definition that the identity already has on the node.
	Held *string
}

// A deleted integration gets no permissions.
var assignableQuery = `
	SELECT cardinality(` + store.KnownIdentities("ARRAY[@identity ]", "@organization") + `) = 1
			AND NOT EXISTS (SELECT FROM integrations i WHERE i.id = @identity AND i.deleted_at IS NOT NULL) AS identity_known,
		(SELECT d.retired FROM permission_definitions d
			WHERE d.id = @definition AND d.organization_id = @organization) AS definition_retired,
		(SELECT a.definition_id FROM assignments a WHERE a.node_id = @node AND a.identity_id = @identity) AS held`

// checkAssignable reads what the rules depend on. It locks an integration, so that it is
// not deleted in between; the node is already locked.
func checkAssignable(t *store.Tx, node lockedNode, identityID, definitionID string) (assignable, error) {
	if !models.IsID(identityID, models.PrefixIdentity) {
		identityID = ""
	}
	if !models.IsID(definitionID, models.PrefixDefinition) {
		definitionID = ""
	}
	if err := t.Exec(`SELECT FROM integrations WHERE id = ? AND organization_id = ? FOR NO KEY UPDATE`, identityID, node.OrganizationID); err != nil {
		return assignable{}, err
	}
	return store.ScanOne[assignable](t, models.NotFound(), assignableQuery, map[string]any{
		"organization": node.OrganizationID, "node": node.ID, "definition": definitionID, "identity": identityID,
	})
}

// NoAssignmentOnSubEquipment is the rule that sub-equipment has the permissions of its equipment
// (api.md 5.6).
const NoAssignmentOnSubEquipment = "Permissions are given on a location, a system or a piece of equipment, not on sub-equipment."

// check returns why the assignment is not possible.
func (a assignable) check(node lockedNode) error {
	var fields []models.FieldError
	if node.Kind == models.NodeSubEquipment {
		fields = append(fields, models.FieldError{Pointer: "/node_id", Code: "kind",
			Detail: NoAssignmentOnSubEquipment})
	}
	if node.RetiredAt != nil {
		fields = append(fields, RetiredField("/node_id", "place"))
	}
	if !a.IdentityKnown {
		fields = append(fields, store.UnknownField("/identity_id", "person, team or integration"))
	}
	switch {
	case a.DefinitionRetired == nil:
		fields = append(fields, store.UnknownField("/definition_id", "role"))
	case *a.DefinitionRetired:
		fields = append(fields, RetiredField("/definition_id", "role"))
	}
	return store.Invalid(fields)
}

// identityToAssign returns the id of the identity that the text names. Errors: validation_failed.
func identityToAssign(t *store.Tx, actor store.Actor, text string) (string, error) {
	if models.IsID(text, models.PrefixIdentity) {
		return text, nil
	}
	reject := func(code, detail string) error {
		return models.Invalid(models.FieldError{Pointer: "/identity_id", Code: code, Detail: detail})
	}
	if !models.IsText(text) || models.IsBlank(text) {
		return "", reject("required", "Enter the e-mail address of a person, or the name of a person, a team or an integration.")
	}
	found, err := store.ScanAll[AssignableIdentity](t, `SELECT i.id, i.name, i.kind, i.email, i.owner_names FROM `+AssignableIdentities("@organization")+` i
		WHERE i.folded_email = @email OR i.sort_key = @key ORDER BY i.folded_email = @email DESC NULLS LAST, i.id LIMIT 4`,
		map[string]any{"organization": actor.OrganizationID, "email": models.Fold(text), "key": models.SortKey(text)})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", reject("unknown", "No person, team or integration that can be assigned has this e-mail address or name.")
	case len(found) > 1 && !(found[0].Email != nil && models.Fold(*found[0].Email) == models.Fold(text)):
		names := make([]string, len(found))
		for i, one := range found {
			names[i] = fmt.Sprintf("%s (%s)", one.ID, one.Kind)
			if one.Email != nil {
				names[i] = *one.Email
			}
		}
		return "", reject("ambiguous", "Several have this name. Enter the e-mail address or the id of one: "+strings.Join(names, ", ")+".")
	}
	return found[0].ID, nil
}

// AssignableIdentity is an identity that can be assigned to a node.
type AssignableIdentity struct {
	ID, Name string
	Kind     models.IdentityKind
	Email    *string
	// OwnerNames are the names of an integration's owners, who can read what it reads.
	OwnerNames []string `gorm:"-"`
}

// AssignableIdentities are the identities of the organization and its service
// companies that can be assigned: no deactivated people, no deleted teams and integrations. A
// team may get its permissions before its members, an integration before it is turned on.
func AssignableIdentities(organization string) string {
	return `(
		SELECT i.id, i.name, i.sort_key, i.kind, p.email, p.folded_email,
			CASE WHEN i.kind = 'integration' THEN (SELECT ` + access.OwnerNames("own") + ` FROM integrations own WHERE own.id = i.id) ELSE '{}' END AS owner_names FROM identities i LEFT JOIN people p ON p.id = i.id
		WHERE i.organization_id = ` + organization + ` AND i.deleted_at IS NULL AND p.deactivated_at IS NULL
			AND (SELECT n.deleted_at FROM integrations n WHERE n.id = i.id) IS NULL
		UNION ALL
		SELECT i.id, i.name, i.sort_key, i.kind, NULL, NULL, '{}' FROM service_companies s JOIN identities i ON i.id = s.company_id
		WHERE s.customer_id = ` + organization + `)`
}
