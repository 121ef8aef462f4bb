package pages

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
	"millwright/service/webhooks"
)

// Visibility is whether an integration may read a record, as its scopes ∩ its permissions
// (api.md 5.6), with the reasons.
type Visibility struct {
	// RecordID is the record that was asked for, or that the event or the delivery is of.
	RecordID string
	Kind     VisibleKind
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
	// EventType is the type of an event or a delivery.
	EventType models.EventType
	Addresses []VisibleAddress
}

// IntegrationSight is whether an integration may read a record, with the latest delivery of it.
type IntegrationSight struct {
	Visibility
	IntegrationID, Integration string
	// Latest is nil if no delivery of the record is stored.
	Latest *webhooks.DeliveryItem
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

// WayNode is an assignment of the integration at the node of a record or above it.
type WayNode struct {
	ReaderID string
	// Name is the node's, "" if the person who asks sees neither the node nor the record.
	Name, Definition string
	AppliesBelow     bool
	Depth            int
	Grants           []models.Grant
	// Seen is whether the person sees the node.
	Seen bool
}

// VisibleAddress is an address of the integration.
type VisibleAddress struct {
	IntegrationID, URL string
	Events             []models.EventType
	Enabled            bool
}

// Subscribed reports whether the address gets events of the type.
func (a VisibleAddress) Subscribed(t models.EventType) bool { return slices.Contains(a.Events, t) }

// visibleRecord is what the answer for an integration depends on.
type visibleRecord struct {
	ReaderID          string
	NodeID, CreatedBy string
	Readable          bool
	ByNode, ByCreated bool
	ByAssignment      bool
	// Ours is whether the record is of the integration's organization, AssignedToOurs whether
	// it is assigned to the organization.
	Ours, AssignedToOurs bool
}

// visibleQueries read the record $1 for each of the integrations $2 of the organization $3.
var visibleQueries = map[VisibleKind]string{
	VisibleWorkOrder: visibleTo("work_orders", `w.inventory_id AS node_id, w.created_by, `+access.ReadableWorkOrder("w", "reader.id")+` AS readable,
		`+access.OnNode(models.GrantWorkOrdersRead, "w.inventory_id", "reader.id")+` AS by_node, `+access.CreatedReadably("w", "reader.id", access.OnNode(models.GrantWorkOrdersCreate, "w.inventory_id", "reader.id"))+` AS by_created, `+access.ReadableByAssignment("w", "reader.id")+` AS by_assignment,
		w.organization_id = $3 AS ours,
		EXISTS (SELECT FROM work_order_assignees x WHERE x.work_order_id = w.id AND x.identity_id = $3)
			AND `+access.RelationHolds("$3", "w.id")+` AS assigned_to_ours`),
	VisibleFeedback: visibleTo("feedback", `w.inventory_id AS node_id, w.created_by, `+access.ReadableFeedback("w", "reader.id")+` AS readable,
		`+access.ReadableFeedback("w", "reader.id")+` AS by_node, false AS by_created, false AS by_assignment, w.organization_id = $3 AS ours, false AS assigned_to_ours`),
	VisibleNode: visibleTo("inventory_nodes", `w.id AS node_id, '' AS created_by, coalesce(`+access.VisibleNode("w.id", "reader.id")+`, false) AS readable,
		coalesce(`+access.VisibleNode("w.id", "reader.id")+`, false) AS by_node, false AS by_created, false AS by_assignment, w.organization_id = $3 AS ours, false AS assigned_to_ours`),
	VisibleForm:   visibleTo("forms", ofScopeAlone),
	VisiblePerson: visibleTo("identities", ofScopeAlone) + ` WHERE w.kind IN ('person', 'team') AND w.deleted_at IS NULL`,
}

// ofScopeAlone are the columns of records that the scope alone opens.
const ofScopeAlone = `'' AS node_id, '' AS created_by, w.organization_id = $3 AS readable, false AS by_node, false AS by_created, false AS by_assignment,
		w.organization_id = $3 AS ours, false AS assigned_to_ours`

// visibleTo selects columns of the row w of the table for each reader.
func visibleTo(table, columns string) string {
	return `SELECT reader.id AS reader_id, ` + columns + `
		FROM unnest($2::text[]) reader (id) CROSS JOIN LATERAL (SELECT * FROM ` + table + ` WHERE id = $1 LIMIT 1) w`
}

// wayNodesQueries read the assignments of the integrations $2 at the node of the record $1 and above,
// by distance, and whether the person $3 of the organization $4 sees each. An assignment may give no grant
// there.
var wayNodesQueries = map[VisibleKind]string{
	VisibleWorkOrder: wayNodesQuery("(SELECT inventory_id FROM work_orders WHERE id = $1)"),
	VisibleFeedback:  wayNodesQuery("(SELECT inventory_id FROM feedback WHERE id = $1)"),
	VisibleNode:      wayNodesQuery("$1"),
}

func wayNodesQuery(node string) string {
	return `
	SELECT a.actor_id AS reader_id, v.name, d.name AS definition, d.applies_below, c.depth, d.grants,
		` + access.PersonSees("v.id", "$3", "$4") + ` AS seen
	FROM inventory_closure c
	CROSS JOIN LATERAL (SELECT id, name FROM inventory_nodes WHERE id = c.ancestor_id LIMIT 1) v
	JOIN assignments g ON g.node_id = c.ancestor_id
	JOIN actor_identities a ON a.actor_id = ANY ($2) AND a.identity_id = g.identity_id AND a.organization_id = g.organization_id
	JOIN permission_definitions d ON d.id = g.definition_id
	WHERE c.node_id = ` + node + `
	ORDER BY c.depth, d.id`
}

// visibleScopes are what reading a kind of record takes.
var visibleScopes = map[VisibleKind]models.Scope{
	VisibleWorkOrder: models.ScopeWorkOrdersRead, VisibleFeedback: models.ScopeIssuesRead, VisibleNode: models.ScopeInventoryRead,
	VisibleForm: models.ScopeFormsRead, VisiblePerson: models.ScopePeopleRead,
}

// visibleKind returns the kind of record that the id names, "" for other ids.
func visibleKind(id string) VisibleKind {
	for kind, prefixes := range map[VisibleKind][]models.IDPrefix{
		VisibleWorkOrder: {models.PrefixWorkOrder}, VisibleFeedback: {models.PrefixFeedback},
		VisibleNode: {models.PrefixLocation, models.PrefixSystem, models.PrefixEquipment, models.PrefixSubEquipment},
		VisibleForm: {models.PrefixForm}, VisiblePerson: {models.PrefixIdentity},
	} {
		if models.IsID(id, prefixes...) {
			return kind
		}
	}
	return ""
}

// CanSee answers whether an integration of the actor's organization may read the record with
// the id: a work order, feedback, a node, a form, a person, a team, or that of an event or a
// delivery. It shows nothing of a record that the integration may not read, except that it
// exists in the organization. Errors: not_found (no such integration), validation_failed
// with the pointer /id (no such record, or another organization's), permission_denied,
// unavailable.
func (s *Pages) CanSee(ctx context.Context, actor store.Actor, integrationID, id string) (Visibility, error) {
	if !models.IsID(integrationID, models.PrefixIdentity) {
		return Visibility{}, models.NotFound()
	}
	l := look{actor: actor, integrationID: integrationID, id: id}
	sights, err := s.look(ctx, &l)
	if err != nil {
		return Visibility{}, err
	}
	// Another organization's record is unknown, unless it is assigned to this one.
	if record := l.record(integrationID); !record.Ours && !record.Readable && !record.AssignedToOurs {
		return Visibility{}, errUnknownRecord()
	}
	return sights[0].Visibility, nil
}

// MaxSights limits the integrations that WhoSees answers for.
const MaxSights = 100

// WhoSees is CanSee for all integrations of the actor's organization, at most MaxSights, by name,
// about a work order or feedback that the actor may read. Errors: not_found, permission_denied, unavailable.
func (s *Pages) WhoSees(ctx context.Context, actor store.Actor, recordID string) ([]IntegrationSight, error) {
	if !models.IsID(recordID, models.PrefixWorkOrder, models.PrefixFeedback) {
		return nil, models.NotFound()
	}
	l := look{actor: actor, id: recordID, latest: &webhooks.LatestDeliveries{RecordID: recordID}}
	sights, err := s.look(ctx, &l)
	if record := l.record(actor.IdentityID); err == nil && !record.Readable {
		return nil, models.NotFound()
	}
	return sights, err
}

// look is what CanSee and WhoSees read, for one integration or for all.
type look struct {
	actor             store.Actor
	integrationID, id string
	// latest is nil if no deliveries are asked for.
	latest *webhooks.LatestDeliveries

	integrations []struct {
		ID, Name string
		Scopes   []string
		Usable   bool
	}
	addresses []VisibleAddress
	// events has the event or the delivery that the id names.
	events []struct {
		RecordID string
		Type     models.EventType
	}
	records []visibleRecord
	nodes   []WayNode
}

// look reads in two round trips, and answers for each integration. Errors: not_found,
// validation_failed (no such record), permission_denied, unavailable.
func (s *Pages) look(ctx context.Context, l *look) ([]IntegrationSight, error) {
	return store.ReadInRounds(ctx, s.Store, l.actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		l.queueIntegrations(pipeline)
		if l.latest != nil {
			l.latest.QueueChanges(pipeline, s.Now())
		}
		return nil
	}, func(pipeline *pgx.Batch) error {
		if l.integrationID != "" && len(l.integrations) == 0 {
			return models.NotFound()
		}
		answer := l.answer()
		if answer.Kind == "" {
			return errUnknownRecord()
		}
		readers := []string{l.actor.IdentityID}
		for _, i := range l.integrations {
			readers = append(readers, i.ID)
		}
		store.QueueAll(pipeline, &l.records, visibleQueries[answer.Kind], answer.RecordID, readers, l.actor.OrganizationID)
		if sql, some := wayNodesQueries[answer.Kind]; some {
			store.QueueAll(pipeline, &l.nodes, sql, answer.RecordID, readers, l.actor.IdentityID, l.actor.OrganizationID)
		}
		if l.latest != nil {
			l.latest.QueueDeliveries(pipeline, l.actor.OrganizationID)
		}
		return nil
	}}, l.sights)
}

