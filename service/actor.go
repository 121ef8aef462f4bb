package service

import "millwright/models"

// Actor is who acts: an integration through the API, or a person in the app.
// The same rules and effects hold for both.
type Actor struct {
	IdentityID     string
	OrganizationID string
	Kind           models.IdentityKind
	Name           string
	// ShowPeople says whether records name the people in them: people:read for
	// an integration.
	ShowPeople bool
}

// LogName is how the activity log names the actor (spec section 1): an
// integration with "(API)" behind its name.
func (a Actor) LogName() string {
	if a.Kind == models.KindIntegration {
		return a.Name + " (API)"
	}
	return a.Name
}
