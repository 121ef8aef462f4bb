package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/effects"
	"millwright/service/store"
)

// Remind inserts the reminder's notices, one for each person even if it is called
// again: about the target date for the work order's workers, about a waiting review for
// its consultants, and about an overdue one, or work that no one can do, for the nearest
// inventory managers of its node, without any for the administrators. It reports whether the
// reminder still applies; if not, because a wake was lost, no one is notified. Errors: unavailable.
func (s *Records) Remind(ctx context.Context, id string, due models.Reminder) (applied bool, err error) {
	var found []WorkOrderState
	err = s.Run(ctx, id, store.Lock{Table: "work_orders", ID: id}, func(reading *pgx.Batch) {
		store.QueueAll(reading, &found, workOrderStateQuery, pgx.NamedArgs{"id": id})
	}, func(t *store.Tx) error {
		applied = false
		for _, state := range found { // at most one
			now, runs := state.Dates.Reminder(due.Clock, t.At)
			if applied = runs && now.Is(due.Kind, due.About); applied {
				remind(t, id, now)
			}
		}
		return nil
	})
	return applied, err
}

// reminded selects the people whom a reminder of the work order @id is for: those with
// the @role or, if that is empty, its nearest inventory managers or the administrators. Who
// completed the work does not review it.
var reminded = `
	SELECT p.id, p.organization_id
	FROM (SELECT CASE WHEN @role::text <> '' THEN
			` + assignedIn("w.id", "x.role = @role::text") + `
			ELSE ` + managersOrAdmins("w.inventory_id", "w.organization_id") + `
		END FROM work_orders w WHERE w.id = @id::text) whom (identities)
	CROSS JOIN LATERAL (` + effects.PeopleOf("whom.identities") + `) p
	WHERE @role::text <> 'consultant' OR p.id IS DISTINCT FROM (SELECT completed_by FROM work_orders WHERE id = @id::text)`

// remind queues a notice for each person the reminder is for, in the order of ids:
// two calls that insert the same rows then cannot deadlock.
func remind(t *store.Tx, id string, reminder models.Reminder) {
	t.QueueRows(effects.WakeMail(t), `
		INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, about)
		SELECT p.organization_id, p.id, @kind, @id::text, @at, @about
		FROM (`+reminded+`) p
		ORDER BY p.id
		ON CONFLICT (record_id, person_id, kind, about) WHERE about IS NOT NULL DO NOTHING RETURNING organization_id`,
		pgx.NamedArgs{"id": id, "role": reminder.Role(), "kind": reminder.Kind, "at": t.At, "about": reminder.About})
}
