package webhooks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"millwright/models"
	"millwright/service/integrations"
	"millwright/service/store"
)

// redeliverBatchSize is the number of deliveries that one transaction looks through to
// redeliver those that match a search.
const redeliverBatchSize = 1000

// MaxReleasedCount bounds the number of released deliveries that a command reports.
const MaxReleasedCount = 10_000

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
	// Missed restricts it to failed and held deliveries. Newer deliveries wait until these are
	// due, so that all go out in the order of the events.
	Missed bool `json:"missed,omitempty"`
}

// redeliveredBatch is what redeliverBatch did.
type redeliveredBatch struct {
	// Due deliveries are due now, of those Seen. Last is the position of the last one seen.
	Due, Seen int
	Last      int64
}

// more reports whether other deliveries may follow.
func (b redeliveredBatch) more() bool { return b.Seen == redeliverBatchSize }

// redeliveredFrom are common table expressions that make deliveries with the ids of the
// common table expression {ids} due now, whatever their status.
var redeliveredFrom = store.Fill(reopened, "condition", "id = ANY (ARRAY(SELECT id FROM {ids})) AND "+DaysOf("id", "{ids}"), "state", pendingAgain) + `, due AS (
		UPDATE open_deliveries SET status = 'pending', next_attempt_at = NULL, attempts_before = attempts
		WHERE id = ANY (ARRAY(SELECT id FROM {ids})) AND ` + isRetrying + ` RETURNING id
	)`

// redeliverBatchQuery looks through the next deliveries of an address in order, up to
// a position, and makes those that match due. It returns how many were, how many it has
// looked through, and the last position, 0 without one.
var redeliverBatchQuery = `
	WITH seen AS MATERIALIZED (
		SELECT * FROM ({sources}) d ORDER BY seq LIMIT @limit
	), matching AS (
		SELECT d.id FROM seen d WHERE id >= @low AND id < @high AND (@record = '' OR record_id = @record) AND ` + matches + `
			AND (@kind = '' OR EXISTS (SELECT FROM (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE ` + ofType + `))
	), ` + store.Fill(redeliveredFrom, "ids", "matching") + `
	SELECT (SELECT count(*) FROM reopened) + (SELECT count(*) FROM due) AS due,
		(SELECT count(*) FROM seen) AS seen, coalesce((SELECT max(seq) FROM seen), 0) AS last`

// redeliverSource is a source of redeliverBatchQuery.
const redeliverSource = `(
			SELECT id, seq, event_id, record_id, status, attempts, last_status FROM {table}
			WHERE webhook_id = @webhook AND seq > @after AND seq <= @until AND {condition}
			ORDER BY seq LIMIT @limit{lock})`

// redeliverMissed is the source of failed and held deliveries. The lock waits for attempts that
// are being recorded: what these delivered is not sent again.
var redeliverMissed = store.Fill(redeliverSource, "table", "deliveries", "condition", "status IN ('failed', 'held')", "lock", " FOR UPDATE")

// batchSources returns the sources of the order's batches. Pending deliveries are due anyway.
func (r redelivery) batchSources() string {
	retrying := store.Fill(redeliverSource, "table", "open_deliveries", "condition", "status = 'retrying'", "lock", "")
	finished := store.Fill(redeliverSource, "table", "deliveries", "condition", "true", "lock", "")
	switch {
	case r.Missed, r.Status == models.DeliveryFailed, r.Status == models.DeliveryHeld:
		return redeliverMissed
	case r.Status == models.DeliveryRetrying, r.Status == models.DeliveryPending:
		return retrying
	case r.Status == models.DeliveryDelivered, r.Status == models.DeliverySkipped:
		return finished
	}
	return retrying + " UNION ALL " + finished
}

// redeliverBatch makes deliveries of the address due that match the order: of the next ones
// after a position, up to another. Events past their retention, which are stored until the end
// of their day, are not sent again.
func redeliverBatch(t *store.Tx, webhookID string, order redelivery, after, until int64) (redeliveredBatch, error) {
	order.From = retained(t.At.Time, order.From)
	if err := t.Exec(store.IndexPlans); err != nil {
		return redeliveredBatch{}, err
	}
	args := order.arguments(store.Actor{}, searchStart{}, 0)
	maps.Copy(args, map[string]any{"webhook": webhookID, "after": after, "until": until, "limit": redeliverBatchSize})
	return store.ScanOne[redeliveredBatch](t, nil, store.Fill(redeliverBatchQuery, "sources", order.batchSources()), map[string]any(args))
}

