package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// MaxLevels limits the levels of an inventory. An import file, whose mappings and lists nest at
// most 64 deep, cannot have more.
const MaxLevels = 31

// Nests reports whether a node of the kind may be a child of one of the parent kind
// ("" for the top level). A trigger of the schema enforces the same rule.
func Nests(parent, kind models.NodeKind) bool {
	switch kind {
	case models.NodeLocation:
		return parent == "" || parent == models.NodeLocation
	case models.NodeSystem, models.NodeEquipment:
		return parent == models.NodeLocation || parent == models.NodeSystem
	case models.NodeSubEquipment:
		return parent == models.NodeEquipment
	}
	return false
}

// RetiredField rejects the choice of something that was retired.
func RetiredField(pointer, what string) models.FieldError {
	return models.FieldError{Pointer: pointer, Code: "retired", Detail: "This " + what + " is retired. Choose another one."}
}

// NodeFields are what a person enters about a node.
type NodeFields struct {
	Name                    string
	Description, ExternalID *string
	// DefinitionID is the role that the maker of a node at the top of the inventory gets on it, empty if she gets none.
	DefinitionID string
}

func (in *NodeFields) check() []models.FieldError {
	in.Name = models.Trim(in.Name)
	return append(store.CheckName(in.Name), store.CheckDescribed(in.Description, in.ExternalID)...)
}

// NodeState is what forms about a node are filled from.
type NodeState struct {
	ID          string       `json:"id"`
	ParentID    *string      `json:"parent_id"`
	Name        string       `json:"name"`
	Description *string      `json:"description"`
	ExternalID  *string      `json:"external_id"`
	RetiredAt   *models.Time `json:"retired_at"`
}

// CreateNode creates a node below another one, at the top for "", and returns its id. Managers
// whose permission applies below create nodes below theirs, administrators anywhere
// (docs/console.md, Inventory). Errors: not_found, permission_denied,
// validation_failed (/node, /kind, /name, /description, /external_id, /definition_id), unavailable.
func (s *Inventory) CreateNode(ctx context.Context, actor store.Actor, key store.Key, parentID string, kind models.NodeKind, in NodeFields) (string, error) {
	var id string
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		parent, err := lockParent(t, actor, parentID)
		if err != nil {
			return err
		}
		fields, err := checkKind(t, parent, kind)
		if err != nil {
			return err
		}
		if err := store.Invalid(append(in.check(), fields...)); err != nil {
			return err
		}
		if id, err = createNode(t, actor, parentID, kind, in); err != nil || parentID != "" || in.DefinitionID == "" {
			return err
		}
		node, err := lockNode(t, actor, id)
		if err != nil {
			return err
		}
		return assign(ctx, t, actor, store.NoKey, node, actor.IdentityID, in.DefinitionID)
	})
	return id, err
}

// checkKind returns why a new node of the kind cannot be below the parent.
func checkKind(t *store.Tx, parent lockedNode, kind models.NodeKind) ([]models.FieldError, error) {
	if _, known := models.NodePrefixes[kind]; !known {
		return []models.FieldError{{Pointer: "/kind", Code: "unknown", Detail: "Choose a kind: location, system, equipment or sub-equipment."}}, nil
	}
	return checkParent(t, parent, models.InventoryNode{Kind: kind}, nil)
}

// createNode queues a new node and its Log Record.
func createNode(t *store.Tx, actor store.Actor, parentID string, kind models.NodeKind, in NodeFields) (string, error) {
	id, err := t.NewID(models.NodePrefixes[kind])
	if err != nil {
		return "", err
	}
	row := models.InventoryNode{
		ID: id, OrganizationID: actor.OrganizationID, Kind: kind, ParentID: optionalID(parentID),
		Name: in.Name, Description: in.Description, ExternalID: in.ExternalID, CreatedAt: t.At, ChangedAt: t.At,
	}
	if err := t.Create(&row); err != nil {
		return "", err
	}
	return id, t.Log(actor, row.OrganizationID, "node.created", id)
}

// maxNewNodes limits the nodes that one write creates.
const maxNewNodes = 100

