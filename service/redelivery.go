package service

import (
	"context"

	"millwright/models"
	"millwright/service/batch"
)

// releaseBatchSize is how many failed and held deliveries one transaction looks
// through to release them.
const releaseBatchSize = 1000

// MaxReleasedCount bounds the number of released deliveries that a command reports.
const MaxReleasedCount = 10_000

// releasedBatch is what releaseBatch did.
type releasedBatch struct {
	// Released deliveries are due now. Seen includes those of events that are too old.
	Released, Seen int
	// Last is the Seq of the last one seen.
	Last int64
}

// more says that failed and held deliveries may follow.
func (b releasedBatch) more() bool { return b.Seen == releaseBatchSize }

// releaseBatch makes deliveries of the address due now, in their order: of the next
// failed and held ones after the given RenderedDelivery.Seq, those of events that are
// not older than since. A delivery is created with its event, so their times are the same.
func (t *ormTx) releaseBatch(webhookID string, since models.Time, after int64) (releasedBatch, error) {
	if err := t.exec(batch.IndexPlans); err != nil {
		return releasedBatch{}, err
	}
	return scanOne[releasedBatch](t, nil, releaseQuery, webhookID, after, releaseBatchSize, since)
}

// releaseQuery looks through the next failed and held deliveries of an address, in their order.
var releaseQuery = `
	WITH next AS (
		SELECT id, seq, created_at FROM deliveries
		WHERE webhook_id = ? AND status IN ('failed', 'held') AND seq > ?
		ORDER BY seq LIMIT ? FOR UPDATE
	), ` + with(reopened, "from", "deliveries", "condition", "id = ANY (ARRAY(SELECT id FROM next WHERE created_at >= ?)) AND "+daysOf("id", "next"), "state", pendingAgain) + `
	SELECT (SELECT count(*) FROM reopened) AS released, count(*) AS seen, coalesce(max(seq), 0) AS last FROM next`

// continueLater has the address's dispatcher continue a release after the delivery
// with the given Seq. A release that is not finished yet is included.
func (t *ormTx) continueLater(webhookID string, since models.Time, after int64) error {
	return t.exec(`
		INSERT INTO delivery_releases AS r (webhook_id, since, after_seq) VALUES (?, ?, ?)
		ON CONFLICT (webhook_id) DO UPDATE SET
			since = least(r.since, excluded.since), after_seq = least(r.after_seq, excluded.after_seq)`, webhookID, since, after)
}

// countReleasable returns how many deliveries a release continued after the given
// Seq will make due. It looks through the newest MaxReleasedCount only.
func (t *ormTx) countReleasable(webhookID string, since models.Time, after int64) (int, error) {
	return scanOne[int](t, nil, countReleasableQuery, countReleasableArgs(webhookID, since, after))
}

const countReleasableQuery = `
	SELECT count(*) FILTER (WHERE created_at >= @since) FROM (
		SELECT created_at FROM deliveries
		WHERE webhook_id = @webhook AND status IN ('failed', 'held') AND seq > @after
		ORDER BY seq DESC LIMIT @limit) newest`

func countReleasableArgs(webhookID string, since models.Time, after int64) map[string]any {
	return map[string]any{"webhook": webhookID, "since": since, "after": after, "limit": MaxReleasedCount}
}

// release makes the failed and held deliveries of events since then due: the first
// batch now, the others when the address's dispatcher comes to them. It returns how
// many there are, at most MaxReleasedCount and one batch. Events past their retention,
// which are stored until the end of their day, are not sent again.
func (t *ormTx) release(webhookID string, since models.Time) (int, error) {
	if kept := models.TimeOf(t.at.Add(-models.EventRetention)); since.Before(kept.Time) {
		since = kept
	}
	if err := t.countRequeue(webhookID); err != nil {
		return 0, err
	}
	first, err := t.releaseBatch(webhookID, since, 0)
	if err != nil || !first.more() {
		return first.Released, err
	}
	left, err := t.countReleasable(webhookID, since, first.Last)
	if err != nil {
		return 0, err
	}
	return first.Released + left, t.continueLater(webhookID, since, first.Last)
}

