package records

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/inventory"
	"millwright/service/store"
)

// RecordKind is what a record is that has a page.
type RecordKind string

// The kinds of records. Identities have models.IdentityKind.
const (
	RecordWorkOrder   RecordKind = "work_order"
	RecordFeedback    RecordKind = "feedback"
	RecordNode        RecordKind = "node"
	RecordPerson      RecordKind = RecordKind(models.KindPerson)
	RecordTeam        RecordKind = RecordKind(models.KindTeam)
	RecordIntegration RecordKind = RecordKind(models.KindIntegration)
	RecordWebhook     RecordKind = "webhook"
)

// ReadableRecord is what a link to a record shows.
type ReadableRecord struct {
	Kind RecordKind
	// Number is a work order's, 0 for other records.
	Number int64
	Name   string
}

// readableQueries select the records of the ids $1 that the person $2 of the organization $3
// may read, or sees in the lists of the organization.
var readableQueries = []struct {
	prefixes []models.IDPrefix
	sql      string
}{
	{WorkOrderReader.Prefixes, store.Fill(`SELECT w.id, '`+string(RecordWorkOrder)+`' AS kind, w.number, w.title AS name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM work_orders WHERE id = u.id LIMIT 1) w WHERE $3 <> '' AND `+access.ReadableWorkOrder, "w", "w", "actor", "$2")},
	{FeedbackReader.Prefixes, store.Fill(`SELECT w.id, '`+string(RecordFeedback)+`' AS kind, 0 AS number, w.subject AS name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM feedback WHERE id = u.id LIMIT 1) w WHERE $3 <> '' AND `+access.ReadableFeedback, "w", "w", "actor", "$2")},
	{inventory.NodeReader.Prefixes, store.Fill(`SELECT w.id, '`+string(RecordNode)+`' AS kind, 0 AS number, w.name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT id, organization_id, name FROM inventory_nodes WHERE id = u.id LIMIT 1) w
		WHERE w.organization_id = $3 AND `+access.PersonSees, "w", "w", "actor", "$2", "organization", "$3")},
	{[]models.IDPrefix{models.PrefixIdentity}, `SELECT i.id, i.kind::text AS kind, 0 AS number, i.name FROM unnest($1::text[]) u (id)
		CROSS JOIN LATERAL (SELECT * FROM identities WHERE id = u.id LIMIT 1) i
		WHERE $2 <> '' AND i.organization_id = $3 AND i.kind IN ('person', 'team', 'integration') AND i.deleted_at IS NULL
			AND NOT EXISTS (SELECT FROM integrations WHERE id = i.id AND deleted_at IS NOT NULL)`},
	{[]models.IDPrefix{models.PrefixWebhook}, `SELECT h.id, '` + string(RecordWebhook) + `' AS kind, 0 AS number, h.url AS name FROM webhooks h
		JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
		WHERE h.id = ANY ($1) AND $2 <> '' AND h.organization_id = $3`},
}

// ReadableRecords returns the records that the person may read, by their ids,
// for pages that link to them: work orders, feedback, nodes, and the organization's
// people, teams, integrations and webhook addresses. At most models.MaxPageSize ids are looked at. Errors:
// unavailable.
func (s *Records) ReadableRecords(ctx context.Context, actor store.Actor, ids []string) (map[string]ReadableRecord, error) {
	readable := map[string]ReadableRecord{}
	asked := make([][]string, len(readableQueries))
	some := false
	for _, id := range ids[:min(len(ids), models.MaxPageSize)] {
		for i, of := range readableQueries {
			if models.IsID(id, of.prefixes...) {
				asked[i], some = append(asked[i], id), true
			}
		}
	}
	if !some {
		return readable, nil
	}
	found := make([][]struct {
		ID string
		ReadableRecord
	}, len(readableQueries))
	return store.Read(ctx, s.Store, actor.OrganizationID, func() (map[string]ReadableRecord, error) {
		for _, records := range found {
			for _, record := range records {
				readable[record.ID] = record.ReadableRecord
			}
		}
		return readable, nil
	}, func(pipeline *pgx.Batch) error {
		for i, of := range readableQueries {
			if len(asked[i]) > 0 {
				store.QueueAll(pipeline, &found[i], of.sql, asked[i], actor.IdentityID, actor.OrganizationID)
			}
		}
		return nil
	})
}
