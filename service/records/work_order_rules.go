package records

import (
	"slices"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/store"
)

// operationReclaim takes a work order back from a former service company, for housekeeping. No
// actor asks for it, so it is not one of models.Operations.
const operationReclaim models.Operation = "reclaim"

// operationRule is what an operation requires of the actor and the work order's organization,
// besides the status (api.md 3.2, 4.4 to 4.7). The writes check it, and so does WorkOrderDetail
// for the operations that a page offers.
type operationRule struct {
	readOnly readOnlyPolicy
	// permission rejects an actor that may not do it in any status.
	permission func(*workOrderActor) error
	// asMember is true if the permission depends on those as which the actor acts.
	asMember bool
	// decided is true if who acts decided it before, where it was permitted: no state of the
	// organization stops it.
	decided bool
}

var (
	completionRule = operationRule{readOnly: allowReadOnly, permission: (*workOrderActor).requireCompletion, asMember: true}
	reviewRule     = operationRule{readOnly: allowReadOnly, permission: (*workOrderActor).requireConsultant, asMember: true}
)

// operationRules are the rules by operation. That for assigning is also for removing, whose
// other rules are checkUnassign's.
var operationRules = map[models.Operation]operationRule{
	models.OperationUpdate:           {permission: granted(models.GrantWorkOrdersUpdate, "change work orders")},
	models.OperationAssign:           {permission: (*workOrderActor).requireAssign},
	models.OperationAnswer:           {readOnly: allowReadOnly, permission: (*workOrderActor).requireWorker, asMember: true},
	models.OperationComplete:         completionRule,
	models.OperationCompleteToReview: completionRule,
	models.OperationCancel:           {permission: granted(models.GrantWorkOrdersDelete, "cancel work orders")},
	models.OperationApprove:          reviewRule,
	models.OperationSendBack:         reviewRule,
	models.OperationHold:             {permission: (*workOrderActor).requireInvolved, asMember: true},
	models.OperationResume:           {readOnly: allowReadOnly, permission: (*workOrderActor).requireInvolved, asMember: true},
	models.OperationReturn:           {permission: (*workOrderActor).requireReturn},
	operationReclaim:                 {decided: true, permission: func(*workOrderActor) error { return nil }},
}

func granted(grant models.Grant, what string) func(*workOrderActor) error {
	return func(a *workOrderActor) error { return a.requireGrant(grant, what) }
}

// workOrderActor is an actor with what the rules need to know of it and of a work order.
type workOrderActor struct {
	acting store.Actor
	// state is the work order as it is, for a write before the change.
	state lockedWorkOrder
	workOrderMember
}

// workOrderMember is what depends on those as whom the actor acts.
type workOrderMember struct {
	// ActsAs are the workers and consultants that a person is or belongs to: a team, or a service
	// company in which it has incoming work orders. An integration acts only as itself (api.md 4.7).
	ActsAs []string
	// OnlyReviewer is true if the actor is a consultant or belongs to one, and no one else is
	// active who could review the work order.
	OnlyReviewer bool
}

// forbids returns why the actor may not do the operation now, nil if it may. Errors:
// permission_denied, read_only, rule_violation (not_assigned_as_worker, own_work, status).
func (a *workOrderActor) forbids(operation models.Operation) error {
	rule := operationRules[operation]
	if err := rule.permission(a); err != nil {
		return err
	}
	if err := a.state.requireWritable(rule.readOnly); err != nil {
		return err
	}
	_, err := a.state.Status.Apply(operation, a.state.heldFrom())
	return err
}

// forCustomer reports whether the actor belongs to a service company and acts on
// a customer's work order, which it forwards to its own people.
func (a *workOrderActor) forCustomer() bool { return a.state.OrganizationID != a.acting.OrganizationID }

func (a *workOrderActor) hasGrant(grant models.Grant) bool {
	return slices.Contains(a.state.Grants, string(grant))
}

// requireGrant rejects an actor without the grant on the work order's node.
func (a *workOrderActor) requireGrant(grant models.Grant, what string) error {
	if a.hasGrant(grant) {
		return nil
	}
	return a.acting.MayNot(what)
}

// requireAssign rejects an actor that may not assign. A service company that only reviews a
// customer's work order may not: it would work on what it reviews. Errors: permission_denied.
func (a *workOrderActor) requireAssign() error {
	switch {
	case !a.forCustomer() || !a.state.Incoming:
		return a.requireGrant(models.GrantWorkOrdersForward, "assign work orders")
	case slices.Contains(a.state.Assigned.Consultants, a.acting.OrganizationID):
		return models.Errorf(models.CodePermissionDenied, "Your organization reviews this work order. Only its customer assigns others to it.")
	}
	return nil
}

// requireWorker rejects an actor that is no worker. A person may be one as a member of a team
// or of a service company. Errors: rule_violation (not_assigned_as_worker).
func (a *workOrderActor) requireWorker() error {
	isWorker := func(id string) bool { return slices.Contains(a.state.Assigned.Assignees, id) }
	if isWorker(a.acting.IdentityID) || slices.ContainsFunc(a.ActsAs, isWorker) {
		return nil
	}
	who := "the " + string(a.acting.Kind) + " is"
	if a.acting.IsReader() {
		who = "you are"
	}
	return models.Violation(models.RuleNotAssignedAsWorker, "Only an assigned worker may answer this work order, and %s not one.", who).About(a.acting.IdentityID)
}

