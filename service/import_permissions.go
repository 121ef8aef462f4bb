package service

import (
	"fmt"

	"gorm.io/gorm/clause"

	"millwright/models"
)

func (r *importRun) definitions() error {
	for _, d := range r.file.PermissionDefinitions {
		id, err := r.id(d.Key, keyDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		row, created := r.permissionDefinitions.row(id)
		if created {
			*row = models.PermissionDefinition{ID: id, OrganizationID: r.result.OrganizationID, AppliesBelow: true, Grants: models.TextArray{}}
			require(r, fmt.Sprintf("permission definition %q", d.Key), "a name", d.Name)
		}
		overwrite(&row.Name, d.Name)
		overwrite(&row.AppliesBelow, d.AppliesBelow)
		overwrite(&row.InventoryManager, d.InventoryManager)
		overwriteList(&row.Grants, d.Grants)
	}
	for _, d := range r.file.OrganizationDefinitions {
		id, err := r.id(d.Key, keyOrganizationDefinition, models.PrefixDefinition)
		if err != nil {
			return err
		}
		row, created := r.organizationDefinitions.row(id)
		if created {
			*row = models.OrganizationPermissionDefinition{ID: id, OrganizationID: r.result.OrganizationID, Grants: models.TextArray{}}
			require(r, fmt.Sprintf("organization permission definition %q", d.Key), "a name", d.Name)
		}
		overwrite(&row.Name, d.Name)
		overwriteList(&row.Grants, d.Grants)
	}
	return nil
}

// organizationDefinition returns the id of the named organization permission definition.
func (r *importRun) organizationDefinition(where, key string) *string {
	id := r.lookup(where, key, keyOrganizationDefinition)
	return &id
}

// assignments collects the assignments of the file. The key of an identity that is
// in no file of this organization may be another organization's.
func (r *importRun) assignments() error {
	index := map[[2]string]int{}
	for _, a := range r.file.Assignments {
		where := fmt.Sprintf("assignment of %q on %q", a.Identity, a.Node)
		row := models.Assignment{
			NodeID: r.lookup(where, a.Node, keyNode), DefinitionID: r.lookup(where, a.Definition, keyDefinition),
			OrganizationID: r.result.OrganizationID,
		}
		if company, known := r.companies[a.Identity]; known && r.kinds[a.Identity] == "" {
			row.IdentityID = company
		} else {
			row.IdentityID = r.lookup(where, a.Identity, keyPerson, keyTeam, keyIntegration, keyOrganization)
		}
		// If an identity is assigned twice on a node, the last assignment counts.
		key := [2]string{row.NodeID, row.IdentityID}
		if i, again := index[key]; again {
			r.assignmentRows[i] = row
			continue
		}
		index[key] = len(r.assignmentRows)
		r.assignmentRows = append(r.assignmentRows, row)
	}
	return nil
}

// saveAssignments writes the assignments that are new or have another definition:
// each write ends the sync tokens of whom it concerns.
func (r *importRun) saveAssignments() error {
	return create(r.db.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "node_id"}, {Name: "identity_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"definition_id"}),
		Where:     clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "assignments.definition_id <> excluded.definition_id"}}},
	}), r.assignmentRows)
}
