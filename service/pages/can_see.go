package pages

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/integrations"
	"millwright/service/store"
)

// Visibility is whether an integration may read a record, as its scopes ∩ its permissions
// (api.md 5.6), with the reasons.
type Visibility struct {
	// ID was asked for. RecordID is the record of an event or a delivery, else ID.
	ID, RecordID string
	Kind         VisibleKind
	// Visible is the answer: Scope is held, Permitted, and the integration can use the service.
	Visible bool
	// Usable is whether the integration can use the service at all.
	Usable bool
	// Scope is what reading takes, ScopeHeld whether the integration has it.
	Scope     models.Scope
	ScopeHeld bool
	// Permitted is whether its permissions allow reading. Ways are the ways in which they can,
	// of which one is enough. The scope alone opens records without ways.
	Permitted bool
	Ways      []VisibleWay
	// NodeID is the node that the record is on.
	NodeID string
	// EventType is the type of an event or a delivery; Addresses are the integration's.
	EventType models.EventType
	Addresses []VisibleAddress
}

// VisibleKind is a kind of record that can be asked for.
type VisibleKind string

// The kinds of records.
const (
	VisibleWorkOrder VisibleKind = "work order"
	VisibleFeedback  VisibleKind = "feedback"
	VisibleNode      VisibleKind = "place or asset"
	VisibleForm      VisibleKind = "form"
	VisiblePerson    VisibleKind = "person or team"
)

// VisibleWay is one way in which permissions can allow reading a record.
type VisibleWay struct {
	Kind WayKind
	Met  bool
	// Missing is the reason why it is not met.
	Missing MissingPart
	// Grant is the permission that the way takes on the node.
	Grant models.Grant
	// Nodes are the assignments at the node and above that the way depends on.
	Nodes []WayNode
}

// WayKind is a way of api.md 5.8 or 5.9.
type WayKind string

// The ways.
const (
	WayOnNode   WayKind = "node"     // the permission on the node
	WayCreated  WayKind = "created"  // it created the record and may create some there
	WayAssigned WayKind = "assigned" // it, its team or its organization is assigned
)

// MissingPart names what a way lacks.
type MissingPart string

// The parts that a way can lack.
const (
	MissingAssignment MissingPart = "assignment"  // nothing at the node or above is assigned to it
	MissingBelow      MissingPart = "below"       // an assignment above does not apply below
	MissingGrant      MissingPart = "grant"       // the definition lacks the permission
	MissingCreator    MissingPart = "creator"     // another identity created the record
	MissingWorker     MissingPart = "worker"      // the record is not assigned to it
	MissingIncoming   MissingPart = "incoming"    // the organization's work orders take incoming work orders
	MissingOtherOwner MissingPart = "other_owner" // the node is another organization's
)

// WayNode is an assignment at the node of a record or above it.
type WayNode struct {
	ID, Name, Definition string
	AppliesBelow         bool
	Depth                int
	Grants               []models.Grant
}

// VisibleAddress is an address of the integration, for an event.
type VisibleAddress struct {
	ID, URL string
	Events  []models.EventType
	Enabled bool
}

// Subscribed reports whether the address gets events of the type.
func (a VisibleAddress) Subscribed(t models.EventType) bool { return slices.Contains(a.Events, t) }

// visibleRecord is what the answer depends on.
type visibleRecord struct {
	NodeID, CreatedBy string
	Readable          bool
	ByNode, ByCreated bool
	ByAssignment      bool
	// Ours is whether the record is of the integration's organization, AssignedToOurs whether
	// it is assigned to the organization.
	Ours, AssignedToOurs bool
}

// visibleQueries read the record $1 for the integration $2 of the organization $3.
var visibleQueries = map[VisibleKind]string{
	VisibleWorkOrder: store.Fill(`SELECT w.inventory_id AS node_id, w.created_by, `+access.ReadableWorkOrder+` AS readable,
		`+access.OnNode(models.GrantWorkOrdersRead)+` AS by_node, `+access.CreatedReadably(access.OnNode)+` AS by_created, `+access.ReadableByAssignment+` AS by_assignment,
		w.organization_id = $3 AS ours,
		EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = $3)
			AND `+store.Fill(access.RelationHolds, "organization", "$3", "id", "w.id")+` AS assigned_to_ours
		FROM work_orders w WHERE w.id = $1`, "w", "w", "actor", "$2"),
	VisibleFeedback: store.Fill(`SELECT w.inventory_id AS node_id, w.created_by, `+access.ReadableFeedback+` AS readable,
		`+access.ReadableFeedback+` AS by_node, false AS by_created, false AS by_assignment, w.organization_id = $3 AS ours, false AS assigned_to_ours
		FROM feedback w WHERE w.id = $1`, "w", "w", "actor", "$2"),
	VisibleNode: store.Fill(`SELECT w.id AS node_id, '' AS created_by, coalesce(`+access.VisibleNode+`, false) AS readable,
		coalesce(`+access.VisibleNode+`, false) AS by_node, false AS by_created, false AS by_assignment, w.organization_id = $3 AS ours, false AS assigned_to_ours
		FROM inventory_nodes w WHERE w.id = $1`, "w", "w", "actor", "$2"),
	VisibleForm: `SELECT '' AS node_id, '' AS created_by, organization_id = $3 AS readable, false AS by_node, false AS by_created, false AS by_assignment,
		organization_id = $3 AS ours, false AS assigned_to_ours FROM forms WHERE id = $1 AND $2 <> ''`,
	VisiblePerson: `SELECT '' AS node_id, '' AS created_by, organization_id = $3 AS readable, false AS by_node, false AS by_created, false AS by_assignment,
		organization_id = $3 AS ours, false AS assigned_to_ours FROM identities WHERE id = $1 AND kind IN ('person', 'team') AND deleted_at IS NULL AND $2 <> ''`,
}