// requireCompletion rejects an actor that is no worker, and one whose work no one else could
// review. Errors: rule_violation (not_assigned_as_worker, own_work).
func (a *workOrderActor) requireCompletion() error {
	if err := a.requireWorker(); err != nil || !a.OnlyReviewer || !slices.Contains(models.Workable(), a.state.Status) {
		return err
	}
	return models.Violation(models.RuleOwnWork,
		"Who completes a work order does not review it, and no other active person is its consultant. Name another consultant, or have another worker complete it.").About(a.acting.IdentityID)
}

// requireInvolved rejects an actor that may not hold and resume the work order.
func (a *workOrderActor) requireInvolved() error {
	if err := access.RequirePerson(a.acting, "Putting a work order on hold or resuming it"); err != nil || a.hasGrant(models.GrantWorkOrdersUpdate) || len(a.ActsAs) > 0 {
		return err
	}
	return models.Errorf(models.CodePermissionDenied,
		"Only a person who may change work orders on this node or is assigned to this one may put it on hold or resume it.")
}

// requireConsultant rejects an actor that does not review the work order: only its consultants
// do, and not who completed it. Errors: permission_denied, rule_violation (own_work).
func (a *workOrderActor) requireConsultant() error {
	if err := access.RequirePerson(a.acting, "Reviewing a work order"); err != nil {
		return err
	}
	if !slices.ContainsFunc(a.ActsAs, func(id string) bool { return slices.Contains(a.state.Assigned.Consultants, id) }) {
		return models.Errorf(models.CodePermissionDenied, "Only a consultant of the work order may review it.")
	}
	if a.state.Status == models.StatusSentToInspection && store.TextOf(a.state.CompletedBy) == a.acting.IdentityID {
		return models.Violation(models.RuleOwnWork, "Who completed a work order does not review it. Another consultant has to.").About(a.acting.IdentityID)
	}
	return nil
}

// requireReturn rejects an actor that does not return the work order to a customer.
func (a *workOrderActor) requireReturn() error {
	if err := access.RequirePerson(a.acting, "Returning a work order to the customer"); err != nil || a.forCustomer() && a.state.Incoming {
		return err
	}
	return models.Errorf(models.CodePermissionDenied,
		"Only a person with incoming work orders of the service company that a work order is assigned to may return it to the customer.")
}

// checkUnassign applies the rules for removing an identity that is assigned; own says
// whether it belongs to the actor's organization. Errors: permission_denied, rule_violation
// (last_worker, status).
func (a *workOrderActor) checkUnassign(identity string, own bool) error {
	assigned := a.state.Assigned
	worker := slices.Contains(assigned.Assignees, identity)
	switch {
	case a.forCustomer() && !own:
		return models.Errorf(models.CodePermissionDenied, "A service company may remove only its own people.")
	case a.forCustomer() && identity == a.acting.OrganizationID:
		return models.Errorf(models.CodePermissionDenied, "A service company gives a work order up by returning it to the customer in the console, with a reason.")
	case worker && len(assigned.Assignees) == 1:
		return models.Violation(models.RuleLastWorker, "A work order needs at least one worker. Assign another one first.").About(identity)
	case !worker && len(assigned.Consultants) == 1 && a.state.Status == models.StatusSentToInspection:
		return models.Violation(models.RuleStatus,
			"The last consultant of a work order with the status %q cannot be removed. Name another one first, or cancel it.", a.state.Status.Name()).About(identity)
	}
	return nil
}

// actedIdentities selects the identities of an array that the actor is or belongs to.
func actedIdentities(identities, actor string) string {
	return `SELECT a.identity_id FROM actor_identities a
		WHERE a.actor_id = ` + actor + ` AND a.identity_id = ANY (` + identities + `) AND ` + access.ReadsAs(actor)
}

// onlyReviewer is the condition that the actor may review as one of the identities of an array, and that no
// one else is active who may (api.md 3.4).
func onlyReviewer(identities, actor string) string {
	return `CASE WHEN EXISTS (` + actedIdentities(identities, actor) + `)
		THEN NOT EXISTS (SELECT FROM (` + effects.PeopleOf(identities) + `) others WHERE others.id <> ` + actor + `) ELSE false END`
}

// ownIdentities selects the identities of an array that belong to the organization, without deleted teams.
func ownIdentities(identities, organization string) string {
	return `
	ARRAY(SELECT i.id::text FROM identities i
		WHERE i.id = ANY (` + identities + `) AND i.organization_id = ` + organization + ` AND i.deleted_at IS NULL)`
}

// memberQuery selects a workOrderMember: as which of those assigned to the work order @id the actor acts, if
// it is a person (@person), and whether no one but the actor could review as one of its consultants.
var memberQuery = `SELECT ARRAY(` + actedIdentities(assignedIn("@id", "true"), "@actor") + ` AND @person) AS acts_as,
		` + onlyReviewer(assignedIn("@id", isConsultant), "@actor") + ` AS only_reviewer`

// isConsultant is the condition that the assignee x is a consultant.
const isConsultant = `x.role = '` + string(models.RoleConsultant) + `'`

// assignedIn is the SQL for the ids of those who are assigned to a work order, for whom the condition holds.
func assignedIn(id, condition string) string {
	return `ARRAY(SELECT x.identity_id::text FROM work_order_assignees x WHERE x.work_order_id = ` + id + ` AND ` + condition + `)`
}
