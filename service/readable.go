package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

var readableRecordsQuery = with(`
	SELECT u.id FROM unnest($1::text[]) u (id)
	CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = u.id LIMIT 1) w WHERE `+readableWorkOrder+`
	UNION ALL SELECT u.id FROM unnest($1::text[]) u (id)
	CROSS JOIN LATERAL (SELECT * FROM feedback WHERE id = u.id LIMIT 1) w WHERE `+readableFeedback, "w", "w", "actor", "$2")

// ReadableRecords returns which of the work orders and feedback the actor may read, for
// pages that lead to them. At most models.MaxPageSize ids are looked at. Errors: unavailable.
func (s *Service) ReadableRecords(ctx context.Context, actor Actor, ids []string) (map[string]bool, error) {
	known := []string{}
	for _, id := range ids[:min(len(ids), models.MaxPageSize)] {
		if models.IsID(id, models.PrefixWorkOrder, models.PrefixFeedback) {
			known = append(known, id)
		}
	}
	readable := map[string]bool{}
	if len(known) == 0 {
		return readable, nil
	}
	var found []struct{ ID string }
	return read(ctx, s, actor.OrganizationID, func() (map[string]bool, error) {
		for _, record := range found {
			readable[record.ID] = true
		}
		return readable, nil
	}, func(pipeline *pgx.Batch) error {
		queueAll(pipeline, &found, readableRecordsQuery, known, actor.IdentityID)
		return nil
	})
}
