package api

import (
	"context"
	"net/http"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/records"
	"millwright/service/store"
)

// changeErrors are the codes of a change of a work order that the integration may not make.
var changeErrors = []models.Code{models.CodeRuleViolation, models.CodePermissionDenied, models.CodeReadOnly}

func (a *API) workOrderOperations() []operation {
	created := workOrderExample()
	patched := workOrderIn(models.StatusInProgress, 10)
	patched.Title, patched.Priority = "Replace both filters", models.PriorityHigh
	cleared := patched
	cleared.TargetDate = nil
	return []operation{
		{
			id: "create-work-order", method: http.MethodPost, path: "/work-orders", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite, maxBody: models.MaxRecordBody,
			summary: "Create a work order",
			text: "Requires the permission to create work orders on the node and a plan that allows manual work orders. " +
				"Assignees and consultants must be connected to the node: assigned to it or to a node above it, a member of such a team, " +
				"or the integration itself. Without assignees the work order goes to the inventory managers of the nearest level, from the node upwards, " +
				"that has one who is not a consultant. If no level has one, the rule no_worker rejects it.",
			success: "The work order.",
			handler: write[models.WorkOrderRecord](http.StatusCreated, func(ctx context.Context, actor store.Actor, key store.Key, in *createWorkOrderInput) (store.WriteResult, error) {
				return a.service.Records.CreateWorkOrder(ctx, actor, key, in.Body.workOrder())
			}),
			requests: map[string]any{
				"small": newWorkOrder{InventoryID: exampleEquipment, Title: "Replace filter"},
				"full": map[string]any{
					"inventory_id": exampleEquipment, "title": "Replace filter", "description": "The pressure drop is above the limit.",
					"priority": "medium", "target_date": "2026-03-05T12:00:00Z", "form_id": exampleForm,
					"assignees": []string{exampleCrew, exampleERP}, "consultants": []string{exampleAnn}, "external_id": "ERP-7781",
				},
			},
			responses: map[string]any{"created": created},
			errors:    append([]models.Code{models.CodePlanRestricted}, changeErrors...),
			rules:     []models.Rule{models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles, models.RuleNoWorker},
		},
		{
			id: "get-work-order", method: http.MethodGet, path: "/work-orders/{id}", tag: tagWorkOrders, scope: models.ScopeWorkOrdersRead,
			summary:   "Read a work order",
			text:      "Returns one work order, as webhooks show it in `data.work_order`.",
			success:   "The work order.",
			handler:   readRecord[models.WorkOrderRecord, workOrderInput](records.WorkOrderReader),
			responses: map[string]any{"work_order": created, "with_people": withPeople(created)},
		},
		{
			id: "list-work-orders", method: http.MethodGet, path: "/work-orders", tag: tagWorkOrders, scope: models.ScopeWorkOrdersRead,
			summary: "List work orders",
			text:    "Lists the work orders that the integration may read: newest first, or with changed_since in order of change.",
			success: "A page of work orders.",
			handler: read[lists.Page[models.WorkOrderRecord]](func(ctx context.Context, actor store.Actor, in *listWorkOrdersInput) ([]byte, error) {
				return a.service.Records.WorkOrders(ctx, actor, in.filter(), in.request())
			}),
			responses: pages(created),
		},
		{
			id: "update-work-order", method: http.MethodPatch, path: "/work-orders/{id}", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite, maxBody: models.MaxRecordBody,
			summary: "Change a work order",
			text: "Changes only the fields that are sent; null clears description, target_date and external_id. " +
				"Requires the permission to update work orders on the node, and a work order that is open, in progress or back from the consultant.",
			success: "The changed work order.",
			handler: write[models.WorkOrderRecord](http.StatusOK, func(ctx context.Context, actor store.Actor, key store.Key, in *updateWorkOrderInput) (store.WriteResult, error) {
				return a.service.Records.UpdateWorkOrder(ctx, actor, key, in.ID, in.Body.patch())
			}),
			requests: map[string]any{
				"change": map[string]any{"title": "Replace both filters", "priority": "high"},
				"clear":  map[string]any{"target_date": nil},
			},
			responses: map[string]any{"changed": patched, "cleared": cleared},
			errors:    changeErrors, rules: []models.Rule{models.RuleStatus},
		},
	}
}

