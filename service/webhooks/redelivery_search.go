package webhooks

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
)

// countedPages is the number of pages that CountMatching looks through.
const countedPages = 4

// MatchCount counts the deliveries of an address that match a search.
type MatchCount struct {
	WebhookID, URL string
	Enabled        bool
	// N are the deliveries found, More is true if there may be others. Delivered of them
	// were delivered, Pending are due anyway.
	N, Delivered, Pending int
	More                  bool
}

// matchesQuery counts what matches by address, and says of each whether all was looked through.
func matchesQuery(sources string) string {
	return `
	WITH ` + searched(sources) + `
	SELECT d.webhook_id, d.url, d.enabled, count(*) FILTER (WHERE matching) AS n, count(*) FILTER (WHERE matching AND d.status = 'delivered') AS delivered,
		count(*) FILTER (WHERE matching AND d.status = 'pending') AS pending, count(*) >= @scan AS more
	FROM (
		SELECT d.*, ` + matches + ` AND (@kind = '' OR EXISTS (
			SELECT FROM (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e WHERE ` + ofType + `)) AS matching FROM scanned d
	) d
	GROUP BY d.webhook_id, d.url, d.enabled ORDER BY d.url, d.webhook_id`
}

// CountMatching returns how many deliveries of each address match the search, of the newest
// that it looks through. Errors: SearchDeliveries'.
func (s *Webhooks) CountMatching(ctx context.Context, actor store.Actor, search DeliverySearch) ([]MatchCount, error) {
	if err := search.check(); err != nil {
		return nil, err
	}
	var start searchStart
	var counts []MatchCount
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, store.Rounds{func(pipeline *pgx.Batch) error {
		s.queueStart(pipeline, actor, search, "", &start)
		return nil
	}, func(pipeline *pgx.Batch) error {
		if err := start.check(search); err != nil {
			return err
		}
		args := search.arguments(actor, start, max(1, countedPages*search.mostSearched()/max(start.addresses, 1)))
		store.QueueAll(pipeline, &counts, matchesQuery(search.sources()), args)
		return nil
	}}, func() ([]MatchCount, error) {
		return slices.DeleteFunc(counts, func(c MatchCount) bool { return c.N == 0 && !c.More }), nil
	})
}

// RedeliverMatching orders the redelivery of everything that matches the search now, at the
// addresses that send. It only stores the order: the dispatchers of the addresses carry it
// out in batches. It returns the number of addresses. Errors: SearchDeliveries',
// validation_failed if the deliveries of every address are held.
func (s *Webhooks) RedeliverMatching(ctx context.Context, actor store.Actor, key store.Key, search DeliverySearch) (int, error) {
	addresses, err := s.CountMatching(ctx, actor, search)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(addresses, func(a, b MatchCount) int { return strings.Compare(a.WebhookID, b.WebhookID) }) // locked in one order
	ordered := 0
	err = s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		ordered = 0
		var held error
		for _, a := range addresses {
			_, h, err := lockWebhook(t, actor, a.WebhookID)
			if err != nil {
				return err
			}
			if err := requireSending(t, &h, " "+h.URL); models.CodeOf(err) == models.CodeValidationFailed {
				held = err
				continue
			} else if err != nil {
				return err
			}
			if err := orderRedelivery(t, h.ID, redelivery{DeliverySearch: search}, ""); err != nil {
				return err
			}
			if err := t.Log(actor, h.OrganizationID, actionRedelivered, h.ID); err != nil {
				return err
			}
			ordered++
			t.Wakes = append(t.Wakes, store.NewWakeTarget(h.OrganizationID, h.ID))
		}
		if ordered == 0 {
			return held
		}
		return nil
	})
	return ordered, err
}
