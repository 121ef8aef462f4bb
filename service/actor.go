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

// operates reports whether the actor is an operator.
func (a Actor) operates() bool { return a.IdentityID == "" && a.Name == operatorName }

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

// managed is an integration under the care of the one who acts, locked.
type managed struct {
	ID             string
	OrganizationID string
	// May is whether the actor may look after the organization's integrations.
	May bool
}

// looksAfter is the condition under which {actor} may look after the
// integrations of {organization}: a person with the permission for them.
const looksAfter = `EXISTS (SELECT FROM people p JOIN organization_rights r ON r.actor_id = p.id
		WHERE p.id = {actor} AND r.organization_id = {organization} AND 'integrations' = ANY (r.grants))`

func mayNotManage() *models.Error {
	return models.Errorf(models.CodePermissionDenied, "Looking after integrations takes the permission for them.")
}

var manageQuery = `
	SELECT i.id, i.organization_id, $2 OR ` + with(looksAfter, "actor", "$3", "organization", "i.organization_id") + ` AS may
	FROM integrations i
	WHERE i.id = $1 AND i.deleted_at IS NULL AND ($2 OR i.organization_id = $4)
	FOR NO KEY UPDATE OF i`

// manage locks the integration for the actor, who must be an operator or a
// person of its organization with the permission for integrations; integrations
// do not look after integrations. Errors: not_found (unknown, deleted, or
// another organization's), permission_denied, unavailable.
func (t *tx) manage(ctx context.Context, actor Actor, integrationID string) (managed, error) {
	var found managed
	queueOne(t, &found, models.NotFound(), manageQuery, integrationID, actor.operates(), actor.IdentityID, actor.OrganizationID)
	if err := t.flush(ctx); err != nil {
		return found, err
	}
	if !found.May {
		return found, mayNotManage()
	}
	return found, nil
}
