package api

import (
	"context"
	"net/http"
	"slices"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/lists"
	"millwright/service/store"
)

// inventoryOperations are the list and the single read of each kind of node.
func (a *API) inventoryOperations() []operation {
	var all []operation
	for _, kind := range []struct {
		kind                   models.NodeKind
		name, singular, plural string
	}{
		{models.NodeLocation, "location", "location", "locations"},
		{models.NodeSystem, "system", "system", "systems"},
		{models.NodeEquipment, "equipment", "piece of equipment", "equipment"},
		{models.NodeSubEquipment, "sub-equipment", "piece of sub-equipment", "sub-equipment"},
	} {
		all = append(all, operation{
			id: "list-" + kind.plural, method: http.MethodGet, path: "/" + kind.plural, tag: tagInventory, scope: models.ScopeInventoryRead,
			summary: "List " + kind.plural,
			text:    "Lists the nodes on which the integration has a permission, retired ones included.",
			success: "A page of " + kind.plural + ".",
			handler: read[lists.Page[models.NodeRecord]](a.listNodes(kind.kind)), responses: pages(nodeExample(kind.kind)),
		}, operation{
			id: "get-" + kind.name, method: http.MethodGet, path: "/" + kind.plural + "/{id}", tag: tagInventory, scope: models.ScopeInventoryRead,
			summary:   "Read a " + kind.singular,
			text:      "Returns one node on which the integration has a permission, with the ids of all nodes above it.",
			success:   "The " + kind.singular + ".",
			handler:   readRecord[models.NodeRecord, idInput](inventory.NodeReader(kind.kind)),
			responses: map[string]any{string(kind.kind): nodeExample(kind.kind)},
		})
	}
	return all
}

type listNodesInput struct {
	ListInput
	ParentID   idParam `query:"parent_id" doc:"Only nodes directly below this node."`
	ExternalID string  `query:"external_id" minLength:"1" maxLength:"200" doc:"Only nodes with this external_id."`
}

func (a *API) listNodes(kind models.NodeKind) func(context.Context, store.Actor, *listNodesInput) ([]byte, error) {
	return func(ctx context.Context, actor store.Actor, in *listNodesInput) ([]byte, error) {
		filter := inventory.NodeFilter{Kind: kind, ParentID: string(in.ParentID), ExternalID: in.ExternalID}
		return a.service.Inventory.Nodes(ctx, actor, filter, in.request())
	}
}

func (a *API) catalogOperations() []operation {
	return slices.Concat(readOperations(catalog[models.FormRecord]{
		name: "form", plural: "forms", tag: tagForms, scope: models.ScopeFormsRead,
		listText: "Lists the organization's forms that new work orders can have, with their questions and options. With id or changed_since it includes retired ones.",
		getText:  "Returns one form of the organization with its questions and options.",
		list:     a.service.Inventory.Forms, get: a.service.Inventory.Form, example: formExample(),
	}), readOperations(catalog[models.PersonRecord]{
		name: "person", plural: "people", tag: tagPeople, scope: models.ScopePeopleRead,
		listText: "Lists the organization's people.",
		getText:  "Returns one person of the organization.",
		list:     a.service.People.List, get: a.service.People.Person, example: personExample(),
	}), readOperations(catalog[models.TeamRecord]{
		name: "team", plural: "teams", tag: tagPeople, scope: models.ScopePeopleRead,
		listText: "Lists the organization's teams with their members.",
		getText:  "Returns one team of the organization with its members.",
		list:     a.service.People.Teams, get: a.service.People.Team, example: teamExample(),
	}))
}

// catalog describes a kind of record that every integration of the organization
// may read if it has the scope.
type catalog[Record any] struct {
	name, plural, tag string
	scope             models.Scope
	listText, getText string
	list              func(context.Context, store.Actor, lists.ListRequest) ([]byte, error)
	get               func(context.Context, store.Actor, string) ([]byte, error)
	example           Record
}

// readOperations are the list and the single read of a catalog.
func readOperations[Record any](c catalog[Record]) []operation {
	return []operation{
		{
			id: "list-" + c.plural, method: http.MethodGet, path: "/" + c.plural, tag: c.tag, scope: c.scope,
			summary: "List " + c.plural, text: c.listText, success: "A page of " + c.plural + ".",
			handler: read[lists.Page[Record]](func(ctx context.Context, actor store.Actor, in *ListInput) ([]byte, error) {
				return c.list(ctx, actor, in.request())
			}),
			responses: pages(c.example),
		},
		{
			id: "get-" + c.name, method: http.MethodGet, path: "/" + c.plural + "/{id}", tag: c.tag, scope: c.scope,
			summary: "Read a " + c.name, text: c.getText, success: "The " + c.name + ".",
			handler: read[Record](func(ctx context.Context, actor store.Actor, in *idInput) ([]byte, error) {
				return c.get(ctx, actor, in.ID)
			}),
			responses: map[string]any{c.name: c.example},
		},
	}
}