// wayNodesQuery reads the assignments at the node $1 and above that the integration $2 has,
// also those that give nothing there, the nearest first.
const wayNodesQuery = `
	SELECT v.id, v.name, d.name AS definition, d.applies_below, c.depth, d.grants
	FROM inventory_closure c
	CROSS JOIN LATERAL (SELECT id, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) v
	JOIN assignments g ON g.node_id = c.ancestor_id
	JOIN actor_identities a ON a.actor_id = $2 AND a.identity_id = g.identity_id AND a.organization_id = g.organization_id
	JOIN permission_definitions d ON d.id = g.definition_id
	WHERE c.node_id = $1
	ORDER BY c.depth, d.id`

// visibleScopes are what reading a kind of record takes.
var visibleScopes = map[VisibleKind]models.Scope{
	VisibleWorkOrder: models.ScopeWorkOrdersRead, VisibleFeedback: models.ScopeIssuesRead, VisibleNode: models.ScopeInventoryRead,
	VisibleForm: models.ScopeFormsRead, VisiblePerson: models.ScopePeopleRead,
}

// visibleKind returns the kind of record that the id names.
func visibleKind(id string) (kind VisibleKind, known bool) {
	for kind, prefixes := range map[VisibleKind][]models.IDPrefix{
		VisibleWorkOrder: {models.PrefixWorkOrder}, VisibleFeedback: {models.PrefixFeedback},
		VisibleNode: {models.PrefixLocation, models.PrefixSystem, models.PrefixEquipment, models.PrefixSubEquipment},
		VisibleForm: {models.PrefixForm}, VisiblePerson: {models.PrefixIdentity},
	} {
		if models.IsID(id, prefixes...) {
			return kind, true
		}
	}
	return "", false
}

// CanSee answers whether an integration of the actor's organization may read the record with
// the id: a work order, feedback, a node, a form, a person, a team, or that of an event or a
// delivery. It shows nothing of a record that the integration may not read, except that it
// exists in the organization. Errors: not_found (no such integration), validation_failed
// with the pointer /id (no such record, or another organization's), permission_denied,
// unavailable.
func (s *Pages) CanSee(ctx context.Context, actor store.Actor, integrationID, id string) (Visibility, error) {
	integration, usable, err := s.visibleIntegration(ctx, actor, integrationID)
	if err != nil {
		return Visibility{}, err
	}
	answer := Visibility{ID: id, RecordID: id, Usable: usable}
	if models.IsID(id, models.PrefixEvent) || models.IsID(id, models.PrefixDelivery) {
		if err := s.visibleEvent(ctx, actor, integrationID, &answer); err != nil {
			return Visibility{}, err
		}
	}
	kind, known := visibleKind(answer.RecordID)
	if !known {
		return Visibility{}, errUnknownRecord()
	}
	answer.Kind, answer.Scope = kind, visibleScopes[kind]
	scopes, _ := models.ScopesOf(integration.Scopes)
	answer.ScopeHeld = scopes.Has(answer.Scope)

	var records []visibleRecord
	if err := s.lookUp(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &records, visibleQueries[kind], answer.RecordID, integrationID, actor.OrganizationID)
		return nil
	}); err != nil {
		return Visibility{}, err
	}
	// Another organization's record is unknown, unless it is assigned to this one.
	if len(records) == 0 || !records[0].Ours && !records[0].Readable && !records[0].AssignedToOurs {
		return Visibility{}, errUnknownRecord()
	}
	record := records[0]
	var nodes []WayNode
	if record.Ours && record.NodeID != "" {
		answer.NodeID = record.NodeID
		if err := s.lookUp(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) error {
			store.QueueAll(pipeline, &nodes, wayNodesQuery, record.NodeID, integrationID)
			return nil
		}); err != nil {
			return Visibility{}, err
		}
	}
	answer.Ways = record.ways(kind, integrationID, nodes)
	answer.Permitted = record.Readable
	answer.Visible = answer.Usable && answer.ScopeHeld && answer.Permitted
	return answer, nil
}

