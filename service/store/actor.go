package store

import "millwright/models"

// Actor performs an action: an integration through the API, a person in the console, or
// an operator of the service. The same rules and effects apply to all.
type Actor struct {
	// IdentityID is empty for an operator.
	IdentityID     string
	OrganizationID string
	Kind           models.IdentityKind
	Name           string
	// ShowPeople is true if records name the people in them: for integrations with
	// the scope people:read, and for people.
	ShowPeople bool
	// ReadsWorkOrders and ReadsFeedback are true if an integration's token has work_orders:read and
	// issues:read.
	ReadsWorkOrders, ReadsFeedback bool `db:"-"`
	// Operated is true if an operator acts as the person, by a command or in Temporal.
	Operated bool `db:"-"`
}

// Operator returns the operator of the service, who acts from the command line. It
// has no identity in an organization, may manage integrations and may not change records.
func Operator() Actor { return Actor{Name: models.OperatorName} }

// OperatorIn returns the operator who reads the records of an organization, of which all
// are visible and show no people.
func OperatorIn(organizationID string) Actor {
	return Actor{Name: models.OperatorName, OrganizationID: organizationID}
}

// IsReader reports whether the actor is the person who reads the errors: no integration, and no person as whom an
// operator acts.
func (a Actor) IsReader() bool { return a.Kind == models.KindPerson && !a.Operated }

// MayNot is permission_denied for what the actor's permissions on a node do not include. what follows "may not".
func (a Actor) MayNot(what string) *models.Error {
	if a.IsReader() {
		return models.Errorf(models.CodePermissionDenied, "You may not %s on this place.", what)
	}
	return models.Errorf(models.CodePermissionDenied, "The %s may not %s on this node.", a.Kind, what)
}

// Import returns the actor of an import, who has no identity and is no operator.
func Import() Actor { return Actor{Name: models.ImportName} }

// PersonActor returns a person as an actor.
func PersonActor(id, organizationID, name string) Actor {
	return Actor{IdentityID: id, OrganizationID: organizationID, Kind: models.KindPerson, Name: name, ShowPeople: true}
}

// IsOperator reports whether the actor is an operator.
func (a Actor) IsOperator() bool { return a.IdentityID == "" && a.Name == models.OperatorName }

// HasReadScope reports whether the actor's token has the scope for reading the work order or the
// feedback with the id; others than integrations need none.
func (a Actor) HasReadScope(id string) bool {
	return a.Kind != models.KindIntegration || a.ReadsWorkOrders && models.IsID(id, models.PrefixWorkOrder) || a.ReadsFeedback && models.IsID(id, models.PrefixFeedback)
}

// LogName is the actor's name in Log Records. Integrations have "(API)" after their
// name and people as whom an operator
// acts "(operator)" (api.md 1.5).
func (a Actor) LogName() string {
	switch {
	case a.Kind == models.KindIntegration:
		return a.Name + models.APISuffix
	case a.Operated:
		return a.Name + models.OperatorSuffix
	}
	return a.Name
}

// ActorNow is SQL for the present name of the identity i that differs from its name in a Log
// Record (LogName), NULL if it does not.
func ActorNow(name string) string {
	return `CASE WHEN ` + name + ` NOT IN (i.name, i.name || '` + models.APISuffix + `', i.name || '` + models.OperatorSuffix + `') THEN i.name END`
}

// NewLogEntry returns the Log Record of what the actor did. Operators are no
// identity of an organization, so they are logged by name alone.
func NewLogEntry(actor Actor, organizationID, action, recordID string, at models.Time) *models.LogEntry {
	row := &models.LogEntry{
		OrganizationID: organizationID, ActorName: actor.LogName(), Action: action, RecordID: recordID, CreatedAt: at,
	}
	if actor.IdentityID != "" {
		row.ActorID = &actor.IdentityID
	}
	return row
}
