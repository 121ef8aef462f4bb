package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// historyQuery adds the number to the creation of a work order. It never changes, so the history does
// not store it.
const historyQuery = `
	SELECT h.record_id, h.organization_id, h.actor_id, i.kind AS actor_kind,
		CASE WHEN $2::boolean OR i.kind <> 'person' THEN i.name END AS actor_name, h.action, h.created_at AS at,
		CASE WHEN w.id IS NULL THEN h.changes
			ELSE h.changes || jsonb_build_object('number', jsonb_build_object('from', NULL, 'to', w.number)) END AS changes
	FROM history h
	JOIN identities i ON i.id = h.actor_id
	LEFT JOIN work_orders w ON w.id = h.record_id AND h.action = 'work_order.created'
	WHERE h.record_id = $1 ORDER BY h.id`

var readableQuery = `SELECT ` + access.ReadsRecord("$1", "$2")

// History returns every change of a work order or feedback that the actor may read,
// oldest first. models.Rebuild makes a work order's earlier states from it.
// People are named if records name them to the actor (Actor.ShowPeople). Errors:
// not_found, unavailable.
func (s *Records) History(ctx context.Context, actor store.Actor, id string) ([]models.HistoryEntry, error) {
	var readable bool
	var entries []models.HistoryEntry
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &entries, historyQuery, id, actor.ShowPeople)
		return queueReadable(pipeline, &readable, actor, id)
	}, func() ([]models.HistoryEntry, error) {
		if !readable {
			return nil, models.NotFound()
		}
		return entries, nil
	})
}

// queueReadable adds the query whether the actor may read the work order or feedback, which
// stays false for one that does not exist. Errors: not_found if the id is of no such record.
func queueReadable(pipeline *pgx.Batch, into *bool, actor store.Actor, id string) error {
	if !models.IsID(id, models.PrefixWorkOrder, models.PrefixFeedback) {
		return models.NotFound()
	}
	pipeline.Queue(readableQuery, id, actor.IdentityID).QueryRow(func(row pgx.Row) error { return row.Scan(into) })
	return nil
}
