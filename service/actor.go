package service

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Actor is who acts: an integration through the API, a person in the app, or an
// operator of the service. The same rules and effects hold for all.
type Actor struct {
	// IdentityID is empty for an operator.
	IdentityID     string
	OrganizationID string
	Kind           models.IdentityKind
	Name           string
	// ShowPeople says whether records name the people in them: people:read for
	// an integration, always for a person.
	ShowPeople bool
	// prefetch is what its call is known to read, nil for nothing.
	prefetch *prefetch
}

// operatorName is how the activity log names an operator.
const operatorName = "Millwright"

// Operator is who runs the service and acts from its command line: no identity
// of an organization, allowed to look after its integrations, not to touch its records.
func Operator() Actor { return Actor{Name: operatorName} }

// isOperator reports whether the actor is an operator.
func (a Actor) isOperator() bool { return a.IdentityID == "" && a.Name == operatorName }

// LogName is how the activity log names the actor (spec section 1): an
// integration with "(API)" behind its name.
func (a Actor) LogName() string {
	if a.Kind == models.KindIntegration {
		return a.Name + " (API)"
	}
	return a.Name
}

// PersonActor returns the person of the identity id or e-mail address as an actor.
// Errors: not_found (also when an e-mail address belongs to several), unavailable.
func (s *Service) PersonActor(ctx context.Context, reference string) (Actor, error) {
	if !models.IsText(reference) {
		return Actor{}, models.NotFound()
	}
	rows, err := s.pool.Query(ctx, `
		SELECT p.id AS identity_id, p.organization_id, i.kind, i.name, true AS show_people
		FROM people p JOIN identities i ON i.id = p.id
		WHERE p.id = $1 OR lower(p.email) = $2`, reference, strings.ToLower(reference))
	if err != nil {
		return Actor{}, s.translate(err)
	}
	actor, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Actor])
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTooManyRows) {
		return Actor{}, models.NotFound()
	}
	return actor, s.translate(err)
}