// queueIntegrations adds the queries of the integrations with their addresses, and of the record
// of an event or a delivery. A delivery is one of the organization's addresses, an event one of
// its records.
func (l *look) queueIntegrations(pipeline *pgx.Batch) {
	args := []any{l.actor.OrganizationID, l.integrationID}
	store.QueueAll(pipeline, &l.integrations, `SELECT i.id, n.name, i.scopes, `+access.UsableIntegration+` AS usable
		FROM integrations i JOIN identities n ON n.id = i.id
		JOIN organizations o ON o.id = i.organization_id JOIN plans p ON p.organization_id = o.id
		WHERE i.organization_id = $1 AND i.deleted_at IS NULL AND ($2 = '' OR i.id = $2) ORDER BY n.sort_key, i.id LIMIT $3`, append(args, MaxSights)...)
	store.QueueAll(pipeline, &l.addresses, `SELECT integration_id, url, events, enabled FROM webhooks
		WHERE organization_id = $1 AND ($2 = '' OR integration_id = $2) ORDER BY id`, args...)
	switch {
	case models.IsID(l.id, models.PrefixEvent):
		store.QueueAll(pipeline, &l.events, `SELECT record_id, type FROM events WHERE id = $1 LIMIT 1`, l.id)
	case models.IsID(l.id, models.PrefixDelivery):
		store.QueueAll(pipeline, &l.events, `SELECT d.record_id, e.type FROM (SELECT * FROM all_deliveries WHERE id = $1 LIMIT 1) d
			CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
			JOIN webhooks h ON h.id = d.webhook_id AND h.organization_id = $2`, l.id, l.actor.OrganizationID)
	}
	access.QueueMayManage(pipeline, l.actor)
}

