package imports

import (
	"millwright/models"
	"millwright/service/store"
)

func (r *importRun) inventory() error {
	for _, n := range r.file.nodes {
		kind := models.NodeKind(n.Kind)
		e, err := r.entry(n.Key, keyNode, models.NodePrefixes[kind])
		if err != nil {
			return err
		}
		row, created := rowOf(e, &r.nodes)
		if created {
			*row = models.InventoryNode{ID: e.id, OrganizationID: r.result.OrganizationID, Kind: kind, CreatedAt: r.At, ChangedAt: r.At}
			require(e, "a name", n.Name)
		} else if !models.IsID(e.id, models.NodePrefixes[kind]) {
			r.problems.add("%s: a node cannot change its kind", e) // its id names the kind
		}
		var parentID *string
		if n.parent != "" {
			id := r.result.IDs[n.parent]
			parentID = &id
		}
		before := row.ParentID
		setField(e, "parent", &row.ParentID, &parentID).names()
		if row.RetiredAt == nil && parentID != nil && (created || store.TextOf(before) != *parentID) && r.nodes.byID[*parentID].row.RetiredAt != nil {
			r.problems.add("%s: the node %q above it is retired; bring it back in the console first", e, n.parent)
		}
		setField(e, "name", &row.Name, n.Name)
		setField(e, "description", &row.Description, given(n.Description))
		setField(e, "external_id", &row.ExternalID, given(n.ExternalID))
	}
	return nil
}
