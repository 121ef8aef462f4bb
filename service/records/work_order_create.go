package records

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/effects"
	"millwright/service/inventory"
	"millwright/service/people"
	"millwright/service/store"
)

// NewWorkOrder holds the fields of a work order to create.
type NewWorkOrder struct {
	InventoryID string
	Title       string
	Description *string
	Priority    models.Priority
	TargetDate  *models.Time
	FormID      *string
	Assignees   []string
	Consultants []string
	ExternalID  *string
	// FeedbackID is the feedback of which a person makes it, nil if it is made of none.
	FeedbackID *string
}

// creationPlace is what decides whether an actor may create a work order on a node.
type creationPlace struct {
	organizationState
	// ManualWorkOrders is true if the plan allows them.
	ManualWorkOrders bool
	// NodeKind is "" if the organization has no such node.
	NodeKind models.NodeKind
	// NodeRetired is whether the node cannot be chosen.
	NodeRetired bool
	// Grants are the actor's on the node, empty if it does not see the node.
	Grants []string
}

// workOrderCreation is what the rules need to know to create a work order.
type workOrderCreation struct {
	creationPlace
	// FormRetired is whether new work orders cannot have the form, nil if there is no such form.
	FormRetired *bool
	candidateState
	// Managers are the nearest active inventory managers who are not to be consultants.
	Managers []string
	// Number is the work order's, nil if the actor may not create one there.
	Number *int64
	// Inventory is the node, nil if the organization has no such node.
	Inventory *models.NodeReference
	// People of the candidates' state are those that the record may name: the actor, the identities of the
	// request and the managers.
}

// nearestManagers selects the active inventory managers assigned at the lowest level, from
// the node upwards, that has any besides the identities of the array except. OFFSET
// makes Postgres look up the assignments of each of these nodes.
func nearestManagers(node, except string) string {
	return `
		ARRAY(SELECT near.identity_id FROM (
				SELECT g.identity_id, rank() OVER (ORDER BY c.depth) AS level
				FROM inventory_closure c
				CROSS JOIN LATERAL (SELECT * FROM assignments WHERE node_id = c.ancestor_id OFFSET 0) g
				CROSS JOIN LATERAL (SELECT * FROM permission_definitions WHERE id = g.definition_id LIMIT 1) d
				WHERE c.node_id = ` + node + ` AND d.inventory_manager AND (c.depth = 0 OR d.applies_below)
					AND g.identity_id <> ALL (` + except + `) AND ` + access.CanAct("g.identity_id") + `
			) near WHERE near.level = 1 ORDER BY near.identity_id)`
}

// managersOrAdmins selects the nearest active inventory managers of the node or, where
// no level has any, the active administrators of the organization.
func managersOrAdmins(node, organization string) string {
	return `coalesce(nullif(` + nearestManagers(node, "'{}'::text[]") + `::text[], '{}'),
			` + activeAdmins(organization) + `)`
}

// activeAdmins selects the active administrators of the organization.
func activeAdmins(organization string) string {
	return `ARRAY(SELECT p.id::text FROM people p WHERE p.organization_id = ` + organization + ` AND p.admin AND p.deactivated_at IS NULL ORDER BY p.id)`
}

// workOrderCreations select a workOrderCreation, by whether the people in the record are shown. A number is taken
// only for valid fields, an actor that may create a work order on the node, and a key that was not used. A rule about the
// people named may still reject the work order: to take it afterwards costs a round trip. It is
// never returned: after a crash or a failover the sequence may give it again.
var workOrderCreations = store.ByPeople(func(people string) string {
	return `
	SELECT o.read_only, o.suspended, p.manual_work_orders, coalesce(n.kind, '') AS node_kind, n.retired_at IS NOT NULL AS node_retired, known.grants,
		(SELECT f.retired FROM forms f WHERE f.organization_id = o.id AND f.id = @form) AS form_retired,
		` + store.KnownIdentities("@identities::text[]", "o.id") + ` AS known,
		` + connectedIdentities("n.id") + ` AS connected,
		` + activeIdentities("@identities::text[]") + ` AS active,
		known.managers,
		CASE WHEN @valid AND NOT o.read_only AND NOT o.suspended AND p.manual_work_orders AND ` + access.Among(models.GrantWorkOrdersCreate, "known.grants") + ` AND ` + store.UnusedKey + `
			THEN nextval(('work_order_numbers.' || quote_ident(o.id))::regclass) END AS number,
		` + store.NodeReference("n.id") + ` AS inventory,
		` + store.PeopleAmong(people, "SELECT @actor UNION ALL SELECT unnest(@identities::text[] || known.managers)") + `
	FROM organizations o
	JOIN plans p ON p.organization_id = o.id
	LEFT JOIN inventory_nodes n ON n.organization_id = o.id AND n.id = @node
	CROSS JOIN LATERAL (SELECT ` + access.GrantsOn("n.id", "@actor") + ` AS grants,
		` + nearestManagers("n.id", "@consultants::text[]") + ` AS managers OFFSET 0) known
	WHERE o.id = @organization`
})