// answer returns what an answer has in common for all integrations.
func (l *look) answer() Visibility {
	v := Visibility{RecordID: l.id}
	if len(l.events) > 0 {
		v.RecordID, v.EventType = l.events[0].RecordID, l.events[0].Type
	}
	v.Kind = visibleKind(v.RecordID)
	v.Scope = visibleScopes[v.Kind]
	return v
}

// record returns the record as the integration or person may read it, empty if unknown.
func (l *look) record(readerID string) visibleRecord {
	for _, record := range l.records {
		if record.ReaderID == readerID {
			return record
		}
	}
	return visibleRecord{}
}

// sights returns the answer for each integration.
func (l *look) sights() ([]IntegrationSight, error) {
	l.hideNames()
	var sights []IntegrationSight
	for _, i := range l.integrations {
		sight := IntegrationSight{Visibility: l.answer(), IntegrationID: i.ID, Integration: i.Name}
		record := l.record(i.ID)
		var nodes []WayNode
		if record.Ours && record.NodeID != "" {
			sight.NodeID = record.NodeID
			nodes = only(l.nodes, func(n WayNode) bool { return n.ReaderID == i.ID })
		}
		scopes, _ := models.ScopesOf(i.Scopes)
		sight.Usable, sight.ScopeHeld, sight.Permitted = i.Usable, scopes.Has(sight.Scope), record.Readable
		sight.Visible = sight.Usable && sight.ScopeHeld && sight.Permitted
		sight.Ways = record.ways(sight.Kind, i.ID, nodes)
		sight.Addresses = only(l.addresses, func(a VisibleAddress) bool { return a.IntegrationID == i.ID })
		if l.latest != nil {
			if latest := only(l.latest.Found, func(d webhooks.DeliveryItem) bool { return d.IntegrationID == i.ID }); len(latest) > 0 {
				sight.Latest = &latest[0]
			}
		}
		sights = append(sights, sight)
	}
	return sights, nil
}

// hideNames removes the names of nodes that the person does not see. Readers of a record see its
// whole path (api.md 2.8).
func (l *look) hideNames() {
	if l.answer().Kind != VisibleNode && l.record(l.actor.IdentityID).Readable {
		return
	}
	for i, n := range l.nodes {
		if !n.Seen {
			l.nodes[i].Name = ""
		}
	}
}

// only returns the elements for which is returns true.
func only[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !is(one) })
}

func errUnknownRecord() error {
	return models.Invalid(models.FieldError{Pointer: "/id", Code: "unknown", Detail: "Your organization has no record with this id."})
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
