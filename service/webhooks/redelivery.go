package webhooks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// redeliverBatchSize is the number of deliveries that one transaction looks through to
// redeliver those that match a search.
const redeliverBatchSize = 1000

// Released counts the deliveries that a redelivery made due.
type Released struct {
	Due int `json:"released"`
	// Expired are left out: their events are older than models.EventRetention.
	Expired int `json:"expired"`
}

// errExpired is the error for the redelivery of an event that is older than models.EventRetention.
func errExpired() error {
	return models.Errorf(models.CodeValidationFailed, "The event is older than %s, so it is not sent again.", formatDuration(models.EventRetention))
}

// hasExpired reports whether it is the id of a delivery whose event is older than models.EventRetention.
func (s *Webhooks) hasExpired(id string) bool {
	return models.IsID(id, models.PrefixDelivery) && id < models.FirstID(models.PrefixDelivery, s.Now().Add(-models.EventRetention))
}

// redelivery is an order to make the deliveries of an address due that match a search. It is
// stored until its last batch.
type redelivery struct {
	DeliverySearch
	// Missed restricts it to what failed or is retrying.
	Missed bool `json:"missed,omitempty"`
}

// batchQuery looks through the next deliveries of an address in the order of their ids, up to one, and whether each matches.
func batchQuery(sources string) string {
	return `
	WITH seen AS MATERIALIZED (
		SELECT * FROM (` + sources + `) d ORDER BY id LIMIT @limit
	)
	SELECT d.id, (@record = '' OR record_id = @record) AND (NOT @missed OR d.status IN ('retrying', 'failed')) AND ` + matches + `
		AND (@kind = '' OR EXISTS (SELECT FROM (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE ` + ofType + `)) AS matching
	FROM seen d ORDER BY d.id`
}

// batchSource is a source of batchQuery.
func batchSource(table, status, condition string) string {
	return `(
			SELECT id, event_id, record_id, ` + status + ` AS status, attempts, last_status FROM ` + table + ` d
			WHERE webhook_id = ANY (ARRAY[ @webhook ]) AND id > @begin AND id >= @after AND id < @before AND ` + condition + `
			ORDER BY webhook_id, id LIMIT @limit)`
}

var (
	openBatch     = batchSource("open_deliveries", `CASE WHEN `+Queued+` THEN status ELSE 'held' END`, "true")
	finishedBatch = batchSource("deliveries", "status", "true")
	failedBatch   = batchSource("deliveries", "status", "status = 'failed'")
)

// batchSources returns the sources of the order's batches.
func (r redelivery) batchSources() string {
	if r.Missed {
		return openBatch + " UNION ALL " + failedBatch
	}
	switch r.Status {
	case "":
		return openBatch + " UNION ALL " + finishedBatch
	case models.DeliveryFailed:
		return failedBatch
	case models.DeliveryDelivered, models.DeliverySkipped:
		return finishedBatch
	default:
		return openBatch
	}
}

// batch makes the next deliveries of the address due that match the order, and returns the last that it has looked
// at, "" when that was the end. Events past their retention, which are stored until the end of their day, are not sent again.
func (r redelivery) batch(t *store.Tx, webhookID, after, until string) (last string, err error) {
	r.From = retained(t.At.Time, r.From)
	args := r.arguments(store.Actor{}, searchStart{before: until}, 0)
	maps.Copy(args, map[string]any{"webhook": webhookID, "begin": after, "limit": redeliverBatchSize, "missed": r.Missed})
	seen, err := store.ScanAll[struct {
		ID       string
		Matching bool
	}](t, batchQuery(r.batchSources()), map[string]any(args))
	if err != nil {
		return "", err
	}
	var ids []string
	for _, d := range seen {
		if d.Matching {
			ids = append(ids, d.ID)
		}
	}
	if len(seen) == redeliverBatchSize {
		last = seen[len(seen)-1].ID
	}
	_, err = redeliver(t, ids)
	return last, err
}

// retained returns the time, or the time since which events are kept if that is later.
func retained(now, since time.Time) time.Time {
	if kept := now.Add(-models.EventRetention); since.Before(kept) {
		return kept
	}
	return since
}

// existing is an id above all deliveries that exist now.
func existing(t *store.Tx) string {
	return models.FirstID(models.PrefixDelivery, t.At.Add(time.Millisecond))
}

// orderRedelivery has the address's dispatcher carry out the order, which covers what exists now after an id.
func orderRedelivery(t *store.Tx, webhookID string, order redelivery, after string) error {
	stored, err := json.Marshal(order)
	if err != nil {
		return err
	}
	return t.Exec(`INSERT INTO redeliveries (webhook_id, search, after_id, until_id, created_at) VALUES (?, ?::jsonb, ?, ?, ?)`,
		webhookID, string(stored), after, existing(t), t.At)
}