// sourceFeedbackQuery selects the feedback @id of the @organization if the @actor may read it.
var sourceFeedbackQuery = `SELECT f.id FROM feedback f WHERE f.id = @id AND f.organization_id = @organization AND ` + access.ReadableFeedback("f", "@actor")

// CreateWorkOrder creates a work order (api.md 4.2, 4.3 and 4.8) and
// returns it with status 201. Errors: read_only, plan_restricted,
// validation_failed, permission_denied, rule_violation (both_roles,
// assignee_inactive, assignee_not_connected, no_worker), idempotency_key_reused, unavailable.
func (s *Records) CreateWorkOrder(ctx context.Context, actor store.Actor, key store.Key, in NewWorkOrder) (store.WriteResult, error) {
	var known workOrderCreation
	var source []string
	return s.write(ctx, actor, key, http.StatusCreated, store.Lock{}, func(reading *pgx.Batch) {
		store.QueueOne(reading, &known, nil, workOrderCreations[actor.ShowPeople], key.Arguments(actor, s.CurrentTime(), pgx.NamedArgs{
			"actor": actor.IdentityID, "integration": actor.Kind == models.KindIntegration, "organization": actor.OrganizationID,
			"node": in.InventoryID, "form": store.TextOf(in.FormID), "identities": difference(slices.Concat(in.Assignees, in.Consultants), nil),
			"consultants": difference(in.Consultants, nil), "valid": len(in.checkFields()) == 0,
		}))
		if in.FeedbackID != nil {
			store.QueueValues(reading, &source, sourceFeedbackQuery, pgx.NamedArgs{
				"id": *in.FeedbackID, "organization": actor.OrganizationID, "actor": actor.IdentityID,
			})
		}
	}, func(t *store.Tx) (string, any, error) {
		if err := known.check(actor, in); err != nil {
			return "", nil, err
		}
		if in.FeedbackID != nil && len(source) == 0 {
			return "", nil, models.Invalid(store.UnknownField("/feedback", "feedback"))
		}
		workers := in.Assignees
		if len(workers) == 0 {
			workers = known.Managers
		}
		id, err := t.NewID(models.PrefixWorkOrder)
		if err != nil {
			return "", nil, err
		}
		row := known.row(actor, id, in, workers)
		row.CreatedAt, row.ChangedAt = t.At, t.At
		return id, row.Shown(), insertWorkOrder(t, actor, &row)
	})
}

// check applies the rules in the order in which an integrator would fix the
// errors. Errors: CreateWorkOrder's.
func (c workOrderCreation) check(actor store.Actor, in NewWorkOrder) error {
	if err := c.requirePlan(); err != nil {
		return err
	}
	if err := c.checkNames(in); err != nil {
		return err
	}
	if err := c.requireGrant(actor); err != nil {
		return err
	}
	if err := c.candidates(in).checkRules(nil, nil); err != nil {
		return err
	}
	if len(in.Assignees)+len(c.Managers) == 0 {
		return models.Violation(models.RuleNoWorker,
			"A work order needs at least one worker. Name an assignee: no active inventory manager of the node could be one.")
	}
	return nil
}

// requirePlan rejects an organization in which no work orders are created. Errors:
// permission_denied (suspended), read_only, plan_restricted.
func (p creationPlace) requirePlan() error {
	if err := p.requireWritable(rejectReadOnly); err != nil {
		return err
	}
	if !p.ManualWorkOrders {
		return models.Errorf(models.CodePlanRestricted, "The organization's plan does not allow manual work orders.")
	}
	return nil
}