func errUnknownRecord() error {
	return models.Invalid(models.FieldError{Pointer: "/id", Code: "unknown", Detail: "Your organization has no record with this id."})
}

// lookUp is read for queries that store their rows themselves.
func (s *Pages) lookUp(ctx context.Context, organizationID string, queries ...func(*pgx.Batch) error) error {
	_, err := store.Read(ctx, s.Store, organizationID, func() (none struct{}, err error) { return none, nil }, queries...)
	return err
}

// visibleIntegration returns the integration and whether it can use the service.
func (s *Pages) visibleIntegration(ctx context.Context, actor store.Actor, id string) (integrations.IntegrationRecord, bool, error) {
	var found struct {
		integrations.IntegrationRecord
		Usable bool
	}
	if !models.IsID(id, models.PrefixIdentity) {
		return found.IntegrationRecord, false, models.NotFound()
	}
	err := s.lookUp(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), `SELECT `+integrations.IntegrationColumns+`, `+store.Fill(access.UsableIntegration, "i", "i", "o", "o", "p", "p")+` AS usable
			FROM integrations i JOIN identities n ON n.id = i.id
			JOIN organizations o ON o.id = i.organization_id JOIN plans p ON p.organization_id = o.id
			WHERE i.id = $1 AND i.organization_id = $2 AND i.deleted_at IS NULL`, id, actor.OrganizationID)
		access.QueueMayManage(pipeline, actor)
		return nil
	})
	return found.IntegrationRecord, found.Usable, err
}

// visibleEvent finds the record of an event or a delivery. A delivery is one of the
// organization's addresses, an event one of its records.
func (s *Pages) visibleEvent(ctx context.Context, actor store.Actor, integrationID string, answer *Visibility) error {
	var events []struct {
		RecordID string
		Type     models.EventType
	}
	sql := `SELECT record_id, type FROM events WHERE id = $1 AND $2 <> '' LIMIT 1`
	if models.IsID(answer.ID, models.PrefixDelivery) {
		sql = `SELECT d.record_id, e.type FROM (SELECT * FROM all_deliveries WHERE id = $1 LIMIT 1) d
			CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
			JOIN webhooks h ON h.id = d.webhook_id AND h.organization_id = $2`
	}
	err := s.lookUp(ctx, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &events, sql, answer.ID, actor.OrganizationID)
		store.QueueAll(pipeline, &answer.Addresses, `SELECT id, url, events, enabled FROM webhooks WHERE integration_id = $1 ORDER BY id`, integrationID)
		return nil
	})
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return errUnknownRecord()
	}
	answer.RecordID, answer.EventType = events[0].RecordID, events[0].Type
	return nil
}

// ways returns how permissions can allow reading the record, and what each lacks.
func (r visibleRecord) ways(kind VisibleKind, integrationID string, nodes []WayNode) []VisibleWay {
	switch kind {
	case VisibleWorkOrder:
		return []VisibleWay{
			r.onNode(r.ByNode, models.GrantWorkOrdersRead, nodes),
			r.created(integrationID, nodes),
			r.assigned(),
		}
	case VisibleFeedback:
		return []VisibleWay{r.onNode(r.ByNode, models.GrantFeedbackRead, nodes)}
	case VisibleNode:
		return []VisibleWay{r.onNode(r.ByNode, "", nodes)}
	case VisibleForm, VisiblePerson:
	}
	return nil
}

func (r visibleRecord) onNode(met bool, grant models.Grant, nodes []WayNode) VisibleWay {
	way := VisibleWay{Kind: WayOnNode, Met: met, Grant: grant, Nodes: nodes}
	if !met {
		way.Missing = r.missingOnNode(grant, nodes)
	}
	return way
}

// missingOnNode returns why the assignments do not give the grant, "" if one does.
func (r visibleRecord) missingOnNode(grant models.Grant, nodes []WayNode) MissingPart {
	gives := func(n WayNode) bool {
		return len(n.Grants) > 0 && (grant == "" || slices.Contains(n.Grants, grant))
	}
	switch {
	case !r.Ours:
		return MissingOtherOwner
	case len(nodes) == 0:
		return MissingAssignment
	case slices.ContainsFunc(nodes, gives):
		return MissingBelow
	}
	return MissingGrant
}

func (r visibleRecord) created(integrationID string, nodes []WayNode) VisibleWay {
	way := VisibleWay{Kind: WayCreated, Met: r.ByCreated, Grant: models.GrantWorkOrdersCreate}
	switch {
	case way.Met:
	case r.CreatedBy != integrationID:
		way.Missing = MissingCreator
	default:
		way.Missing, way.Nodes = r.missingOnNode(models.GrantWorkOrdersCreate, nodes), nodes
	}
	return way
}

func (r visibleRecord) assigned() VisibleWay {
	way := VisibleWay{Kind: WayAssigned, Met: r.ByAssignment}
	switch {
	case way.Met:
	case r.AssignedToOurs:
		way.Missing = MissingIncoming
	default:
		way.Missing = MissingWorker
	}
	return way
}