// continueRedelivery carries out the next batch of the address's first redelivery. A crash repeats the batch, which
// finds what it made due already pending.
func (s *Webhooks) continueRedelivery(ctx context.Context, organizationID, webhookID string) error {
	return s.Transaction(ctx, organizationID, store.NoKey, func(t *store.Tx) error {
		orders, err := store.ScanAll[struct {
			ID               int64
			Search           []byte
			AfterID, UntilID string
		}](t, `SELECT id, search, after_id, until_id FROM redeliveries WHERE webhook_id = ? ORDER BY id LIMIT 1 FOR UPDATE`, webhookID)
		if err != nil || len(orders) == 0 {
			return err
		}
		stored := orders[0]
		var order redelivery
		if err := json.Unmarshal(stored.Search, &order); err != nil {
			return err
		}
		last, err := order.batch(t, webhookID, stored.AfterID, stored.UntilID)
		if err != nil {
			return err
		}
		if last == "" {
			return t.Exec(`DELETE FROM redeliveries WHERE id = ?`, stored.ID)
		}
		return t.Exec(`UPDATE redeliveries SET after_id = ? WHERE id = ?`, last, stored.ID)
	})
}

// missedQuery counts what a release makes due: what failed, is retrying or held, of events since then.
const missedQuery = `
	SELECT count(*) FROM (
		(SELECT FROM deliveries WHERE webhook_id = ANY (ARRAY[ @webhook ]) AND status = 'failed' AND id >= @low ORDER BY webhook_id, id LIMIT @limit)
		UNION ALL (SELECT FROM (SELECT status FROM open_deliveries WHERE webhook_id = ANY (ARRAY[ @webhook ]) AND id >= @low ORDER BY webhook_id, id LIMIT @limit) d
			WHERE status = 'retrying')
		UNION ALL (SELECT FROM open_deliveries d JOIN sending s ON s.webhook_id = d.webhook_id
			WHERE d.webhook_id = @webhook AND d.status = 'pending' AND d.queued_at >= @since AND (NOT s.sends OR d.queued_at < s.held_before) LIMIT @limit)
		LIMIT @limit) missed`

func missedArgs(now time.Time, webhookID string, since models.Time) map[string]any {
	kept := retained(now, since.Time)
	return map[string]any{"webhook": webhookID, "low": models.FirstID(models.PrefixDelivery, kept), "since": models.TimeOf(kept), "limit": models.MaxCounted}
}

// countExpired counts failed deliveries of events since then that are past their
// retention, but stored until the end of their day. It counts at most models.MaxCounted.
func countExpired(t *store.Tx, webhookID string, since models.Time) (int, error) {
	kept := retained(t.At.Time, since.Time)
	if kept.Equal(since.Time) {
		return 0, nil
	}
	return store.ScanOne[int](t, nil, `SELECT count(*) FROM (SELECT FROM deliveries
		WHERE webhook_id = ANY (ARRAY[ @webhook ]) AND status = 'failed' AND id < @kept AND id >= @low ORDER BY webhook_id, id LIMIT @limit) expired`, map[string]any{
		"webhook": webhookID, "kept": models.FirstID(models.PrefixDelivery, kept), "low": models.FirstID(models.PrefixDelivery, since.Time), "limit": models.MaxCounted,
	})
}

// release makes what failed, is retrying or held due, of events since then, and counts it, at most models.MaxCounted:
// held deliveries by the address's held_before, the others in batches: the first now, the next ones by its dispatcher.
func release(t *store.Tx, h *models.Webhook, since models.Time) (released Released, err error) {
	if released.Expired, err = countExpired(t, h.ID, since); err != nil {
		return Released{}, err
	}
	if released.Due, err = store.ScanOne[int](t, nil, missedQuery, missedArgs(t.At.Time, h.ID, since)); err != nil {
		return Released{}, err
	}
	if since.Before(h.HeldBefore.Time) {
		h.HeldBefore = since
		if err := t.UpdateColumns(h, "held_before"); err != nil {
			return Released{}, err
		}
	}
	missed := redelivery{DeliverySearch: DeliverySearch{From: since.Time}, Missed: true}
	last, err := missed.batch(t, h.ID, "", existing(t))
	if err != nil || last == "" {
		return released, err
	}
	return released, orderRedelivery(t, h.ID, missed, last)
}

// requireSending returns an error for a redelivery at an address whose deliveries are held. Its
// message contains the name, which may be empty, with a space before it: the error stays in
// histories, which hold no URLs.
func requireSending(t *store.Tx, h *models.Webhook, name string) error {
	if !h.Enabled {
		return models.Errorf(models.CodeValidationFailed, "The address%s is off; turn it on first.", name)
	}
	reason, err := store.ScanOne[string](t, models.NotFound(), "SELECT coalesce("+unusableReason("w")+", '') FROM webhooks w WHERE w.id = ?", h.ID)
	if err != nil || reason == "" {
		return err
	}
	return models.Errorf(models.CodeValidationFailed, "Deliveries to the address%s are held. %s Redeliver them once that is over.", name, reason)
}

