package webhooks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
	"millwright/webhook"
)

// DeliveryDetail is one delivery for people who manage integrations.
type DeliveryDetail struct {
	DeliveryItem
	AttemptsMade []AttemptRecord
	// Planned is the number of attempts in the retry schedule.
	Planned int
	// EventAt is the time of the event.
	EventAt models.Time
	// Workflow is true if the delivery has a workflow, or had one.
	Workflow bool
	// Readable is true if the person may read the record. Without it the attempts have no response
	// bodies: a receiver may return what it got.
	Readable bool
	// Body is what would be sent now, and Header what would be sent with it; nil with the
	// reason in Withheld. Signed is true if Header has the signatures, which only an owner of the
	// integration or an administrator gets: they are enough to send the request.
	Body     []byte
	Header   http.Header
	Signed   bool
	Withheld string
}

// deliveryItemsQuery reads the deliveries of the source, of addresses of the organization.
func deliveryItemsQuery(source string) string {
	return `
	SELECT d.id, d.event_id, e.type AS event_type, d.webhook_id, d.record_id, d.status, d.attempts, d.next_attempt_at,
		d.last_status, d.last_error, d.created_at, NULL::integer AS latency_ms, h.url, n.name AS integration, h.integration_id, h.enabled
	FROM ` + source + ` d
	CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
	JOIN webhooks h ON h.id = d.webhook_id
	JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
	JOIN identities n ON n.id = i.id
	WHERE h.organization_id = @organization`
}

// deliveryDetailQuery reads the delivery @id.
var deliveryDetailQuery = deliveryItemsQuery(`(SELECT * FROM all_deliveries WHERE id = @id LIMIT 1)`)

// latestDeliveriesQuery reads the latest delivery of the record @record to each integration,
// whose events are between the ids of @lows and @highs.
var latestDeliveriesQuery = deliveryItemsQuery(`(SELECT DISTINCT ON (w.integration_id) l.id
		FROM unnest(@lows::text[], @highs::text[]) m (low, high)
		CROSS JOIN LATERAL (
			(SELECT id, webhook_id FROM open_deliveries WHERE id >= m.low AND id < m.high AND record_id = @record LIMIT 1000)
			UNION ALL (SELECT id, webhook_id FROM deliveries WHERE id >= m.low AND id < m.high AND record_id = @record LIMIT 1000)) l
		JOIN webhooks w ON w.id = l.webhook_id WHERE w.organization_id = @organization ORDER BY w.integration_id, l.id DESC) latest
	CROSS JOIN LATERAL (SELECT * FROM all_deliveries WHERE id = latest.id LIMIT 1)`)

// LatestDeliveries finds the latest delivery of a record to each integration of an organization,
// in two round trips, for reads that have others.
type LatestDeliveries struct {
	RecordID    string
	Found       []DeliveryItem
	lows, highs []string
}

// QueueChanges adds the query of the first round trip.
func (l *LatestDeliveries) QueueChanges(pipeline *pgx.Batch, now time.Time) {
	DeliverySearch{RecordID: l.RecordID}.queueChanges(pipeline, now, &l.lows, &l.highs)
}

// QueueDeliveries adds the query of the second round trip, which finds the deliveries.
func (l *LatestDeliveries) QueueDeliveries(pipeline *pgx.Batch, organizationID string) {
	store.QueueAll(pipeline, &l.Found, latestDeliveriesQuery, pgx.NamedArgs{"organization": organizationID, "record": l.RecordID, "lows": l.lows, "highs": l.highs})
}

// deliveryReaderQuery selects what the person may see of a delivery: its record, and signatures.
var deliveryReaderQuery = `SELECT ` + access.ReadsRecord("@record", "@actor") + ` AS readable, ` + access.OwnsIntegration("i", "@actor", "@organization") + ` AS signed
	FROM integrations i WHERE i.id = @integration`

