package access

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// PersonActor returns the person with the identity id or e-mail address as an actor.
// Errors: not_found (including an e-mail address of several people, and someone who was
// deactivated), unavailable.
func (s *Access) PersonActor(ctx context.Context, reference string) (store.Actor, error) {
	if !models.IsText(reference) {
		return store.Actor{}, models.NotFound()
	}
	return s.person(ctx, `p.id = $1 OR p.folded_email = $2`, reference, models.Fold(reference))
}

// OperatorAs returns the person with the identity id as an actor for an operator who
// acts on the record: a person of the record's organization. Errors: not_found, with a
// sentence for the operator, unavailable.
func (s *Access) OperatorAs(ctx context.Context, personID, recordID string) (store.Actor, error) {
	actor, err := s.person(ctx, `p.id = $1 AND p.organization_id = (
			SELECT w.organization_id FROM work_orders w WHERE w.id = $2
			UNION ALL SELECT f.organization_id FROM feedback f WHERE f.id = $2)`, personID, recordID)
	if models.CodeOf(err) == models.CodeNotFound {
		return store.Actor{}, models.Errorf(models.CodeNotFound, "The record's organization has no person with the identity id %s.", personID)
	}
	actor.Operated = true
	return actor, err
}

// person returns the only person that the condition selects.
func (s *Access) person(ctx context.Context, condition string, args ...any) (store.Actor, error) {
	rows, err := s.Pool.Query(ctx, `
		SELECT p.id AS identity_id, p.organization_id, i.kind, i.name, true AS show_people
		FROM people p JOIN identities i ON i.id = p.id
		WHERE p.deactivated_at IS NULL AND (`+condition+`)`, args...)
	if err != nil {
		return store.Actor{}, s.Translate(err)
	}
	actor, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[store.Actor])
	if errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTooManyRows) {
		return store.Actor{}, models.NotFound()
	}
	return actor, s.Translate(err)
}
