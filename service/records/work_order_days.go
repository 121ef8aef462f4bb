package records

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/store"
)

// WorkOrderDay are the work orders of a day.
type WorkOrderDay struct {
	At models.Time
	// Opened were created that day, Closed were completed or cancelled.
	Opened, Closed int
}

// workOrderDaysQuery counts by index: of ids, which are in the order of creation, and
// of the times of closing. IS TRUE makes Postgres look nodes up in a hash table that it makes once.
var workOrderDaysQuery = `
	WITH granted AS MATERIALIZED (` + lists.GrantedNodes(models.GrantWorkOrdersRead) + `), seen AS MATERIALIZED (
		SELECT node_id FROM granted
		UNION SELECT c.node_id FROM granted g CROSS JOIN LATERAL (SELECT node_id FROM inventory_closure WHERE ancestor_id = g.node_id OFFSET 0) c WHERE g.applies_below
	)
	SELECT width_bucket(t.at, @days::timestamptz[]) AS day, count(*) FILTER (WHERE t.opened) AS opened, count(*) FILTER (WHERE NOT t.opened) AS closed
	FROM (
		SELECT created_at AS at, inventory_id, true AS opened FROM work_orders
		WHERE (organization_id, id) >= (@organization, @first) AND organization_id = @organization AND created_at >= @since
		UNION ALL SELECT completed_at, inventory_id, false FROM work_orders WHERE organization_id = @organization AND completed_at >= @since
		UNION ALL SELECT cancelled_at, inventory_id, false FROM work_orders WHERE organization_id = @organization AND cancelled_at >= @since
	) t
	WHERE (t.inventory_id IN (SELECT node_id FROM seen)) IS TRUE
	GROUP BY 1`

// maxCreationSkew is by how much the time of a work order's id may differ from its
// created_at: how long a write takes, and how far clocks are apart.
const maxCreationSkew = 10 * time.Minute

// WorkOrderDays returns the work orders of the actor's organization that were opened and
// closed on each of the last days of the time zone, the current one included, on the nodes
// whose work orders the actor may read. The oldest day is first. Errors: unavailable.
func (s *Records) WorkOrderDays(ctx context.Context, actor store.Actor, zone *time.Location, days int) ([]WorkOrderDay, error) {
	year, month, today := s.Now().In(zone).Date()
	figures, starts := make([]WorkOrderDay, days), make([]time.Time, days)
	for i := range days {
		starts[i] = time.Date(year, month, today+i-days+1, 0, 0, 0, 0, zone)
		figures[i].At = models.TimeOf(starts[i])
	}
	args := pgx.NamedArgs{
		"actor": actor.IdentityID, "organization": actor.OrganizationID, "days": starts, "since": starts[0],
		"first": models.FirstID(models.PrefixWorkOrder, starts[0].Add(-maxCreationSkew)),
	}
	var rows []struct{ Day, Opened, Closed int }
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		pipeline.Queue(`SELECT set_config('plan_cache_mode', 'force_custom_plan', true)`) // it depends on the days how many there are
		store.QueueAll(pipeline, &rows, workOrderDaysQuery, args)
		return nil
	}, func() ([]WorkOrderDay, error) {
		for _, row := range rows {
			if row.Day >= 1 && row.Day <= days {
				figures[row.Day-1].Opened, figures[row.Day-1].Closed = row.Opened, row.Closed
			}
		}
		return figures, nil
	})
}
