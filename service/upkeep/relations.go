package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// lateAssignments is the time after the end of a relation within which a write that began
// before it may still assign a work order to the company.
const lateAssignments = time.Minute

// endedRelation is a former service company that may still have work orders in process.
type endedRelation struct {
	CompanyID, CustomerID, ActorID, Name, Reached string
	EndedAt                                       models.Time
	// Looked are the next work orders in process of the customer after Reached. Held are those
	// among them that the company or someone of it has.
	Looked, Held []string
}

const nextEndedRelation = `
	SELECT e.company_id, e.customer_id, e.actor_id, a.name, e.reached, e.ended_at, n.looked, n.held
	FROM ended_relations e JOIN identities a ON a.id = e.actor_id CROSS JOIN LATERAL (
		SELECT coalesce(array_agg(w.id::text ORDER BY w.id), '{}') AS looked,
			coalesce(array_agg(w.id::text ORDER BY w.id) FILTER (WHERE w.held), '{}') AS held
		FROM (SELECT w.id, EXISTS (SELECT FROM work_order_assignees x JOIN identities i ON i.id = x.identity_id
				WHERE x.work_order_id = w.id AND i.organization_id = e.company_id) AS held
			FROM unnest($2::text[]) open (status) CROSS JOIN LATERAL (
				SELECT id FROM work_orders WHERE organization_id = e.customer_id AND status = open.status AND id > e.reached ORDER BY id LIMIT $1) w
			ORDER BY w.id LIMIT $1) w) n
	WHERE e.reached IS NOT NULL ORDER BY e.ended_at DESC LIMIT 1`

// reclaimWorkOrders takes the next work orders in process back from a former service company, as
// the administrator who ended the relation. A batch that was cut short runs again: the company no
// longer has those that it changed. Errors: unavailable, and errors of work orders that no rule explains.
func reclaimWorkOrders(ctx context.Context, s *Upkeep, _, _ any, limit int) (removedBatch, error) {
	limit = min(limit, maxReplaced)
	var found []endedRelation
	err := s.Run(ctx, "", store.Lock{}, func(reading *pgx.Batch) {
		store.QueueAll(reading, &found, nextEndedRelation, limit, store.TextsOf(models.InProcess()))
	}, func(*store.Tx) error { return nil })
	if err != nil || len(found) == 0 {
		return removedBatch{}, err
	}
	next := found[0]
	actor := store.PersonActor(next.ActorID, next.CustomerID, next.Name)
	var failed error
	for _, id := range next.Held {
		err := records.ReclaimWorkOrder(ctx, s.Store, actor, id, next.CompanyID)
		switch models.CodeOf(err) {
		case models.CodeUnavailable:
			return removedBatch{}, err
		case models.CodeInternal:
			failed = errors.Join(failed, err)
		default: // done, or a rule rejects it
		}
	}
	var reached any // nil after the last pass
	more := len(next.Looked) == limit
	switch {
	case more:
		reached = next.Looked[limit-1]
	case s.CurrentTime().Before(next.EndedAt.Add(lateAssignments)):
		reached = ""
	}
	_, err = s.Pool.Exec(ctx, `UPDATE ended_relations SET reached = $3 WHERE company_id = $1 AND customer_id = $2`, next.CompanyID, next.CustomerID, reached)
	return removedBatch{More: err == nil && more}, errors.Join(failed, s.Translate(err))
}
