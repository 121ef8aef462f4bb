package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service"
)

// registerInventory adds the lists and single reads of the four kinds of node.
func (a *API) registerInventory() {
	scope := map[string]any{scopeKey: models.ScopeInventoryRead}
	for _, kind := range []struct {
		kind                    models.NodeKind
		name, path, one, plural string
	}{
		{models.NodeLocation, "location", "/locations", "location", "locations"},
		{models.NodeSystem, "system", "/systems", "system", "systems"},
		{models.NodeEquipment, "equipment", "/equipment", "piece of equipment", "equipment"},
		{models.NodeSubEquipment, "sub-equipment", "/sub-equipment", "piece of sub-equipment", "sub-equipment"},
	} {
		register(a, huma.Operation{
			OperationID: "list-" + kind.plural, Method: http.MethodGet, Path: kind.path, Tags: []string{"Inventory"},
			Summary:     "List " + kind.plural,
			Description: "Those on which the integration has any permission.",
			Metadata:    scope, Responses: reads[service.Page[models.NodeRecord]](a, "A page of "+kind.plural+"."), Errors: listErrors,
		}, func(ctx context.Context, in *struct {
			Listed
			ParentID   string `query:"parent_id" maxLength:"64" doc:"Only those directly below this node."`
			ExternalID string `query:"external_id" maxLength:"200" doc:"Only those with this code."`
		}) (*recordAnswer, error) {
			filter := service.NodeFilter{Kind: kind.kind, ParentID: in.ParentID, ExternalID: in.ExternalID}
			return in.answer(a.service.Nodes(ctx, callOf(ctx).caller.Actor, filter, in.request()))
		})
		register(a, huma.Operation{
			OperationID: "get-" + kind.name, Method: http.MethodGet, Path: kind.path + "/{id}", Tags: []string{"Inventory"},
			Summary: "Read a " + kind.one, Metadata: scope,
			Responses: reads[models.NodeRecord](a, "The "+kind.one+"."), Errors: readErrors,
		}, func(ctx context.Context, in *identified) (*recordAnswer, error) {
			return in.answer(a.service.Node(ctx, callOf(ctx).caller.Actor, kind.kind, in.ID))
		})
	}
}

// identified is the input of a read of one record.
type identified struct {
	Conditional
	ID string `path:"id" doc:"Identifier."`
}

func (a *API) registerForms() {
	catalog[service.Page[models.FormRecord], models.FormRecord](a, "form", "/forms", "Forms", models.ScopeFormsRead,
		"The organization's forms with their questions and options.", a.service.Forms, a.service.Form)
}

func (a *API) registerPeople() {
	catalog[service.Page[models.PersonRecord], models.PersonRecord](a, "person", "/people", "People and teams", models.ScopePeopleRead,
		"The organization's people.", a.service.People, a.service.Person)
	catalog[service.Page[models.TeamRecord], models.TeamRecord](a, "team", "/teams", "People and teams", models.ScopePeopleRead,
		"The organization's teams with their members.", a.service.Teams, a.service.Team)
}

// catalog adds the list and the single read of records that every integration
// of the organization with the scope may read.
func catalog[Page, Record any](
	a *API, name, path, tag string, scope models.Scope, description string,
	list func(context.Context, service.Actor, service.ListRequest) ([]byte, error),
	one func(context.Context, service.Actor, string) ([]byte, error),
) {
	needs := map[string]any{scopeKey: scope}
	register(a, huma.Operation{
		OperationID: "list-" + path[1:], Method: http.MethodGet, Path: path, Tags: []string{tag},
		Summary: "List " + path[1:], Description: description, Metadata: needs,
		Responses: reads[Page](a, "A page."), Errors: listErrors,
	}, func(ctx context.Context, in *struct{ Listed }) (*recordAnswer, error) {
		return in.answer(list(ctx, callOf(ctx).caller.Actor, in.request()))
	})
	register(a, huma.Operation{
		OperationID: "get-" + name, Method: http.MethodGet, Path: path + "/{id}", Tags: []string{tag},
		Summary: "Read a " + name, Metadata: needs,
		Responses: reads[Record](a, "The "+name+"."), Errors: readErrors,
	}, func(ctx context.Context, in *identified) (*recordAnswer, error) {
		return in.answer(one(ctx, callOf(ctx).caller.Actor, in.ID))
	})
}