// CreateNodes creates the nodes of the lines "name; code; kind" below another one, all or none. Code and kind may be
// missing; kind applies to lines without one. A tab separates like a semicolon, as a spreadsheet copies cells. Errors:
// CreateNode's with every line's problem (/lines).
func (s *Inventory) CreateNodes(ctx context.Context, actor store.Actor, key store.Key, parentID string, kind models.NodeKind, lines string) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		parent, err := lockParent(t, actor, parentID)
		if err != nil {
			return err
		}
		nodes := 0
		for line := range strings.Lines(lines) {
			if !models.IsBlank(line) {
				nodes++
			}
		}
		switch {
		case nodes == 0:
			return models.Invalid(models.FieldError{Pointer: "/lines", Code: "required", Detail: "Enter at least one line."})
		case nodes > maxNewNodes:
			return models.Invalid(models.FieldError{Pointer: "/lines", Code: "too_many", Detail: fmt.Sprintf("Enter at most %d lines at a time; these are %d.", maxNewNodes, nodes)})
		}
		var problems []models.FieldError
		number, kinds := 0, map[models.NodeKind][]models.FieldError{}
		for line := range strings.Lines(lines) {
			number++
			if models.IsBlank(line) {
				continue
			}
			in, of, fields := nodeOfLine(line, kind)
			if _, checked := kinds[of]; !checked {
				if kinds[of], err = checkKind(t, parent, of); err != nil {
					return err
				}
			}
			if fields = slices.Concat(fields, in.check(), kinds[of]); len(fields) == 0 {
				if _, err := createNode(t, actor, parentID, of, in); err != nil {
					return err
				}
			}
			for _, f := range fields {
				problems = append(problems, models.FieldError{Pointer: "/lines", Code: f.Code, Detail: fmt.Sprintf("Line %d: %s", number, f.Detail)})
			}
		}
		return store.Invalid(problems)
	})
}

// nodeOfLine returns what a line of CreateNodes has about a node.
func nodeOfLine(line string, kind models.NodeKind) (in NodeFields, of models.NodeKind, fields []models.FieldError) {
	cells := append(strings.Split(strings.ReplaceAll(line, ";", "\t"), "\t"), "", "")
	for i := range cells {
		cells[i] = models.Trim(cells[i])
	}
	if strings.Join(cells[3:], "") != "" {
		fields = append(fields, models.FieldError{Code: "value", Detail: "A line is name; code; kind."})
	}
	in.Name, in.ExternalID = cells[0], optionalID(cells[1])
	if of = kind; cells[2] != "" {
		of = models.NodeKind(strings.NewReplacer("-", "_", " ", "_").Replace(models.Fold(cells[2])))
	}
	return in, of, fields
}

// ChangeNode changes what people enter about a node. Managers of a node above whose permission
// applies below may, and administrators. Errors: not_found, permission_denied, validation_failed
// (/name, /description, /external_id), *FormStaleError, unavailable.
func (s *Inventory) ChangeNode(ctx context.Context, actor store.Actor, key store.Key, id string, in NodeFields) error {
	return s.changeNode(ctx, actor, key, id, "node.changed", func(_ *store.Tx, node *lockedNode) error {
		node.Name, node.Description, node.ExternalID = models.Trim(in.Name), in.Description, in.ExternalID
		return store.Invalid(in.check())
	})
}

// MoveNode moves a node with all below it below another one, which is named by its id or its
// external_id, or to the top for "". Permissions from above follow the new place. Only
// administrators may. Errors: not_found, permission_denied, validation_failed (/node),
// *FormStaleError, unavailable.
func (s *Inventory) MoveNode(ctx context.Context, actor store.Actor, key store.Key, id, parent string) error {
	return s.changeNode(ctx, actor, key, id, "node.moved", func(t *store.Tx, node *lockedNode) error {
		if !node.Admin {
			return ErrMovesNodes()
		}
		parentID, err := parentNamed(ctx, t, actor, parent)
		if err != nil {
			return err
		}
		above, err := lockParent(t, actor, parentID)
		if err != nil {
			return err
		}
		fields, err := checkParent(t, above, node.InventoryNode, nil)
		if err != nil {
			return err
		}
		node.ParentID = optionalID(parentID)
		return store.Invalid(fields)
	})
}