// workOrderActions are the operations below a work order.
func (a *API) workOrderActions() []operation {
	assigned := workOrderIn(models.StatusOpen, 5)
	assigned.Assignees = append(assigned.Assignees, exampleBob)
	answers := []givenAnswer{{QuestionID: exampleQuestion, Value: exampleOption2}, {QuestionID: exampleQuestion2, Value: 212.5}}
	return []operation{
		{
			id: "assign-work-order", method: http.MethodPost, path: "/work-orders/{id}/assignees", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite, maxBody: models.MaxActionBody,
			summary: "Add workers and consultants",
			text: "Requires the permission to forward. Identities must be connected to the node; a service company forwards its " +
				"customer's work order to its own people, teams and integrations as workers. Identities that already have the role keep it. " +
				"During a review someone who did not complete the work order must be among its consultants.",
			success: "The changed work order.",
			handler: write[models.WorkOrderRecord](http.StatusOK, func(ctx context.Context, actor store.Actor, key store.Key, in *assignWorkOrderInput) (store.WriteResult, error) {
				return a.service.Records.AssignWorkOrder(ctx, actor, key, in.ID, in.Body.Assignees, in.Body.Consultants)
			}),
			requests:  map[string]any{"worker": assignment{Assignees: []string{exampleBob}}},
			responses: map[string]any{"assigned": assigned},
			errors:    changeErrors, rules: []models.Rule{models.RuleAssigneeNotConnected, models.RuleAssigneeInactive, models.RuleBothRoles, models.RuleOwnWork},
		},
		{
			id: "unassign-work-order", method: http.MethodDelete, path: "/work-orders/{id}/assignees/{identity_id}", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite,
			summary: "Remove a worker or consultant",
			text: "Requires the permission to forward. The last worker cannot be removed, nor the last consultant during a review. " +
				"A service company's integration cannot remove its company: people return the work order in the console, with a reason.",
			success: "The changed work order.",
			handler: write[models.WorkOrderRecord](http.StatusOK, func(ctx context.Context, actor store.Actor, key store.Key, in *unassignWorkOrderInput) (store.WriteResult, error) {
				return a.service.Records.UnassignWorkOrder(ctx, actor, key, in.ID, in.IdentityID)
			}),
			responses: map[string]any{"unassigned": workOrderIn(models.StatusOpen, 7)},
			errors:    changeErrors, rules: []models.Rule{models.RuleLastWorker, models.RuleStatus, models.RuleOwnWork},
		},
		{
			id: "cancel-work-order", method: http.MethodPost, path: "/work-orders/{id}/cancel", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite, maxBody: models.MaxActionBody,
			summary: "Cancel a work order",
			text:    "Requires the permission to delete work orders on the node, and a work order that is neither complete nor cancelled.",
			success: "The cancelled work order.",
			handler: write[models.WorkOrderRecord](http.StatusOK, func(ctx context.Context, actor store.Actor, key store.Key, in *cancelWorkOrderInput) (store.WriteResult, error) {
				return a.service.Records.CancelWorkOrder(ctx, actor, key, in.ID, in.Body.reason())
			}),
			requests:  map[string]any{"with_reason": cancellation{Reason: new("Duplicate of number 1041")}, "without": map[string]any{}},
			responses: map[string]any{"cancelled": workOrderIn(models.StatusCancelled, 20)},
			errors:    changeErrors, rules: []models.Rule{models.RuleStatus},
		},
		{
			id: "answer-work-order", method: http.MethodPost, path: "/work-orders/{id}/answers", tag: tagWorkOrders, scope: models.ScopeWorkOrdersWrite, maxBody: models.MaxAnswersBody,
			summary: "Answer and complete a work order",
			text: "The integration must be one of the work order's workers. Questions that are not sent keep their answers; null clears an answer. " +
				"An empty list of answers starts a work order that is open or back from the consultant. " +
				"With complete, every required question must have an answer; the work order is then complete, or is sent to its consultants for review if it has any.",
			success: "The changed work order.",
			handler: write[models.WorkOrderRecord](http.StatusOK, a.answerWorkOrder),
			requests: map[string]any{
				"answer":   givenAnswers{Answers: answers[:1]},
				"complete": givenAnswers{Answers: answers, Complete: true},
				"finish":   map[string]any{"complete": true},
				"start":    map[string]any{"answers": []any{}},
				"clear":    givenAnswers{Answers: []givenAnswer{{QuestionID: exampleQuestion2}}},
			},
			responses: map[string]any{
				"in_progress": workOrderIn(models.StatusInProgress, 30),
				"complete":    workOrderIn(models.StatusComplete, 31),
				"in_review":   workOrderIn(models.StatusSentToInspection, 31),
			},
			errors: []models.Code{models.CodeRuleViolation},
			rules:  []models.Rule{models.RuleRequiredQuestions, models.RuleStatus, models.RuleNotAssignedAsWorker, models.RuleOwnWork},
		},
		{
			id: "get-answers", method: http.MethodGet, path: "/work-orders/{id}/answers", tag: tagWorkOrders, scope: models.ScopeFormsRead,
			summary: "Read a work order's answers",
			text:    "Returns every question of the work order's form with its type, options and answer. Without a form there are no questions.",
			success: "The form's questions with their options and answers.",
			handler: read[models.AnswersRecord](func(ctx context.Context, actor store.Actor, in *workOrderInput) ([]byte, error) {
				return a.service.Records.Answers(ctx, actor, in.ID)
			}),
			responses: map[string]any{
				"answers": answersExample(),
				"no_form": models.AnswersRecord{WorkOrderID: exampleWorkOrder, Questions: []models.AnsweredRecord{}},
			},
		},
	}
}

func (a *API) answerWorkOrder(ctx context.Context, actor store.Actor, key store.Key, in *answerWorkOrderInput) (store.WriteResult, error) {
	answers, err := in.Body.answers()
	if err != nil {
		return store.WriteResult{}, err
	}
	return a.service.Records.AnswerWorkOrder(ctx, actor, key, in.ID, answers, records.Completion(in.Body.Complete))
}