// retained returns the time, or the time since which events are kept if that is later.
func retained(now, since time.Time) time.Time {
	if kept := now.Add(-models.EventRetention); since.Before(kept) {
		return kept
	}
	return since
}

// orderRedelivery has the address's dispatcher carry out the order, which covers what exists
// now after the position.
func orderRedelivery(t *store.Tx, webhookID string, order redelivery, after int64) error {
	stored, err := json.Marshal(order)
	if err != nil {
		return err
	}
	return t.Exec(`INSERT INTO redeliveries (webhook_id, search, until_seq, after_seq, created_at)
		SELECT ?, ?::jsonb, last_value, ?, ? FROM delivery_positions`, webhookID, string(stored), after, t.At)
}

// continueRedelivery carries out the next batch of the address's first redelivery.
func (s *Webhooks) continueRedelivery(ctx context.Context, organizationID, webhookID string) error {
	return s.Transaction(ctx, organizationID, store.NoKey, func(t *store.Tx) error {
		if err := countRequeue(t, webhookID); err != nil {
			return err
		}
		orders, err := store.ScanAll[struct {
			ID                 int64
			Search             []byte
			AfterSeq, UntilSeq int64
		}](t, `SELECT id, search, after_seq, until_seq FROM redeliveries WHERE webhook_id = ? ORDER BY id LIMIT 1 FOR UPDATE`, webhookID)
		if err != nil || len(orders) == 0 {
			return err
		}
		stored := orders[0]
		var order redelivery
		if err := json.Unmarshal(stored.Search, &order); err != nil {
			return err
		}
		batch, err := redeliverBatch(t, webhookID, order, stored.AfterSeq, stored.UntilSeq)
		if err != nil {
			return err
		}
		if !batch.more() {
			return t.Exec(`DELETE FROM redeliveries WHERE id = ?`, stored.ID)
		}
		return t.Exec(`UPDATE redeliveries SET after_seq = ? WHERE id = ?`, batch.Last, stored.ID)
	})
}

// countReleasable returns how many deliveries a release continued after the position will
// make due. It looks through the newest MaxReleasedCount only.
func countReleasable(t *store.Tx, webhookID string, since models.Time, after int64) (int, error) {
	return store.ScanOne[int](t, nil, CountReleasableQuery, countReleasableArgs(t.At.Time, webhookID, since, after))
}

// CountReleasableQuery counts deliveries that Redeliver would take.
const CountReleasableQuery = `
	SELECT count(*) FILTER (WHERE created_at >= @since) FROM (
		SELECT created_at FROM deliveries
		WHERE webhook_id = @webhook AND status IN ('failed', 'held') AND seq > @after
		ORDER BY seq DESC LIMIT @limit) newest`

func countReleasableArgs(now time.Time, webhookID string, since models.Time, after int64) map[string]any {
	return map[string]any{"webhook": webhookID, "since": models.TimeOf(retained(now, since.Time)), "after": after, "limit": MaxReleasedCount}
}

// countExpired counts failed and held deliveries of events since then that are past their
// retention, but stored until the end of their day. It counts at most MaxReleasedCount.
func countExpired(t *store.Tx, webhookID string, since models.Time) (int, error) {
	kept := retained(t.At.Time, since.Time)
	if kept.Equal(since.Time) {
		return 0, nil
	}
	return store.ScanOne[int](t, nil, `SELECT count(*) FROM (SELECT FROM deliveries
		WHERE webhook_id = @webhook AND status IN ('failed', 'held') AND id < @kept AND created_at >= @since ORDER BY seq LIMIT @limit) expired`, map[string]any{
		"webhook": webhookID, "kept": models.FirstID(models.PrefixDelivery, kept), "since": since, "limit": MaxReleasedCount,
	})
}

// release makes the failed and held deliveries of events since then due: the first
// batch now, the others when the address's dispatcher comes to them. It counts
// them, at most MaxReleasedCount and one batch.
func release(t *store.Tx, webhookID string, since models.Time) (released Released, err error) {
	if err := awaitHeld(t, webhookID); err != nil {
		return Released{}, err
	}
	if err := countRequeue(t, webhookID); err != nil {
		return Released{}, err
	}
	if released.Expired, err = countExpired(t, webhookID, since); err != nil {
		return Released{}, err
	}
	missed := redelivery{DeliverySearch: DeliverySearch{From: since.Time}, Missed: true}
	first, err := redeliverBatch(t, webhookID, missed, 0, maxPosition)
	released.Due = first.Due
	if err != nil || !first.more() {
		return released, err
	}
	left, err := countReleasable(t, webhookID, since, first.Last)
	if err != nil {
		return Released{}, err
	}
	released.Due += left
	return released, orderRedelivery(t, webhookID, missed, first.Last)
}