// requireGrant rejects an actor that may not create work orders on the node. Errors:
// permission_denied.
func (p creationPlace) requireGrant(actor store.Actor) error {
	if slices.Contains(p.Grants, string(models.GrantWorkOrdersCreate)) {
		return nil
	}
	return actor.MayNot("create work orders")
}

// forbids returns why the actor may create no work order on the node, whatever its fields
// are. Errors: requirePlan's and requireGrant's, validation_failed.
func (p creationPlace) forbids(actor store.Actor) error {
	if err := p.requirePlan(); err != nil {
		return err
	}
	if fields := p.checkKind(); fields != nil {
		return models.Invalid(fields...)
	}
	return p.requireGrant(actor)
}

func (p creationPlace) checkKind() []models.FieldError {
	switch {
	case p.NodeKind == models.NodeSubEquipment:
		return []models.FieldError{{Pointer: "/inventory_id", Code: "kind",
			Detail: "A work order belongs to a location, a system or a piece of equipment, not to sub-equipment."}}
	case p.NodeRetired:
		return []models.FieldError{inventory.RetiredField("/inventory_id", "inventory node")}
	}
	return nil
}

func (c workOrderCreation) candidates(in NewWorkOrder) candidates {
	return candidates{in.Assignees, in.Consultants, c.candidateState}
}

// checkNames rejects ids that the actor does not see and a target date that no
// record can show. Errors: validation_failed.
func (c workOrderCreation) checkNames(in NewWorkOrder) error {
	fields := c.checkKind()
	if len(c.Grants) == 0 {
		fields = []models.FieldError{store.UnknownField("/inventory_id", "inventory node")}
	}
	switch {
	case in.FormID == nil:
	case c.FormRetired == nil:
		fields = append(fields, store.UnknownField("/form_id", "form"))
	case *c.FormRetired:
		fields = append(fields, inventory.RetiredField("/form_id", "form"))
	}
	fields = append(append(fields, in.checkFields()...), c.candidates(in).checkKnown()...)
	return store.Invalid(fields)
}

// checkFields returns what is wrong with the fields that name nothing else.
func (in NewWorkOrder) checkFields() []models.FieldError {
	return slices.Concat(checkTitle("/title", in.Title), store.CheckDescribed(in.Description, in.ExternalID),
		checkPriority(in.Priority), CheckTargetDate(in.TargetDate))
}

// row is the new work order without its times.
func (c workOrderCreation) row(actor store.Actor, id string, in NewWorkOrder, workers []string) WorkOrderRow {
	row := WorkOrderRow{
		WorkOrder: models.WorkOrder{
			ID:             id,
			OrganizationID: actor.OrganizationID,
			Number:         *c.Number,
			InventoryID:    in.InventoryID,
			Title:          in.Title,
			Description:    in.Description,
			Priority:       cmp.Or(in.Priority, models.PriorityNone),
			TargetDate:     in.TargetDate,
			FormID:         in.FormID,
			ExternalID:     in.ExternalID,
			FeedbackID:     in.FeedbackID,
			Status:         models.StatusOpen,
			CreatedBy:      actor.IdentityID,
		},
		Assigned:  people.Roles{Assignees: difference(workers, nil), Consultants: difference(in.Consultants, nil)},
		Inventory: c.Inventory,
	}
	row.People = withIDs(c.People, append(row.Assigned.All(), actor.IdentityID))
	return row
}

// insertWorkOrder queues the work order, its assignees and the effects of its creation.
func insertWorkOrder(t *store.Tx, actor store.Actor, row *WorkOrderRow) error {
	if err := t.Create(&row.WorkOrder); err != nil {
		return err
	}
	if err := t.Create(row.WordsOfWorkOrder()); err != nil {
		return err
	}
	assignees := assigneeRows(row.ID, row.Assigned, 0)
	if err := t.Create(&assignees); err != nil { // at least a worker
		return err
	}
	t.AddPositions(&row.WorkOrder, row.Assigned.All())
	return effects.Queue(t, effects.Change{
		Actor:          actor,
		OrganizationID: actor.OrganizationID,
		RecordID:       row.ID,
		Action:         string(models.EventWorkOrderCreated),
		Changes:        workOrderChanges(nil, row),
		Notices: []effects.Notice{
			{Kind: string(models.NoticeAssigned), Identities: row.Assigned.Assignees},
			{Kind: string(models.NoticeConsulted), Identities: row.Assigned.Consultants},
		},
		Events: []effects.Event{{Type: models.EventWorkOrderCreated}},
	})
}
