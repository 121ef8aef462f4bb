package service

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// redeliverBatchSize is how many deliveries one transaction looks through to redeliver those
// that match a search.
const redeliverBatchSize = 1000

// countedPages is how many times as much as a page CountMatching looks through.
const countedPages = 4

// maxSelected is how many deliveries RedeliverSelected redelivers at a time.
const maxSelected = models.MaxPageSize

// redeliveredFrom are common table expressions that make deliveries with the ids of the
// common table expression {from} due now, whatever their status.
var redeliveredFrom = with(reopened, "from", "deliveries", "condition", "id = ANY (ARRAY(SELECT id FROM {ids})) AND "+daysOf("id", "{ids}"), "state", pendingAgain) + `, due AS (
		UPDATE open_deliveries SET status = 'pending', next_attempt_at = NULL, attempts_before = attempts
		WHERE id = ANY (ARRAY(SELECT id FROM {ids})) AND ` + isRetrying + ` RETURNING id
	)`

// selectedQuery returns the deliveries with the ids that belong to the organization.
const selectedQuery = `
	SELECT d.id, d.webhook_id, d.attempts > 0 AND d.status NOT IN ('delivered', 'skipped') AS failing
	FROM all_deliveries d JOIN webhooks h ON h.id = d.webhook_id
	WHERE d.id IN @ids AND h.organization_id = @organization`

// redeliverSelectedQuery makes the deliveries due.
var redeliverSelectedQuery = `
	WITH selected AS (
		SELECT unnest(string_to_array(@ids, ',')) AS id
	), ` + with(redeliveredFrom, "ids", "selected") + `
	SELECT id FROM reopened UNION ALL SELECT id FROM due`

// selectedDelivery is a delivery to redeliver.
type selectedDelivery struct {
	ID, WebhookID string
	// Failing says that it may have a workflow.
	Failing bool
}

// RedeliverSelected makes deliveries of the actor's organization due now, as
// RedeliverDelivery does, all of them or none, and returns how many were not due before.
// Errors: not_found (of any of them), permission_denied, invalid_request without an id
// or more than models.MaxPageSize, validation_failed if the address of one is off, unavailable.
func (s *Service) RedeliverSelected(ctx context.Context, actor Actor, ids []string) (int, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 || len(ids) > maxSelected {
		return 0, models.Errorf(models.CodeInvalidRequest, "Select 1 to %d deliveries.", maxSelected)
	}
	oldest := models.FirstID(models.PrefixDelivery, s.Now().Add(-models.EventRetention))
	if slices.ContainsFunc(ids, func(id string) bool { return !models.IsID(id, models.PrefixDelivery) || id < oldest }) {
		return 0, models.NotFound()
	}
	redelivered := 0
	err := s.transaction(ctx, actor.OrganizationID, func(t *ormTx) error {
		redelivered = 0
		if err := t.exec(batch.IndexPlans); err != nil {
			return err
		}
		selected, err := scanAll[selectedDelivery](t, selectedQuery, map[string]any{"ids": ids, "organization": actor.OrganizationID})
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
		addresses := make([]string, 0, len(byAddress))
		for id := range byAddress {
			addresses = append(addresses, id)
		}
		slices.Sort(addresses) // locked in one order
		for _, webhookID := range addresses {
			n, err := t.redeliverOf(actor, webhookID, byAddress[webhookID])
			if err != nil {
				return err
			}
			redelivered += n
		}
		return nil
	})
	return redelivered, err
}