// awaitHeld waits for the transactions that insert held deliveries of the address or hold due ones,
// so that a release that follows misses none.
func awaitHeld(t *store.Tx, webhookID string) error {
	return t.Exec(`SELECT FROM webhooks WHERE id = ? FOR UPDATE`, webhookID)
}

// requireSending returns an error for a redelivery at an address whose deliveries are held. Its
// message contains the name, which may be empty, with a space before it: the error stays in
// histories, which hold no URLs.
func requireSending(t *store.Tx, h *models.Webhook, name string) error {
	if !h.Enabled {
		return models.Errorf(models.CodeValidationFailed, "The address%s is off; turn it on first.", name)
	}
	reason, err := store.ScanOne[string](t, models.NotFound(), store.Fill("SELECT coalesce("+unusableReason, "w", "w")+", '') FROM webhooks w WHERE w.id = ?", h.ID)
	if err != nil || reason == "" {
		return err
	}
	return models.Errorf(models.CodeValidationFailed, "Deliveries to the address%s are held. %s Redeliver them once that is over.", name, reason)
}

// RedeliverSince makes every failed or held delivery of the address due whose event
// is not older than since, and counts them (api.md 6.11). Those
// that do not fit into one batch become due when the address's dispatcher comes to
// them; at most MaxReleasedCount of them are counted. Errors: not_found,
// permission_denied, validation_failed if its deliveries are held, unavailable.
func (s *Webhooks) RedeliverSince(ctx context.Context, actor store.Actor, key store.Key, webhookID string, since models.Time) (released Released, err error) {
	_, err = s.updateWebhook(ctx, actor, key, webhookID, func(t *store.Tx, _ integrations.LockedIntegration, h *models.Webhook) (action string, err error) {
		if err := requireSending(t, h, ""); err != nil {
			return "", err
		}
		released, err = release(t, webhookID, since)
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
	SELECT d.id, d.webhook_id, d.attempts > 0 AND d.status NOT IN ('delivered', 'skipped') AS failing
	FROM all_deliveries d JOIN webhooks h ON h.id = d.webhook_id
	WHERE d.id IN @ids AND (@organization = '' OR h.organization_id = @organization)`

// redeliverSelectedQuery makes the deliveries due.
var redeliverSelectedQuery = `
	WITH selected AS (
		SELECT unnest(string_to_array(@ids, ',')) AS id
	), ` + store.Fill(redeliveredFrom, "ids", "selected") + `
	SELECT id FROM reopened UNION ALL SELECT id FROM due`

// selectedDelivery is a delivery to redeliver.
type selectedDelivery struct {
	ID, WebhookID string
	// Failing is true if it may have a workflow.
	Failing bool
}

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
		if err := t.Exec(store.IndexPlans); err != nil {
			return err
		}
		selected, err := store.ScanAll[selectedDelivery](t, selectedQuery, map[string]any{"ids": ids, "organization": actor.OrganizationID})
		if err != nil {
			return err
		}
		if len(selected) != len(ids) {
			return models.NotFound()
		}
		byAddress := map[string][]selectedDelivery{}
		for _, d := range selected {
			byAddress[d.WebhookID] = append(byAddress[d.WebhookID], d)
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
func redeliverOf(t *store.Tx, actor store.Actor, webhookID string, selected []selectedDelivery) (int, error) {
	_, h, err := lockWebhook(t, actor, webhookID)
	if err != nil {
		return 0, err
	}
	if err := requireSending(t, &h, " "+h.URL); err != nil {
		return 0, err
	}
	ids := make([]string, len(selected))
	for i, d := range selected {
		ids[i] = d.ID
	}
	if err := lockDeliveries(t, ids...); err != nil {
		return 0, err
	}
	changed, err := store.ScanAll[string](t, redeliverSelectedQuery, map[string]any{"ids": strings.Join(ids, ",")})
	if err != nil || len(changed) == 0 {
		return 0, err
	}
	if err := countRequeue(t, webhookID); err != nil {
		return 0, err
	}
	t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, webhookID))
	for _, d := range selected {
		if d.Failing && slices.Contains(changed, d.ID) {
			t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, d.ID))
		}
	}
	return len(changed), t.Log(actor, h.OrganizationID, actionRedelivered, webhookID)
}