// DeliveryForPerson returns a delivery of the actor's organization with its attempts and, if the
// actor and the integration may both read the record, with what would be sent now. Errors:
// permission_denied, not_found, unavailable.
func (s *Webhooks) DeliveryForPerson(ctx context.Context, actor store.Actor, id string) (DeliveryDetail, error) {
	found := DeliveryDetail{Planned: len(s.RetrySchedule) + 1}
	var may struct{ Readable, Signed bool }
	args := pgx.NamedArgs{"id": id, "actor": actor.IdentityID, "organization": actor.OrganizationID}
	_, err := store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		access.QueueMayManage(pipeline, actor)
		return nil
	}, func(pipeline *pgx.Batch) error {
		if !models.IsID(id, models.PrefixDelivery) {
			return models.NotFound()
		}
		store.QueueOne(pipeline, &found.DeliveryItem, models.NotFound(), deliveryDetailQuery, args)
		queueAttemptRecords(pipeline, id, &found.AttemptsMade)
		return nil
	}, func(pipeline *pgx.Batch) error {
		args["record"], args["integration"] = found.RecordID, found.IntegrationID
		store.QueueOne(pipeline, &may, models.NotFound(), deliveryReaderQuery, args)
		return nil
	}}, func() (bool, error) { return true, nil })
	if err != nil {
		return DeliveryDetail{}, err
	}
	if n := len(found.AttemptsMade); n > 0 {
		latency := int(found.AttemptsMade[n-1].LatencyMS)
		found.LatencyMS = &latency
	}
	found.Workflow = slices.ContainsFunc(found.AttemptsMade, func(a AttemptRecord) bool { return a.Status == nil || *a.Status < 200 || *a.Status > 299 })
	found.Readable, found.Signed = may.Readable, may.Signed
	if !found.Readable {
		for i := range found.AttemptsMade {
			found.AttemptsMade[i].ResponseBody = nil
		}
		found.Withheld = "You may not read the record that this delivery is about."
		return found, nil
	}
	err = s.Share(ctx, actor.OrganizationID, func() error { return s.addBody(ctx, &found) })
	return found, err
}

// addBody adds the body and the headers of a delivery as they would be sent now. Errors:
// not_found (the address or the event was removed in between), unavailable.
func (s *Webhooks) addBody(ctx context.Context, d *DeliveryDetail) error {
	address, err := s.addressOf(ctx, d.WebhookID)
	if err != nil {
		return err
	}
	events, records, err := s.readClaimed(ctx, address, []RenderedDelivery{{DeliveryID: d.ID, EventID: d.EventID, RecordID: d.RecordID}})
	if err != nil {
		return err
	}
	event, stored := events[d.EventID]
	record, readable := records[d.RecordID]
	switch {
	case !stored:
		return models.NotFound()
	case !address.Usable:
		d.Withheld = "The integration may not use the service now, so this would be held."
		return nil
	case !readable:
		d.Withheld = "The integration may not read the record now, so this would not be sent."
		return nil
	case !slices.Contains(address.Events, event.Type):
		d.Withheld = fmt.Sprintf("The address does not subscribe to %s now, so this would not be sent.", event.Type)
	}
	if d.Body, err = event.body(record); err != nil {
		return err
	}
	opened, err := s.openAddress(address)
	if err != nil {
		return err
	}
	signer, err := webhook.NewSigner(opened.Secrets...)
	if err != nil {
		return err
	}
	d.EventAt = event.CreatedAt
	d.Header = signer.Header(d.EventID, string(d.EventType), s.Now(), d.Body)
	d.Header.Set("Content-Type", "application/json")
	d.Header.Set("User-Agent", webhook.UserAgent)
	if !d.Signed {
		for _, name := range []string{webhook.HeaderSignature, webhook.HeaderStandardSignature} {
			d.Header.Set(name, hiddenSignature)
		}
	}
	return nil
}

// hiddenSignature stands for the signatures of a delivery for people who do not own its integration.
const hiddenSignature = "SIGNATURE"

// addressOf loads an address. Errors: not_found, unavailable.
func (s *Webhooks) addressOf(ctx context.Context, id string) (addressRow, error) {
	var row addressRow
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.IndexPlans)
	store.QueueOne(pipeline, &row, models.NotFound(), addressQuery, pgx.NamedArgs{"webhook": id})
	err := s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	return row, err
}