// parentNamed returns the id of the node that an administrator names by its id or its
// external_id, "" for the top. Errors: validation_failed.
func parentNamed(ctx context.Context, t *store.Tx, actor store.Actor, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	var found []models.NodeReference
	err := t.Read(ctx, func(pipeline *pgx.Batch) {
		QueueNamedNodes(pipeline, &found, actor, text, `n.organization_id = @organization AND n.retired_at IS NULL`)
	})
	if err != nil {
		return "", err
	}
	return OnlyNode(found, models.Invalid(models.FieldError{Pointer: "/node", Code: "unknown", Detail: "No place that is in use has this id or code."}))
}

// RetireNode retires a node: it keeps its records and cannot be chosen until it is brought back.
// Errors: not_found, permission_denied, rule_violation (in_use), *FormStaleError, unavailable.
func (s *Inventory) RetireNode(ctx context.Context, actor store.Actor, key store.Key, id string) error {
	return s.changeNode(ctx, actor, key, id, "node.retired", func(t *store.Tx, node *lockedNode) error {
		if node.RetiredAt != nil {
			return nil
		}
		// This waits for work orders whose creation has begun, so that they are counted.
		if err := t.Exec(`SELECT FROM inventory_nodes WHERE id = ? FOR UPDATE`, id); err != nil {
			return err
		}
		use, err := store.ScanOne[NodeUse](t, models.NotFound(), nodeUseQuery, map[string]any{"node": id, "open": models.TextArray(openStatuses), "max": models.MaxCounted})
		if err != nil {
			return err
		}
		node.RetiredAt = &t.At
		return use.check()
	})
}

// BringNodeBack ends the retirement of a node. Errors: not_found, permission_denied,
// rule_violation (retired: the node above), *FormStaleError, unavailable.
func (s *Inventory) BringNodeBack(ctx context.Context, actor store.Actor, key store.Key, id string) error {
	return s.changeNode(ctx, actor, key, id, "node.brought_back", func(t *store.Tx, node *lockedNode) error {
		if node.RetiredAt == nil || node.ParentID == nil {
			node.RetiredAt = nil
			return nil
		}
		parent, err := store.LockRow[models.InventoryNode](t, *node.ParentID)
		if err != nil {
			return err
		}
		if parent.RetiredAt != nil {
			return models.Violation(models.RuleRetired, "The place above is retired, too. Bring it back first.")
		}
		node.RetiredAt = nil
		return nil
	})
}

// changeNode changes a node in one transaction, for an actor who may change it. Only a change
// that makes a difference is logged. Errors: not_found, permission_denied, *FormStaleError,
// change's.
func (s *Inventory) changeNode(ctx context.Context, actor store.Actor, key store.Key, id, action string, change func(*store.Tx, *lockedNode) error) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		node, err := lockNode(t, actor, id)
		if err != nil {
			return err
		}
		if !node.MayChange {
			return errChangesNoNodes()
		}
		before, err := store.ETagOf(stateOf(node.InventoryNode))
		if err != nil {
			return err
		}
		if err := t.Matches(ctx, key, stateOf(node.InventoryNode), node.OrganizationID, id); err != nil {
			return err
		}
		if err := change(t, &node); err != nil {
			return err
		}
		if after, err := store.ETagOf(stateOf(node.InventoryNode)); err != nil || after == before {
			return err
		}
		node.ChangedAt = t.At.After(node.ChangedAt)
		if err := t.UpdateColumns(&node.InventoryNode, "parent_id", "name", "description", "external_id", "retired_at", "changed_at"); err != nil {
			return err
		}
		return t.Log(actor, node.OrganizationID, action, id)
	})
}

func stateOf(n models.InventoryNode) NodeState {
	return NodeState{n.ID, n.ParentID, n.Name, n.Description, n.ExternalID, n.RetiredAt}
}