// redeliverOf makes deliveries of one address due now and returns how many were not.
func (t *ormTx) redeliverOf(actor Actor, webhookID string, selected []selectedDelivery) (int, error) {
	h, err := t.lockWebhook(actor, webhookID)
	if err != nil {
		return 0, err
	}
	if !h.Enabled {
		return 0, models.Errorf(models.CodeValidationFailed, "The address %s is off; turn it on first.", h.URL)
	}
	ids := make([]string, len(selected))
	for i, d := range selected {
		ids[i] = d.ID
	}
	for _, table := range []string{"open_deliveries", "deliveries"} {
		if err := t.exec(`SELECT FROM `+table+` WHERE id IN ? ORDER BY id FOR UPDATE`, ids); err != nil {
			return 0, err
		}
	}
	if err := t.exec(adoptQuery("string_to_array(?, ',')"), strings.Join(ids, ",")); err != nil {
		return 0, err
	}
	changed, err := scanAll[string](t, redeliverSelectedQuery, map[string]any{"ids": strings.Join(ids, ",")})
	if err != nil || len(changed) == 0 {
		return 0, err
	}
	if err := t.countRequeue(webhookID); err != nil {
		return 0, err
	}
	t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, webhookID))
	for _, d := range selected {
		if d.Failing && slices.Contains(changed, d.ID) {
			t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, d.ID))
		}
	}
	return len(changed), t.log(actor, h.OrganizationID, actionRedelivered, webhookID)
}

// MatchCount is how many deliveries of an address match a search.
type MatchCount struct {
	WebhookID, URL string
	Enabled        bool
	// N are those that were found, More says that there may be others. Delivered of them
	// were delivered, Pending are due anyway.
	N, Delivered, Pending int
	More                  bool
}

// matchesQuery counts what matches by address, and says of each whether all was looked through.
const matchesQuery = `
	WITH ` + searched + `
	SELECT d.webhook_id, d.url, d.enabled, count(*) FILTER (WHERE matching) AS n, count(*) FILTER (WHERE matching AND d.status = 'delivered') AS delivered,
		count(*) FILTER (WHERE matching AND d.status = 'pending') AS pending, count(*) >= @scan AS more
	FROM (
		SELECT d.*, ` + matches + ` AND (@kind = '' OR EXISTS (
			SELECT FROM (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE ` + ofType + `)) AS matching FROM scanned d
	) d
	GROUP BY d.webhook_id, d.url, d.enabled ORDER BY d.url, d.webhook_id`

// CountMatching returns how many deliveries of each address match the search, of the newest
// that it looks through. Errors: those of SearchDeliveries.
func (s *Service) CountMatching(ctx context.Context, actor Actor, search DeliverySearch) ([]MatchCount, error) {
	if err := search.check(); err != nil {
		return nil, err
	}
	var start searchStart
	var counts []MatchCount
	return read(ctx, s, actor.OrganizationID, func() ([]MatchCount, error) {
		return slices.DeleteFunc(counts, func(c MatchCount) bool { return c.N == 0 && !c.More }), nil
	}, func(pipeline *pgx.Batch) error {
		s.queueStart(pipeline, actor, search, "", &start)
		return nil
	}, func(pipeline *pgx.Batch) error {
		if err := start.check(search); err != nil {
			return err
		}
		args := search.arguments(actor, start, max(1, countedPages*search.mostSearched()/max(start.addresses, 1)))
		sql, values := numbered(with(matchesQuery, "sources", search.sources(), "e", "e"), args)
		queueAll(pipeline, &counts, sql, values...)
		return nil
	})
}

// RedeliverMatching orders the redelivery of everything that matches the search now, at the
// addresses that are on. It only stores the order: the dispatchers of the addresses carry it
// out in batches. It returns at how many addresses. Errors: those of SearchDeliveries,
// validation_failed if every address is off.
func (s *Service) RedeliverMatching(ctx context.Context, actor Actor, search DeliverySearch) (int, error) {
	counts, err := s.CountMatching(ctx, actor, search)
	if err != nil {
		return 0, err
	}
	addresses := slices.DeleteFunc(counts, func(c MatchCount) bool { return !c.Enabled })
	if len(counts) > 0 && len(addresses) == 0 {
		return 0, models.Errorf(models.CodeValidationFailed, "The address is off; turn it on first.")
	}
	slices.SortFunc(addresses, func(a, b MatchCount) int { return strings.Compare(a.WebhookID, b.WebhookID) }) // locked in one order
	stored, err := json.Marshal(search)
	if err != nil {
		return 0, err
	}
	ordered := 0
	err = s.transaction(ctx, actor.OrganizationID, func(t *ormTx) error {
		ordered = 0
		for _, a := range addresses {
			h, err := t.lockWebhook(actor, a.WebhookID)
			if err != nil {
				return err
			}
			if !h.Enabled { // turned off meanwhile
				continue
			}
			if err := t.exec(`INSERT INTO redeliveries (webhook_id, search, until_seq, created_at)
				SELECT ?, ?::jsonb, last_value, ? FROM delivery_positions`, h.ID, string(stored), t.at); err != nil {
				return err
			}
			if err := t.log(actor, h.OrganizationID, actionRedelivered, h.ID); err != nil {
				return err
			}
			ordered++
			t.wakes = append(t.wakes, wakeTarget(h.OrganizationID, h.ID))
		}
		return nil
	})
	return ordered, err
}

