package service

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Actor performs an action: an integration through the API, a person in the app, or
// an operator of the service. The same rules and effects apply to all.
type Actor struct {
	// IdentityID is empty for an operator.
	IdentityID     string
	OrganizationID string
	Kind           models.IdentityKind
	Name           string
	// ShowPeople says whether records name the people in them: for integrations with
	// the scope people:read, and for people.
	ShowPeople bool
	// prefetch is the record that its call reads, if known before the call is admitted.
	prefetch *prefetch
}

// operatorName is the name of an operator in Log Records.
const operatorName = "Millwright"

// Operator returns the operator of the service, who acts from the command line. It
// has no identity in an organization, may manage integrations and may not change records.
func Operator() Actor { return Actor{Name: operatorName} }

// isOperator reports whether the actor is an operator.
func (a Actor) isOperator() bool { return a.IdentityID == "" && a.Name == operatorName }

// LogName is the actor's name in Log Records. Integrations have "(API)" after their
// name (spec section 1).
func (a Actor) LogName() string {
	if a.Kind == models.KindIntegration {
		return a.Name + " (API)"
	}
	return a.Name
}

// PersonActor returns the person with the identity id or e-mail address as an actor.
// Errors: not_found (including an e-mail address of several people), unavailable.
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
