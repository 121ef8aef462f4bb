package webhooks

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/service/effects"
	"millwright/service/store"
)

// An address has a limited number of places for open Delivery workflows (store.Options.MaxRetrying), which deliveries
// hold in the column workflow. One that fails without a free place is retried when the sweep finds one; failed
// deliveries give theirs up for it, oldest first.

// places counts the places of an address that are in use. Held deliveries use none.
type places struct {
	// Open counts retrying and pending deliveries, Failed failed ones.
	Open, Failed int
}

const placesQuery = `
	SELECT (SELECT count(*) FROM (SELECT FROM open_deliveries WHERE webhook_id = @webhook AND workflow
			AND queued_at >= (SELECT held_before FROM webhooks WHERE id = @webhook) LIMIT @most) x)::integer AS open,
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE webhook_id = @webhook AND workflow LIMIT @most) x)::integer AS failed`

const giveUpQuery = `
	WITH given_up AS (
		UPDATE deliveries SET workflow = false
		WHERE id = ANY (ARRAY(SELECT id FROM deliveries WHERE webhook_id = $1 AND workflow ORDER BY webhook_id, id LIMIT $2)) RETURNING id
	), marked AS (
		INSERT INTO dirty_records (record_id, since) SELECT id, $3 FROM given_up ON CONFLICT (record_id) DO NOTHING
	)
	SELECT id FROM given_up`

// queueGivenUp has the oldest n failed deliveries of the address give their places up: woken, their workflows end.
func queueGivenUp(t *store.Tx, organizationID, webhookID string, n int, woken *[]store.WakeTarget) {
	t.QueueRows(func(rows pgx.Rows) error {
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, id := range ids {
			*woken = append(*woken, store.NewWakeTarget(organizationID, id))
		}
		return err
	}, giveUpQuery, webhookID, n, t.At)
}

const (
	// OverdueAfter is the time after a missed attempt at which the sweep starts the workflow.
	OverdueAfter = 2 * time.Minute
	// maxOverdue bounds the workflows that a sweep starts, maxOverdueOfAddress the share of an address.
	maxOverdue          = 200
	maxOverdueOfAddress = 40
)

// failingColumns are the columns of a store.FailingDelivery of the delivery d of the address w.
const failingColumns = `d.id AS delivery_id, w.organization_id, w.integration_id, d.webhook_id, d.record_id,
	coalesce((SELECT type FROM events WHERE id = d.event_id LIMIT 1), '') AS event_type, coalesce(d.last_status::text, 'other') AS last_result`

// overdueQuery makes deliveries whose next attempt was due before @overdue due now, so that the next sweep finds
// others: at most @of_address of each address that have a place, and as many that get one. Organizations take turns.
var overdueQuery = `
	WITH overdue AS (
		SELECT d.id FROM webhooks w
		CROSS JOIN LATERAL (SELECT least(@of_address, @most - count(*)) AS free FROM (
			SELECT FROM open_deliveries WHERE webhook_id = w.id AND workflow AND queued_at >= w.held_before LIMIT @most) x) places
		CROSS JOIN LATERAL (
			(SELECT id, next_attempt_at FROM open_deliveries WHERE webhook_id = w.id AND workflow AND status || '' = 'retrying'
				AND next_attempt_at < @overdue AND queued_at >= w.held_before ORDER BY next_attempt_at LIMIT @of_address)
			UNION ALL
			(SELECT id, next_attempt_at FROM open_deliveries WHERE webhook_id = ANY (ARRAY[w.id]) AND NOT workflow AND status = 'retrying'
				AND next_attempt_at < @overdue AND queued_at >= w.held_before ORDER BY webhook_id, next_attempt_at LIMIT places.free)) d
		WHERE ` + Sends("w") + ` ORDER BY row_number() OVER (PARTITION BY w.organization_id ORDER BY d.next_attempt_at), d.next_attempt_at LIMIT @limit
	)
	UPDATE open_deliveries d SET workflow = true, next_attempt_at = @now FROM webhooks w
	WHERE d.id = ANY (ARRAY(SELECT id FROM overdue)) AND w.id = d.webhook_id AND d.next_attempt_at IS NOT NULL RETURNING ` + failingColumns

// Wanted returns the retrying and failed deliveries whose workflows are to be open. Errors: unavailable.
func (s *Webhooks) Wanted(ctx context.Context) (wanted []store.FailingDelivery, err error) {
	pipeline := &pgx.Batch{}
	pipeline.Queue(store.AllowLongStatement)
	pipeline.Queue(indexPlans)
	store.QueueAll(pipeline, &wanted, `
		SELECT `+failingColumns+` FROM webhooks w JOIN open_deliveries d ON d.webhook_id = w.id WHERE d.workflow AND d.status = 'retrying'
		UNION ALL SELECT `+failingColumns+` FROM webhooks w JOIN deliveries d ON d.webhook_id = w.id WHERE d.workflow`)
	err = s.Translate(s.Pool.SendBatch(ctx, pipeline).Close())
	for n := range wanted {
		wanted[n].Page = effects.PageURL(s.Issuer, wanted[n].DeliveryID)
	}
	return wanted, err
}

// Overdue returns deliveries whose next attempt is over and that no workflow attempts: its start was lost, or its
// address had no place free. Their workflows are to be started unless they are open. woken are failed deliveries that
// gave their places up. Errors: unavailable.
func (s *Webhooks) Overdue(ctx context.Context) (overdue []store.FailingDelivery, woken []store.WakeTarget, err error) {
	err = s.Transaction(ctx, "", store.NoKey, func(t *store.Tx) error {
		woken = nil
		if err := t.Exec(indexPlans); err != nil {
			return err
		}
		overdue, err = store.ScanAll[store.FailingDelivery](t, overdueQuery, map[string]any{
			"overdue": t.At.Add(-OverdueAfter), "now": t.At, "limit": maxOverdue, "of_address": maxOverdueOfAddress, "most": s.MaxRetrying,
		})
		if err != nil {
			return err
		}
		of := map[string]string{}
		for n := range overdue {
			overdue[n].StartOnly, overdue[n].Page = true, effects.PageURL(s.Issuer, overdue[n].DeliveryID)
			of[overdue[n].WebhookID] = overdue[n].OrganizationID
		}
		for _, id := range slices.Sorted(maps.Keys(of)) {
			used, err := store.ScanOne[places](t, pgx.ErrNoRows, placesQuery, map[string]any{"webhook": id, "most": s.MaxRetrying})
			if err != nil {
				return err
			}
			if over := used.Open + used.Failed - s.MaxRetrying; over > 0 {
				queueGivenUp(t, of[id], id, over, &woken)
			}
		}
		return nil
	})
	return overdue, woken, err
}
