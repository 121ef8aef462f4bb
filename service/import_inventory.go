package service

import (
	"fmt"

	"millwright/models"
)

func (r *importRun) inventory() error {
	for _, n := range r.file.nodes {
		kind := models.NodeKind(n.Kind)
		id, err := r.id(n.Key, keyNode, models.NodePrefixes[kind])
		if err != nil {
			return err
		}
		where := fmt.Sprintf("inventory node %q", n.Key)
		row, created := r.nodes.row(id)
		if created {
			*row = models.InventoryNode{ID: id, OrganizationID: r.result.OrganizationID, Kind: kind, CreatedAt: r.at, ChangedAt: r.at}
			require(r, where, "a name", n.Name)
		} else if !models.IsID(id, models.NodePrefixes[kind]) {
			r.problems.add("%s: a node cannot change its kind", where) // its id names the kind
		}
		row.ParentID = nil
		if n.parent != "" {
			parent := r.result.IDs[n.parent]
			row.ParentID = &parent
		}
		overwrite(&row.Name, n.Name)
		if n.Description != nil {
			row.Description = n.Description
		}
		if n.ExternalID != nil {
			row.ExternalID = n.ExternalID
		}
	}
	return nil
}
