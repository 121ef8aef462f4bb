package imports

import (
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/store"
)

func (r *importRun) definitions() error {
	for _, d := range r.file.PermissionDefinitions {
		e, err := r.entry(d.Key, keyDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		row, created := rowOf(e, &r.permissionDefinitions)
		if created {
			*row = models.PermissionDefinition{ID: e.id, OrganizationID: r.result.OrganizationID, AppliesBelow: true, Grants: models.TextArray{}}
			require(e, "a name", d.Name)
		}
		setField(e, "name", &row.Name, d.Name)
		setField(e, "applies_below", &row.AppliesBelow, d.AppliesBelow)
		setField(e, "inventory_manager", &row.InventoryManager, d.InventoryManager)
		setField(e, fieldRetired, &row.Retired, d.Retired)
		setField(e, "grants", &row.Grants, givenList(d.Grants))
	}
	for _, d := range r.file.OrganizationDefinitions {
		e, err := r.entry(d.Key, keyOrganizationDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		row, created := rowOf(e, &r.organizationDefinitions)
		if created {
			*row = models.OrganizationPermissionDefinition{ID: e.id, OrganizationID: r.result.OrganizationID, Grants: models.TextArray{}}
			require(e, "a name", d.Name)
		}
		setField(e, "name", &row.Name, d.Name)
		setField(e, fieldRetired, &row.Retired, d.Retired)
		setField(e, "grants", &row.Grants, givenList(d.Grants))
	}
	return nil
}

// organizationDefinition returns the id of the organization permission definition
// that the file names for the entry, which has held, nil if it names none. It reports a retired one.
func (r *importRun) organizationDefinition(e *importEntry, key, held *string) **string {
	if key == nil {
		return nil
	}
	id := r.lookup(e.String(), *key, keyOrganizationDefinition)
	if r.organizationDefinitions.current(id).Retired && id != store.TextOf(held) {
		r.problems.add("%s: the organization permission definition is retired", e)
	}
	return given(&id)
}

// assignments collects the assignments of the file. The key of an identity that is
// in no file of this organization may be another organization's.
func (r *importRun) assignments() error {
	index := map[[2]string]int{}
	for _, a := range r.file.Assignments {
		where := fmt.Sprintf("assignment of %q on %q", a.Identity, a.Node.text)
		row := models.Assignment{
			NodeID: r.lookup(where, a.Node.text, keyNode), DefinitionID: r.lookup(where, a.Definition, keyDefinition),
			OrganizationID: r.result.OrganizationID,
		}
		if company, known := r.companies[a.Identity]; known && r.kinds[a.Identity] == "" {
			row.IdentityID = company
			if !r.isServiceCompany[company] {
				r.problems.add("%s: it is not a service company of the organization", where)
			}
		} else {
			row.IdentityID = r.lookup(where, a.Identity, keyPerson, keyTeam, keyIntegration, keyOrganization)
		}
		if models.IsID(row.NodeID, models.PrefixSubEquipment) {
			r.problems.add("line %d: %s: %s", a.Node.line, where, inventory.NoAssignmentOnSubEquipment)
		}
		// If an identity is assigned twice on a node, the last assignment counts.
		key := [2]string{row.NodeID, row.IdentityID}
		i, again := index[key]
		if !again {
			i = len(r.assignmentRows)
			index[key] = i
			r.assignmentRows = append(r.assignmentRows, importedAssignment{node: a.Node.text, identity: a.Identity})
		}
		r.assignmentRows[i].row = row
	}
	if len(r.problems.Problems) > 0 {
		return nil // some ids are unknown
	}
	return r.compareAssignments()
}

// importedAssignment is an assignment of the file, with the keys of its node and identity.
type importedAssignment struct {
	row            models.Assignment
	node, identity string
}

// compareAssignments compares the assignments with those that are stored.
func (r *importRun) compareAssignments() error {
	nodes := models.TextArray{}
	for _, a := range r.assignmentRows {
		nodes = append(nodes, a.row.NodeID)
	}
	slices.Sort(nodes)
	var rows []models.Assignment
	if err := r.DB.Find(&rows, "node_id = ANY (?)", slices.Compact(nodes)).Error; err != nil {
		return err
	}
	stored := map[[2]string]*string{}
	for i := range rows {
		stored[[2]string{rows[i].NodeID, rows[i].IdentityID}] = &rows[i].DefinitionID
	}
	for _, a := range r.assignmentRows {
		held := stored[[2]string{a.row.NodeID, a.row.IdentityID}]
		if store.TextOf(held) != a.row.DefinitionID {
			r.checkInUse(a)
		}
		r.nodeEntry(a.node).relate("assignment "+a.row.IdentityID, fieldAssignment+a.identity, held, a.row.DefinitionID).names()
	}
	return nil
}

// checkInUse reports that a new assignment is on a retired node or has a retired definition.
func (r *importRun) checkInUse(a importedAssignment) {
	if r.nodes.stored[a.row.NodeID].RetiredAt != nil {
		r.problems.add("assignment of %q on %q: the node is retired; bring it back in the console first", a.identity, a.node)
	}
	if r.permissionDefinitions.current(a.row.DefinitionID).Retired {
		r.problems.add("assignment of %q on %q: the permission definition is retired", a.identity, a.node)
	}
}

// saveAssignments writes the assignments that are new or have another definition:
// each write ends the sync tokens of whom it concerns.
func (r *importRun) saveAssignments() error {
	rows := make([]models.Assignment, len(r.assignmentRows))
	for i, a := range r.assignmentRows {
		rows[i] = a.row
	}
	return create(r.DB.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "node_id"}, {Name: "identity_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"definition_id"}),
		Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "assignments.definition_id <> excluded.definition_id"}}},
	}), rows)
}
