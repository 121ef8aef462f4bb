package upkeep

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// maxReplaced limits the work orders of one batch: each takes a transaction.
const maxReplaced = 100

// waitingReplacement is a person who was deactivated and is to be replaced on open work orders.
type waitingReplacement struct {
	PersonID, ReplacedBy, Reached string
	ActorID, OrganizationID, Name string
	Operated                      bool
	// Open are the next work orders in process of the person after Reached.
	Open []string
}

const nextReplacement = `
	SELECT w.identity_id AS person_id, w.replaced_by, w.reached, w.operated, w.actor_id, a.organization_id, a.name, n.open
	FROM inactivated_identities w JOIN identities a ON a.id = w.actor_id CROSS JOIN LATERAL (
		SELECT coalesce(array_agg(x.work_order_id::text ORDER BY x.work_order_id), '{}') AS open
		FROM (SELECT work_order_id FROM work_order_assignees
			WHERE identity_id = w.identity_id AND NOT closed AND work_order_id > w.reached
			ORDER BY work_order_id LIMIT $1) x) n
	WHERE w.replaced_by IS NOT NULL ORDER BY w.identity_id LIMIT 1`

// replaceOnWorkOrders replaces a person who was deactivated on the next open work orders, as the
// person who decided it and by the rules of an assignment. Work orders that the rules reject
// stay as they are, and markWorkOfInactivated looks at them after the last one. A batch that was
// cut short runs again: the person is no longer assigned to the work orders that it changed.
// Errors: unavailable, and errors of work orders that no rule explains.
func replaceOnWorkOrders(ctx context.Context, s *Upkeep, _, _ any, limit int) (removedBatch, error) {
	limit = min(limit, maxReplaced)
	var found []waitingReplacement
	err := s.Run(ctx, "", store.Lock{}, func(reading *pgx.Batch) {
		store.QueueAll(reading, &found, nextReplacement, limit)
	}, func(*store.Tx) error { return nil })
	if err != nil || len(found) == 0 {
		return removedBatch{}, err
	}
	next := found[0]
	// Who deactivated the person, even if deactivated since then.
	actor := store.PersonActor(next.ActorID, next.OrganizationID, next.Name)
	actor.Operated = next.Operated
	var failed error
	for _, id := range next.Open {
		err := records.ReplaceAssignee(ctx, s.Store, actor, id, next.PersonID, next.ReplacedBy)
		switch models.CodeOf(err) {
		case models.CodeUnavailable:
			return removedBatch{}, err
		case models.CodeInternal:
			failed = errors.Join(failed, err)
		default: // done, or a rule rejects it
		}
	}
	if len(next.Open) < limit {
		_, err = s.Pool.Exec(ctx, `UPDATE inactivated_identities SET reached = '', replaced_by = NULL WHERE identity_id = $1 AND replaced_by = $2 AND reached = $3`,
			next.PersonID, next.ReplacedBy, next.Reached)
	} else {
		_, err = s.Pool.Exec(ctx, `UPDATE inactivated_identities SET reached = $4 WHERE identity_id = $1 AND replaced_by = $2 AND reached = $3`,
			next.PersonID, next.ReplacedBy, next.Reached, next.Open[limit-1])
	}
	return removedBatch{More: err == nil}, errors.Join(failed, s.Translate(err))
}
