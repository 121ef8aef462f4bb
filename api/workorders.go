package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millwright/models"
	"millwright/service"
)

// newWorkOrder is the body of POST /work-orders.
type newWorkOrder struct {
	InventoryID string     `json:"inventory_id" minLength:"1" maxLength:"64" doc:"The location, system or equipment the work order belongs to." example:"eqp_01jd8q4v6cf5e8hbbfwj0zq3tb"`
	Title       string     `json:"title" minLength:"1" maxLength:"200" doc:"Title." example:"Replace filter"`
	Description *string    `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"Description." example:"The pressure drop is above the limit."`
	Priority    string     `json:"priority,omitempty" enum:"none,low,medium,high" default:"none" doc:"Priority." example:"medium"`
	TargetDate  *time.Time `json:"target_date,omitempty" nullable:"true" doc:"When it should be done." example:"2026-12-01T12:00:00Z"`
	FormID      *string    `json:"form_id,omitempty" nullable:"true" maxLength:"64" doc:"The form to answer: one of GET /forms." example:"frm_01jd8q4v6cf5e8hbbfwj0zq3tc"`
	Assignees   []string   `json:"assignees,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the workers; without any, the nearest inventory managers."`
	Consultants []string   `json:"consultants,omitempty" maxItems:"100" nullable:"false" doc:"Identity ids of the consultants who review the completed work."`
	ExternalID  *string    `json:"external_id,omitempty" nullable:"true" minLength:"1" maxLength:"200" doc:"Your own reference; may repeat." example:"ERP-7781"`
}

func (a *API) registerWorkOrders() {
	register(a, huma.Operation{
		OperationID: "create-work-order", Method: http.MethodPost, Path: "/work-orders", Tags: []string{"Work orders"},
		Summary: "Create a work order",
		Description: "Needs the permission to create work orders on the node and a plan that allows manual work orders. " +
			"Assignees and consultants must be connected to the node: assigned there or above, members of a team that is, " +
			"or the integration itself.",
		DefaultStatus: http.StatusCreated,
		Metadata:      map[string]any{scopeKey: models.ScopeWorkOrdersWrite},
		Responses:     writes[models.WorkOrderRecord](a, "201", "The work order."),
		Errors:        createErrors,
	}, a.createWorkOrder)

	register(a, huma.Operation{
		OperationID: "get-work-order", Method: http.MethodGet, Path: "/work-orders/{id}", Tags: []string{"Work orders"},
		Summary:   "Read a work order",
		Metadata:  map[string]any{scopeKey: models.ScopeWorkOrdersRead},
		Responses: reads[models.WorkOrderRecord](a, "The work order."),
		Errors:    readErrors,
	}, a.getWorkOrder)

	register(a, huma.Operation{
		OperationID: "list-work-orders", Method: http.MethodGet, Path: "/work-orders", Tags: []string{"Work orders"},
		Summary:     "List work orders",
		Description: "Every work order the integration may read: newest first, or in order of changes with changed_since.",
		Metadata:    map[string]any{scopeKey: models.ScopeWorkOrdersRead},
		Responses:   reads[service.Page[models.WorkOrderRecord]](a, "A page of work orders."),
		Errors:      listErrors,
	}, a.listWorkOrders)
}

type createWorkOrderInput struct {
	Idempotent
	Body newWorkOrder
}

func (a *API) createWorkOrder(ctx context.Context, in *createWorkOrderInput) (*writeAnswer, error) {
	state := callOf(ctx)
	call, err := in.call(state)
	if err != nil {
		return nil, err
	}
	b := in.Body
	created := service.NewWorkOrder{
		InventoryID: b.InventoryID,
		Title:       b.Title,
		Description: b.Description,
		Priority:    models.Priority(b.Priority),
		FormID:      b.FormID,
		Assignees:   b.Assignees,
		Consultants: b.Consultants,
		ExternalID:  b.ExternalID,
	}
	if b.TargetDate != nil {
		at := models.TimeOf(*b.TargetDate)
		created.TargetDate = &at
	}
	answer, err := a.service.CreateWorkOrder(ctx, state.caller.Actor, call, created)
	if err != nil {
		return nil, err
	}
	return written(answer, "/v1/work-orders"), nil
}

type getWorkOrderInput struct {
	Conditional
	ID string `path:"id" doc:"Work order id." example:"wo_01jd8q4v6cf5e8hbbfwj0zq3tk"`
}

func (a *API) getWorkOrder(ctx context.Context, in *getWorkOrderInput) (*recordAnswer, error) {
	return in.answer(a.service.WorkOrder(ctx, callOf(ctx).caller.Actor, in.ID))
}

// Listed is the input of every list.
type Listed struct {
	Conditional
	Limit        int    `query:"limit" minimum:"1" default:"50" doc:"Records a page; above 200 is taken as 200."`
	Cursor       string `query:"cursor" maxLength:"500" doc:"The next_cursor of the page before, with the same filters."`
	ChangedSince string `query:"changed_since" maxLength:"500" doc:"An RFC 3339 time or a sync_token: only what changed since, the oldest change first."`
}

func (in Listed) request() service.ListRequest {
	return service.ListRequest{Limit: in.Limit, Cursor: in.Cursor, ChangedSince: in.ChangedSince}
}

type listWorkOrdersInput struct {
	Listed
	Status       []string  `query:"status" enum:"open,in_progress,sent_to_inspection,back_from_inspection,complete,cancelled,on_hold" doc:"Only these status codes, separated by commas."`
	InventoryID  string    `query:"inventory_id" maxLength:"64" doc:"Only those of this node and everything below it."`
	AssigneeID   string    `query:"assignee_id" maxLength:"64" doc:"Only those with this identity as worker or consultant."`
	ExternalID   string    `query:"external_id" maxLength:"200" doc:"Only those with this reference of yours."`
	CreatedSince time.Time `query:"created_since" doc:"Only those created at this time or later."`
}

func (a *API) listWorkOrders(ctx context.Context, in *listWorkOrdersInput) (*recordAnswer, error) {
	filter := service.WorkOrderFilter{InventoryID: in.InventoryID, AssigneeID: in.AssigneeID, ExternalID: in.ExternalID}
	for _, code := range in.Status {
		filter.Statuses = append(filter.Statuses, models.WorkOrderStatus(code))
	}
	if !in.CreatedSince.IsZero() {
		since := models.TimeOf(in.CreatedSince)
		filter.CreatedSince = &since
	}
	return in.answer(a.service.WorkOrders(ctx, callOf(ctx).caller.Actor, filter, in.request()))
}