func optionalID(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

// lockParent locks the node below which another one is to be, the zero value for the top, for
// an actor who may change what is below. Errors: not_found, permission_denied, unavailable.
func lockParent(t *store.Tx, actor store.Actor, id string) (lockedNode, error) {
	if id == "" {
		return lockedNode{}, requireAdmin(t, actor, ErrNoRoots())
	}
	parent, err := lockNode(t, actor, id)
	if err == nil && !parent.MayAdd {
		err = errChangesNoNodes()
	}
	return parent, err
}

// requireAdmin returns the error unless the actor is an administrator of its organization.
func requireAdmin(t *store.Tx, actor store.Actor, rejected error) error {
	admin, err := store.ScanOne[bool](t, nil, `SELECT `+access.IsAdmin("@actor", "@organization"),
		map[string]any{"actor": actor.IdentityID, "organization": actor.OrganizationID})
	if err == nil && !admin {
		return rejected
	}
	return err
}

// checkParent adds why a node, with all below it, cannot be below the parent.
func checkParent(t *store.Tx, parent lockedNode, node models.InventoryNode, fields []models.FieldError) ([]models.FieldError, error) {
	reject := func(code, detail string) ([]models.FieldError, error) {
		return append(fields, models.FieldError{Pointer: "/node", Code: code, Detail: detail}), nil
	}
	switch {
	case parent.RetiredAt != nil:
		return append(fields, RetiredField("/node", "place")), nil
	case parent.ID == "" && !Nests("", node.Kind):
		return reject("kind", "Only a location can be at the top of the inventory.")
	case !Nests(parent.Kind, node.Kind):
		return reject("kind", fmt.Sprintf("A place of the kind %s cannot be in one of the kind %s.", node.Kind, parent.Kind))
	}
	// Levels is the depth of the changed branch.
	type place struct {
		Inside bool
		Levels int
	}
	found, err := store.ScanOne[place](t, nil, `SELECT EXISTS (SELECT FROM inventory_closure WHERE node_id = @parent AND ancestor_id = @node) AS inside,
		coalesce((SELECT max(depth) + 1 FROM inventory_closure WHERE node_id = @parent), 0) +
		coalesce((SELECT max(depth) FROM inventory_closure WHERE ancestor_id = @node), 0) + 1 AS levels`,
		map[string]any{"parent": parent.ID, "node": node.ID})
	switch {
	case err != nil:
		return nil, err
	case found.Inside:
		return reject("value", "A place cannot be inside itself.")
	case found.Levels > MaxLevels:
		return reject("too_deep", fmt.Sprintf("An inventory has at most %d levels.", MaxLevels))
	}
	return fields, nil
}

// NodeUse is what keeps a node from being retired, each counted up to models.MaxCounted.
type NodeUse struct {
	// Nodes are those below that are not retired, WorkOrders those in process here and below.
	Nodes, WorkOrders int
}

// check rejects retiring a node that is in use. Errors: rule_violation (in_use).
func (u NodeUse) check() error {
	if u == (NodeUse{}) {
		return nil
	}
	return models.Violation(models.RuleInUse, "A place is retired once all work orders here and inside are complete or cancelled, and everything inside is retired.")
}

var openStatuses = store.TextsOf(models.InProcess())

// nodeUseQuery counts by index and stops at the limit.
const nodeUseQuery = `
	SELECT (SELECT count(*) FROM (SELECT FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT retired_at FROM inventory_nodes WHERE id = c.node_id LIMIT 1) n
			WHERE c.ancestor_id = @node AND c.depth > 0 AND n.retired_at IS NULL LIMIT @max) x) AS nodes,
		(SELECT count(*) FROM (SELECT FROM inventory_closure c
			CROSS JOIN LATERAL (SELECT FROM work_orders WHERE inventory_id = c.node_id AND status = ANY (@open) LIMIT @max) w
			WHERE c.ancestor_id = @node LIMIT @max) x) AS work_orders`

// NodeUse returns a node that the person may change, and what keeps it from being retired.
// Errors: not_found, permission_denied, unavailable.
func (s *Inventory) NodeUse(ctx context.Context, actor store.Actor, id string) (NodeView, NodeUse, error) {
	var use NodeUse
	node, err := s.NodeForPerson(ctx, actor, id)
	if err == nil {
		err = node.RequireChange()
	}
	if err != nil {
		return node, use, err
	}
	use, err = store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &use, models.NotFound(), nodeUseQuery, pgx.NamedArgs{"node": id, "open": openStatuses, "max": models.MaxCounted})
		return nil
	}, func() (NodeUse, error) { return use, nil })
	return node, use, err
}

func errChangesNoNodes() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators, and inventory managers of a place above whose role reaches its contents, create and change places here.")
}

// ErrNoRoots is permission_denied for who may not create nodes at the top.
func ErrNoRoots() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators create places at the top of the inventory.")
}

// ErrMovesNodes is permission_denied for who may not move nodes.
func ErrMovesNodes() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators move places.")
}
