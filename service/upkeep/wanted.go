package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// WantedAddresses returns the addresses, whose workflows are to be open. Errors: unavailable.
func (s *Upkeep) WantedAddresses(ctx context.Context) (wanted []store.WakeTarget, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.AllowLongStatement)
	store.QueueSwept(pipeline, &wanted, `SELECT id, organization_id FROM webhooks`)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return wanted, err
}

// OpenRecord is an open record. Its workflow is woken if it is not open, and if the record is Untold: it
// found out about neither a change of the assignees nor their permissions.
type OpenRecord struct {
	store.WakeTarget
	// Untold is true for a work order that no one can do, of which no one was notified (api.md 3.5).
	Untold bool
}

// openRecordsQuery returns the first $4 records after the one with the id $3 of the
// organization $2 that have one of the statuses $1, in the order of organizations and ids.
// It reads the index of each status from where it continues, and no closed record. The joins
// keep the order of the subqueries, and none of them reads on after $4 rows; an ORDER BY
// would sort all records if the plan was made while the tables were empty.
func openRecordsQuery(records, untold string) string {
	return `
	SELECT r.id, o.id AS organization_id, ` + untold + ` AS untold FROM (SELECT id FROM organizations WHERE id >= $2 ORDER BY id) o CROSS JOIN LATERAL (
		SELECT of_status.id FROM unnest($1::text[]) s (status) CROSS JOIN LATERAL (
			SELECT id FROM ` + records + ` WHERE organization_id = o.id AND status = s.status
				AND id > CASE WHEN o.id = $2 THEN $3 ELSE '' END
			ORDER BY id LIMIT $4) of_status
		ORDER BY of_status.id LIMIT $4) r
	LIMIT $4`
}

// untold is records.UntoldNoOneCan for the id r.id. The row is looked up, so that no plan reads them all.
var untold = `coalesce((SELECT ` + records.UntoldNoOneCan + ` FROM work_orders w WHERE w.id = r.id), false)`

// openRecords are the statement for each kind of record and the statuses of open ones.
var openRecords = map[store.TargetKind]struct {
	query    string
	statuses []string
}{
	store.TargetWorkOrder: {openRecordsQuery("work_orders", untold), store.TextsOf(models.InProcess())},
	store.TargetFeedback:  {openRecordsQuery("feedback", "false"), []string{string(models.FeedbackOpen)}},
}

// OpenRecords returns up to limit work orders or feedback, as after.Kind says, that are not
// complete, cancelled or resolved, in the order of their organizations and ids: those that
// follow after, or the first if it has no id. Errors: unavailable.
func (s *Upkeep) OpenRecords(ctx context.Context, after store.WakeTarget, limit int) (open []OpenRecord, err error) {
	of := openRecords[after.Kind]
	var found []struct {
		ID, OrganizationID string
		Untold             bool
	}
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	store.QueueAll(pipeline, &found, of.query, of.statuses, after.OrganizationID, after.ID, limit)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	for _, record := range found {
		target := store.WakeTarget{Kind: after.Kind, ID: record.ID, OrganizationID: record.OrganizationID, Swept: true}
		open = append(open, OpenRecord{target, record.Untold})
	}
	return open, err
}
