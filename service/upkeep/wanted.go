package upkeep

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// wantedQueries return the addresses and deliveries that have a workflow, with their
// organizations: of the deliveries those that are retrying and have one, and of each
// address's failed ones the newest $1.
var wantedQueries = map[store.TargetKind]string{
	store.TargetWebhook: `SELECT id, organization_id FROM webhooks WHERE $1 > 0`,
	store.TargetDelivery: `
		SELECT d.id, w.organization_id FROM open_deliveries d JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.status = 'retrying' AND d.workflow
		UNION ALL
		SELECT d.id, w.organization_id FROM webhooks w CROSS JOIN LATERAL (
			SELECT id FROM deliveries WHERE webhook_id = ANY (ARRAY[w.id]) AND status = 'failed'
			ORDER BY webhook_id DESC, id DESC LIMIT $1) d`,
}

// WantedWorkflows returns the addresses or deliveries whose workflows are to be open
// (docs/temporal.md). Errors: unavailable.
func (s *Upkeep) WantedWorkflows(ctx context.Context, kind store.TargetKind) (wanted []store.WakeTarget, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(allowLongStatement)
	pipeline.Queue(store.IndexPlans)
	store.QueueSwept(pipeline, &wanted, wantedQueries[kind], s.MaxDeliveryWorkflows)
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
const openRecordsQuery = `
	SELECT r.id, o.id AS organization_id, {untold} AS untold FROM (SELECT id FROM organizations WHERE id >= $2 ORDER BY id) o CROSS JOIN LATERAL (
		SELECT of_status.id FROM unnest($1::text[]) s (status) CROSS JOIN LATERAL (
			SELECT id FROM {records} WHERE organization_id = o.id AND status = s.status
				AND id > CASE WHEN o.id = $2 THEN $3 ELSE '' END
			ORDER BY id LIMIT $4) of_status
		ORDER BY of_status.id LIMIT $4) r
	LIMIT $4`

// untold is records.UntoldNoOneCan for the id r.id. The row is looked up, so that no plan reads them all.
var untold = `coalesce((SELECT ` + store.Fill(records.UntoldNoOneCan, "w", "w") + ` FROM work_orders w WHERE w.id = r.id), false)`

// openRecords are the statement for each kind of record and the statuses of open ones.
var openRecords = map[store.TargetKind]struct {
	query    string
	statuses []string
}{
	store.TargetWorkOrder: {store.Fill(openRecordsQuery, "records", "work_orders", "untold", untold), store.TextsOf(models.InProcess())},
	store.TargetFeedback:  {store.Fill(openRecordsQuery, "records", "feedback", "untold", "false"), []string{string(models.FeedbackOpen)}},
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