// RedeliverSince makes every failed, retrying or held delivery of the address due whose event
// is not older than since, and counts them (api.md 6.11), at most models.MaxCounted. Errors: not_found,
// permission_denied, validation_failed if the address does not send, unavailable.
func (s *Webhooks) RedeliverSince(ctx context.Context, actor store.Actor, key store.Key, webhookID string, since models.Time) (released Released, err error) {
	_, err = s.updateWebhook(ctx, actor, key, webhookID, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (action string, err error) {
		if err := requireSending(t, h, ""); err != nil {
			return "", err
		}
		released, err = release(t, h, since)
		t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, webhookID))
		return actionRedelivered, err
	})
	return released, err
}

// RedeliverDelivery is RedeliverSelected for one delivery, which it returns (api.md 6.13,
// delivery). Errors: not_found, permission_denied, validation_failed if its event has expired or
// the deliveries of its address are held, unavailable.
func (s *Webhooks) RedeliverDelivery(ctx context.Context, actor store.Actor, key store.Key, id string) (DeliveryView, error) {
	var delivery DeliveryView
	if s.hasExpired(id) {
		return delivery, errExpired()
	}
	_, err := s.redeliverSelected(ctx, actor, key, []string{id}, func(t *store.Tx) (err error) {
		delivery, err = store.ScanOne[DeliveryView](t, models.NotFound(), `
			SELECT `+deliveryColumns+` FROM all_deliveries d CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE d.id = ?`, id)
		return err
	})
	return delivery, err
}

// selectedQuery returns the deliveries with the ids that belong to the organization, if there is one.
const selectedQuery = `
	SELECT d.id, d.webhook_id FROM all_deliveries d JOIN webhooks h ON h.id = d.webhook_id
	WHERE d.id IN @ids AND (@organization = '' OR h.organization_id = @organization)`

// selectedDelivery is a delivery to redeliver.
type selectedDelivery struct{ ID, WebhookID string }

// RedeliverSelected makes deliveries due now, whatever their status, all of them or none, and
// counts those that were not due before: a delivered one is sent once more, a skipped one is
// checked again, a pending one stays pending. Deliveries of expired events are left out. Errors: not_found (of any of them),
// permission_denied, invalid_request without an id or more than models.MaxPageSize,
// validation_failed if the address of one holds its deliveries, unavailable.
func (s *Webhooks) RedeliverSelected(ctx context.Context, actor store.Actor, key store.Key, ids []string) (Released, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 || len(ids) > models.MaxPageSize {
		return Released{}, models.Errorf(models.CodeInvalidRequest, "Select 1 to %d deliveries.", models.MaxPageSize)
	}
	kept := slices.DeleteFunc(slices.Clone(ids), s.hasExpired)
	due, err := s.redeliverSelected(ctx, actor, key, kept, func(*store.Tx) error { return nil })
	if err != nil {
		return Released{}, err
	}
	return Released{Due: due, Expired: len(ids) - len(kept)}, nil
}

// redeliverSelected is RedeliverSelected for different ids, in one transaction with what follows.
func (s *Webhooks) redeliverSelected(ctx context.Context, actor store.Actor, key store.Key, ids []string, then func(*store.Tx) error) (int, error) {
	if slices.ContainsFunc(ids, func(id string) bool { return !models.IsID(id, models.PrefixDelivery) }) {
		return 0, models.NotFound()
	}
	redelivered := 0
	if len(ids) == 0 {
		return redelivered, nil
	}
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		redelivered = 0
		selected, err := store.ScanAll[selectedDelivery](t, selectedQuery, map[string]any{"ids": ids, "organization": actor.OrganizationID})
		if err != nil {
			return err
		}
		if len(selected) != len(ids) {
			return models.NotFound()
		}
		byAddress := map[string][]string{}
		for _, d := range selected {
			byAddress[d.WebhookID] = append(byAddress[d.WebhookID], d.ID)
		}
		for _, webhookID := range slices.Sorted(maps.Keys(byAddress)) { // locked in one order
			n, err := redeliverOf(t, actor, webhookID, byAddress[webhookID])
			if err != nil {
				return err
			}
			redelivered += n
		}
		return then(t)
	})
	return redelivered, err
}

// redeliverOf makes deliveries of one address due now and returns how many were not.
func redeliverOf(t *store.Tx, actor store.Actor, webhookID string, ids []string) (int, error) {
	_, h, err := lockWebhook(t, actor, webhookID)
	if err != nil {
		return 0, err
	}
	if err := requireSending(t, &h, " "+h.URL); err != nil {
		return 0, err
	}
	changed, err := redeliver(t, ids)
	if err != nil || len(changed) == 0 {
		return 0, err
	}
	t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, webhookID))
	return len(changed), t.Log(actor, h.OrganizationID, actionRedelivered, webhookID)
}
