package service

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Backlog is what the service owes at a moment. Counts stop at BacklogCounted.
type Backlog struct {
	At models.Time
	// Pending deliveries wait for their first attempt; OldestPending is since when
	// the longest does, nil when none waits.
	Pending       int
	OldestPending *models.Time
	// Retries wait for a time, or for a worker once that has come.
	Retries int
	// Looks are owed by the workflows of records, OldestLook since when.
	Looks      int
	OldestLook *models.Time
	// Mails wait to be sent, OldestMail since when.
	Mails      int
	OldestMail *models.Time
	// What is owed and in nobody's hand, as the sweep sees it: addresses with
	// deliveries that no mailbox attends, retries that are overdue, and records
	// whose workflow has not looked.
	UnheldAddresses, UnheldRetries, UnheldLooks int
	// Addresses are all there are, on or off; Failing ones are on and have not
	// answered well of late.
	AddressesOn, AddressesOff, AddressesFailing int
}

// BacklogCounted is where the counts of a Backlog stop: further rows would cost
// time and tell nobody more.
const BacklogCounted = 100_000

// backlogQuery reads a Backlog in one round trip. The heads of the addresses'
// queues are found by jumping along the index of pending deliveries from address
// to address, so a million deliveries behind them cost nothing; every count ends
// at its limit.
const backlogQuery = `
	WITH RECURSIVE heads AS (
		(SELECT webhook_id, created_at FROM deliveries WHERE status = 'pending' ORDER BY webhook_id, seq LIMIT 1)
		UNION ALL
		SELECT next.* FROM heads h, LATERAL (
			SELECT d.webhook_id, d.created_at FROM deliveries d
			WHERE d.status = 'pending' AND d.webhook_id > h.webhook_id ORDER BY d.webhook_id, d.seq LIMIT 1) next
	), owed AS (
		SELECT min(h.created_at) AS oldest,
			count(*) FILTER (WHERE h.created_at < @patience AND m.webhook_id IS NULL) AS unheld
		FROM heads h LEFT JOIN mailboxes m ON m.webhook_id = h.webhook_id AND m.attended_until > @now
	)
	SELECT @now::timestamptz AS at,
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE status = 'pending' LIMIT @most) x) AS pending,
		(SELECT oldest FROM owed) AS oldest_pending,
		(SELECT count(*) FROM (SELECT FROM deliveries WHERE status = 'retrying' LIMIT @most) x) AS retries,
		(SELECT count(*) FROM (SELECT FROM looks_owed LIMIT @most) x) AS looks,
		(SELECT min(since) FROM looks_owed) AS oldest_look,
		(SELECT count(*) FROM (SELECT FROM notices WHERE mail = 'waiting' LIMIT @most) x) AS mails,
		(SELECT min(created_at) FROM notices WHERE mail = 'waiting') AS oldest_mail,
		(SELECT unheld FROM owed) AS unheld_addresses,
		(SELECT count(*) FROM (SELECT FROM deliveries
			WHERE status = 'retrying' AND next_attempt_at < @patience LIMIT @most) x) AS unheld_retries,
		(SELECT count(*) FROM (SELECT FROM looks_owed WHERE since < @look_patience LIMIT @most) x) AS unheld_looks,
		(SELECT count(*) FROM webhooks WHERE enabled) AS addresses_on,
		(SELECT count(*) FROM webhooks WHERE NOT enabled) AS addresses_off,
		(SELECT count(*) FROM webhook_health h JOIN webhooks w ON w.id = h.webhook_id
			WHERE h.failing_since IS NOT NULL AND w.enabled) AS addresses_failing`

func backlogArgs(now models.Time, grace time.Duration) pgx.NamedArgs {
	return pgx.NamedArgs{
		"now": now, "most": BacklogCounted,
		"patience": now.Add(-grace), "look_patience": now.Add(-dirtyGrace(grace)),
	}
}

// Backlog returns what is owed now. What waits for longer than grace and is in
// nobody's hand is what the sweep pokes. Errors: unavailable.
func (s *Service) Backlog(ctx context.Context, grace time.Duration) (Backlog, error) {
	rows, err := s.pool.Query(ctx, backlogQuery, backlogArgs(s.now(), grace))
	if err != nil {
		return Backlog{}, s.translate(err)
	}
	backlog, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Backlog])
	return backlog, s.translate(err)
}