// continueRelease releases the next batch of an unfinished release of the
// organization's address.
func (s *Service) continueRelease(ctx context.Context, organizationID, webhookID string) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		if err := t.countRequeue(webhookID); err != nil {
			return err
		}
		releases, err := scanAll[struct {
			Since    models.Time
			AfterSeq int64
		}](t, `SELECT since, after_seq FROM delivery_releases WHERE webhook_id = ? FOR UPDATE`, webhookID)
		if err != nil || len(releases) == 0 {
			return err
		}
		batch, err := t.releaseBatch(webhookID, releases[0].Since, releases[0].AfterSeq)
		if err != nil {
			return err
		}
		if !batch.more() {
			return t.exec(`DELETE FROM delivery_releases WHERE webhook_id = ?`, webhookID)
		}
		return t.exec(`UPDATE delivery_releases SET after_seq = ? WHERE webhook_id = ?`, batch.Last, webhookID)
	})
}

// requireOn returns an error for a redelivery at an address that is off.
func requireOn(h *models.Webhook) error {
	if h.Enabled {
		return nil
	}
	return models.Errorf(models.CodeValidationFailed, "The address is off; turn it on first.")
}

// RedeliverSince makes every failed or held delivery of the address due whose event
// is not older than since, and returns how many (spec section 6, turning off). Those
// that do not fit into one batch become due when the address's dispatcher comes to
// them; at most MaxReleasedCount of them are counted. Errors: not_found,
// permission_denied, validation_failed if the address is off, unavailable.
func (s *Service) RedeliverSince(ctx context.Context, actor Actor, webhookID string, since models.Time) (int, error) {
	due := 0
	_, err := s.updateWebhook(ctx, actor, webhookID, func(t *ormTx, h *models.Webhook) (action string, err error) {
		if err := requireOn(h); err != nil {
			return "", err
		}
		due, err = t.release(webhookID, since)
		t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, webhookID))
		return actionRedelivered, err
	})
	return due, err
}

// redeliverQuery makes a delivery pending that is not.
var redeliverQuery = `
	WITH ` + with(reopened, "from", "deliveries", "condition", "id = @id", "state", pendingAgain) + `, due AS (
		UPDATE open_deliveries SET status = 'pending', next_attempt_at = NULL, attempts_before = attempts
		WHERE id = @id AND ` + isRetrying + ` RETURNING id
	)
	SELECT id FROM reopened UNION ALL SELECT id FROM due`

// RedeliverDelivery makes one delivery due now, whatever its status, and returns it
// (spec section 6, delivery): a delivered one is sent once more, a skipped one is
// checked again, a pending one stays pending. Errors: not_found,
// permission_denied, validation_failed if its address is off, unavailable.
func (s *Service) RedeliverDelivery(ctx context.Context, actor Actor, id string) (DeliveryView, error) {
	// An event past its retention is stored until the end of its day, but not sent again.
	if !models.IsID(id, models.PrefixDelivery) || id < models.FirstID(models.PrefixDelivery, s.Now().Add(-models.EventRetention)) {
		return DeliveryView{}, models.NotFound()
	}
	var delivery DeliveryView
	err := s.transaction(ctx, actor.OrganizationID, func(t *ormTx) error {
		webhookID, err := scanOne[string](t, models.NotFound(), `SELECT webhook_id FROM all_deliveries WHERE id = ?`, id)
		if err != nil {
			return err
		}
		h, err := t.lockWebhook(actor, webhookID)
		if err != nil {
			return err
		}
		if err := requireOn(&h); err != nil {
			return err
		}
		if err := t.lockDelivery(id); err != nil {
			return err
		}
		failing, err := scanOne[bool](t, models.NotFound(), `
			SELECT attempts > 0 AND status NOT IN ('delivered', 'skipped') FROM all_deliveries WHERE id = ?`, id)
		if err != nil {
			return err
		}
		changed, err := scanAll[string](t, redeliverQuery, map[string]any{"id": id})
		if err != nil {
			return err
		}
		delivery, err = scanOne[DeliveryView](t, models.NotFound(), `
			SELECT `+deliveryColumns+` FROM all_deliveries d CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE d.id = ?`, id)
		if err != nil || len(changed) == 0 {
			return err
		}
		if err := t.countRequeue(webhookID); err != nil {
			return err
		}
		t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, webhookID))
		if failing { // it may have a workflow, which shows this
			t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, id))
		}
		return t.log(actor, h.OrganizationID, actionRedelivered, webhookID)
	})
	return delivery, err
}
