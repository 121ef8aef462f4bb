package imports

import (
	"fmt"

	"millwright/models"
)

func (r *importRun) inventory() error {
	for _, n := range r.file.nodes {
		kind := models.NodeKind(n.Kind)
		e, err := r.entry(n.Key, keyNode, models.NodePrefixes[kind])
		if err != nil {
			return err
		}
		where := fmt.Sprintf("inventory node %q", n.Key)
		row, created := rowOf(e, &r.nodes)
		if created {
			*row = models.InventoryNode{ID: e.id, OrganizationID: r.result.OrganizationID, Kind: kind, CreatedAt: r.At, ChangedAt: r.At}
			require(r, where, "a name", n.Name)
		} else if !models.IsID(e.id, models.NodePrefixes[kind]) {
			r.problems.add("%s: a node cannot change its kind", where) // its id names the kind
		}
		var parentID *string
		if n.parent != "" {
			id := r.result.IDs[n.parent]
			parentID = &id
		}
		setField(e, "parent", &row.ParentID, &parentID).names()
		setField(e, "name", &row.Name, n.Name)
		setField(e, "description", &row.Description, given(n.Description))
		setField(e, "external_id", &row.ExternalID, given(n.ExternalID))
	}
	return nil
}
