package webhooks

import (
	"time"

	"millwright/models"
	"millwright/service/people"
)

// pingMessage is the message of a test delivery.
const pingMessage = "This is a test from Millwright."

// pingData is the data of a ping.
type pingData struct {
	Message string `json:"message"`
}

// exampleData returns the data of a realistic event of the type for an address. Its record
// is made up, with new ids: no GET finds it.
func (s *Webhooks) exampleData(kind models.EventType, address addressRow) (any, error) {
	if kind == models.EventPing {
		return pingData{pingMessage}, nil
	}
	made, err := s.madeUp(address)
	if err != nil {
		return nil, err
	}
	data := eventData{Actor: eventActor{IdentityID: made.integration.IdentityID}}
	switch kind {
	case models.EventIssueResolved: // only people resolve feedback
		data.Actor = eventActor{IdentityID: made.ann.IdentityID, UserID: made.ann.IdentityID}
		data.Issue = made.issue(kind)
	case models.EventIssueCreated:
		data.Issue = made.issue(kind)
	default:
		data.ownData, data.WorkOrder = made.ownData(kind), made.workOrder(kind)
	}
	return data, nil
}

// ownData is what the event of a work order has besides the record.
func (m madeUp) ownData(kind models.EventType) (own ownData) {
	own.PreviousStatus, own.Status = statusesOf(kind)
	switch kind { //nolint:exhaustive // the others have no more
	case models.EventWorkOrderUpdated:
		own.Fields = []string{"title", "priority"}
	case models.EventWorkOrderAssigneesChanged:
		own.Added = &people.Roles{Assignees: []string{m.bob.IdentityID}, Consultants: []string{}}
		own.Removed = &people.Roles{Assignees: []string{}, Consultants: []string{}}
	}
	return own
}

// statusesOf returns the statuses before and after a change of status, "" for other events.
func statusesOf(kind models.EventType) (from, to models.WorkOrderStatus) {
	switch kind { //nolint:exhaustive // the others change no status
	case models.EventWorkOrderStatusChanged:
		return models.StatusOpen, models.StatusInProgress
	case models.EventWorkOrderCompleted:
		return models.StatusInProgress, models.StatusComplete
	case models.EventWorkOrderSentToInspection:
		return models.StatusInProgress, models.StatusSentToInspection
	case models.EventWorkOrderCancelled:
		return models.StatusOpen, models.StatusCancelled
	}
	return "", ""
}

// madeUp are the parts of a made-up record.
type madeUp struct {
	recordID, issueID, location, unit string
	organizationID                    string
	integration, ann, bob             models.NamedIdentity
	created, changed                  models.Time
	showPeople                        bool
}

func (s *Webhooks) madeUp(address addressRow) (madeUp, error) {
	m := madeUp{
		organizationID: address.OrganizationID, created: models.TimeOf(s.CurrentTime().Add(-30 * time.Minute)), changed: s.CurrentTime(),
		showPeople:  address.ShowPeople,
		integration: models.NamedIdentity{Kind: models.KindIntegration, Name: "ERP"},
		ann:         models.NamedIdentity{Kind: models.KindPerson, Name: "Ann Example", Email: new("ann@example.com"), Phone: new("+12025550101")},
		bob:         models.NamedIdentity{Kind: models.KindPerson, Name: "Bob Example", Email: new("bob@example.com")},
	}
	for _, made := range []struct {
		id     *string
		prefix models.IDPrefix
	}{
		{&m.recordID, models.PrefixWorkOrder}, {&m.issueID, models.PrefixFeedback}, {&m.location, models.PrefixLocation}, {&m.unit, models.PrefixEquipment},
		{&m.integration.IdentityID, models.PrefixIdentity}, {&m.ann.IdentityID, models.PrefixIdentity}, {&m.bob.IdentityID, models.PrefixIdentity},
	} {
		var err error
		if *made.id, err = s.NewID(made.prefix); err != nil {
			return madeUp{}, err
		}
	}
	return m, nil
}

func (m madeUp) node() models.NodeReference {
	return models.NodeReference{
		ID: m.unit, Kind: models.NodeEquipment, Name: "AHU 1", ExternalID: new("AHU-1"),
		Path: []models.PathNode{{ID: m.location, Kind: models.NodeLocation, Name: "Headquarters"}},
	}
}

// workOrder is the work order after the event.
func (m madeUp) workOrder(kind models.EventType) *models.WorkOrderRecord {
	target := models.TimeOf(m.created.AddDate(0, 0, 3))
	r := &models.WorkOrderRecord{
		ID: m.recordID, OrganizationID: m.organizationID, Number: 1042, InventoryID: m.unit, Inventory: m.node(),
		Title: "Replace filter", Description: new("The pressure drop is above the limit."), Priority: models.PriorityMedium,
		TargetDate: &target, Assignees: []string{m.bob.IdentityID}, Consultants: []string{}, ExternalID: new("ERP-7781"),
		CreatedBy: m.integration.IdentityID, CreatedAt: m.created, ChangedAt: m.changed,
	}
	_, status := statusesOf(kind)
	if status == "" {
		status = models.StatusOpen
	}
	r.Status = models.Status{Code: string(status), Name: status.Name()}
	named := []models.NamedIdentity{m.integration, m.bob}
	switch kind { //nolint:exhaustive // the others change no other field
	case models.EventWorkOrderCreated:
		r.ChangedAt = m.created
	case models.EventWorkOrderUpdated:
		r.Title, r.Priority = "Replace both filters", models.PriorityHigh
	case models.EventWorkOrderCompleted:
		r.CompletedAt = &r.ChangedAt
	case models.EventWorkOrderSentToInspection:
		r.Consultants, named = []string{m.ann.IdentityID}, append(named, m.ann)
	case models.EventWorkOrderCancelled:
		r.CancelledAt, r.CancelReason = &r.ChangedAt, new("Duplicate of number 1041")
	}
	if m.showPeople {
		r.People = named
	}
	return r
}

// issue is the feedback after the event.
func (m madeUp) issue(kind models.EventType) *models.FeedbackRecord {
	open := models.FeedbackOpen
	r := &models.FeedbackRecord{
		ID: m.issueID, OrganizationID: m.organizationID, InventoryID: m.unit, Inventory: m.node(),
		Subject: "The fan rattles", Description: new("Since this morning."), ExternalID: new("DESK-19"),
		Status: models.Status{Code: string(open), Name: open.Name()}, CreatedBy: m.integration.IdentityID, CreatedAt: m.created, ChangedAt: m.created,
	}
	if kind == models.EventIssueResolved {
		resolved := models.FeedbackResolved
		r.Status, r.ChangedAt = models.Status{Code: string(resolved), Name: resolved.Name()}, m.changed
		r.ResolvedAt = &r.ChangedAt
	}
	if m.showPeople {
		r.People = []models.NamedIdentity{m.integration}
	}
	return r
}