// redeliverBatchQuery looks through the next deliveries of an address in their order, up to
// a position, and makes those that match due. It returns how many were, how many it has
// looked through, and the last position, 0 without one.
var redeliverBatchQuery = `
	WITH seen AS MATERIALIZED (
		SELECT * FROM ({sources}) d ORDER BY seq LIMIT @limit
	), matching AS (
		SELECT d.id FROM seen d WHERE id >= @low AND id < @high AND (@record = '' OR record_id = @record) AND ` + matches + `
			AND (@kind = '' OR EXISTS (SELECT FROM (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE ` + ofType + `))
	), ` + with(redeliveredFrom, "ids", "matching") + `
	SELECT (SELECT count(*) FROM reopened) + (SELECT count(*) FROM due) AS released,
		(SELECT count(*) FROM seen) AS seen, coalesce((SELECT max(seq) FROM seen), 0) AS last`

// redeliverSource is a source of redeliverBatchQuery.
const redeliverSource = `(
			SELECT id, seq, event_id, record_id, status, attempts, last_status FROM {table}
			WHERE webhook_id = @webhook AND seq > @after AND seq <= @until AND {condition}
			ORDER BY seq LIMIT @limit)`

// redeliverSources returns the sources of the search's batches. Pending deliveries are due
// anyway.
func (q DeliverySearch) redeliverSources() string {
	retrying := with(redeliverSource, "table", "open_deliveries", "condition", "status = 'retrying'")
	finished := with(redeliverSource, "table", "deliveries", "condition", "true")
	switch q.Status {
	case models.DeliveryFailed, models.DeliveryHeld:
		return with(redeliverSource, "table", "deliveries", "condition", "status IN ('failed', 'held')")
	case models.DeliveryRetrying, models.DeliveryPending:
		return retrying
	case models.DeliveryDelivered, models.DeliverySkipped:
		return finished
	}
	return retrying + " UNION ALL " + finished
}

// continueRedelivery carries out the next batch of the address's first redelivery.
func (s *Service) continueRedelivery(ctx context.Context, organizationID, webhookID string) error {
	return s.transaction(ctx, organizationID, func(t *ormTx) error {
		if err := t.countRequeue(webhookID); err != nil {
			return err
		}
		orders, err := scanAll[struct {
			ID                 int64
			Search             []byte
			AfterSeq, UntilSeq int64
		}](t, `SELECT id, search, after_seq, until_seq FROM redeliveries WHERE webhook_id = ? ORDER BY id LIMIT 1 FOR UPDATE`, webhookID)
		if err != nil || len(orders) == 0 {
			return err
		}
		order := orders[0]
		var search DeliverySearch
		if err := json.Unmarshal(order.Search, &search); err != nil {
			return err
		}
		if kept := t.at.Add(-models.EventRetention); search.From.Before(kept) {
			search.From = kept // older events are not sent again
		}
		if err := t.exec(batch.IndexPlans); err != nil {
			return err
		}
		args := search.arguments(Actor{}, searchStart{}, 0)
		for name, value := range map[string]any{"webhook": webhookID, "after": order.AfterSeq, "until": order.UntilSeq, "limit": redeliverBatchSize} {
			args[name] = value
		}
		batch, err := scanOne[releasedBatch](t, nil, with(redeliverBatchQuery, "sources", search.redeliverSources(), "e", "e"), map[string]any(args))
		if err != nil {
			return err
		}
		if batch.Seen < redeliverBatchSize {
			return t.exec(`DELETE FROM redeliveries WHERE id = ?`, order.ID)
		}
		return t.exec(`UPDATE redeliveries SET after_seq = ? WHERE id = ?`, batch.Last, order.ID)
	})
}
