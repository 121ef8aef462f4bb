package upkeep

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
	"millwright/service/store"
)

// wantedQueries return the addresses and deliveries that have a workflow, with their
// organizations: of the deliveries those that are retrying and have one, and of each
// address's failed and held ones the newest $1, if an attempt has failed.
var wantedQueries = map[store.TargetKind]string{
	store.TargetWebhook: `SELECT id, organization_id FROM webhooks WHERE $1 > 0`,
	store.TargetDelivery: `
		SELECT d.id, w.organization_id FROM open_deliveries d JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.status = 'retrying' AND d.workflow
		UNION ALL
		SELECT d.id, w.organization_id FROM webhooks w CROSS JOIN LATERAL (
			SELECT id FROM deliveries WHERE webhook_id = w.id AND status IN ('failed', 'held') AND attempts > 0
			ORDER BY seq DESC LIMIT $1) d`,
}

// WantedWorkflows returns the addresses or deliveries whose workflows are to be open
// (docs/temporal.md). Errors: unavailable.
func (s *Upkeep) WantedWorkflows(ctx context.Context, kind store.TargetKind) (wanted []store.WakeTarget, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(allowLongStatement)
	pipeline.Queue(batch.IndexPlans)
	store.QueueSwept(pipeline, &wanted, wantedQueries[kind], s.MaxDeliveryWorkflows)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return wanted, err
}

// openRecordsQuery returns the first $4 records after the one with the id $3 of the
// organization $2 that have one of the statuses $1, in the order of organizations and ids.
// It reads the index of each status from where it continues, and no closed record. The joins
// keep the order of the subqueries, and none of them reads on after $4 rows; an ORDER BY
// would sort all records if the plan was made while the tables were empty.
const openRecordsQuery = `
	SELECT r.id, o.id FROM (SELECT id FROM organizations WHERE id >= $2 ORDER BY id) o CROSS JOIN LATERAL (
		SELECT of_status.id FROM unnest($1::text[]) s (status) CROSS JOIN LATERAL (
			SELECT id FROM records WHERE organization_id = o.id AND status = s.status
				AND id > CASE WHEN o.id = $2 THEN $3 ELSE '' END
			ORDER BY id LIMIT $4) of_status
		ORDER BY of_status.id LIMIT $4) r
	LIMIT $4`

// openRecords are the statement for each kind of record and the statuses of open ones.
var openRecords = map[store.TargetKind]struct {
	query    string
	statuses []string
}{
	store.TargetWorkOrder: {strings.Replace(openRecordsQuery, "records", "work_orders", 1), store.TextsOf(models.InProcess())},
	store.TargetFeedback:  {strings.Replace(openRecordsQuery, "records", "feedback", 1), []string{string(models.FeedbackOpen)}},
}

// OpenRecords returns up to limit work orders or feedback, as after.Kind says, that are not
// complete, cancelled or resolved, in the order of their organizations and ids: those that
// follow after, or the first if it has no id. Errors: unavailable.
func (s *Upkeep) OpenRecords(ctx context.Context, after store.WakeTarget, limit int) (open []store.WakeTarget, err error) {
	records := openRecords[after.Kind]
	pipeline := &pgx.Batch{}
	pipeline.Queue(batch.IndexPlans)
	store.QueueSwept(pipeline, &open, records.query, records.statuses, after.OrganizationID, after.ID, limit)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return open, err
}
