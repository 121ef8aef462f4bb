package webhooks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// ResponseClass is what receivers responded at the last attempt: "2xx" to "5xx", or "none"
// if an attempt got no response.
type ResponseClass string

// ResponseClasses are the classes of responses that a search accepts.
var ResponseClasses = []ResponseClass{"2xx", "3xx", "4xx", "5xx", ResponseNone}

// ResponseNone is for attempts without a response.
const ResponseNone ResponseClass = "none"

// DeliverySearch restricts deliveries for people who manage integrations. Empty fields
// restrict nothing. Redeliveries that are not finished store it.
type DeliverySearch struct {
	WebhookID     string                `json:"-"` // a redelivery is one address's
	IntegrationID string                `json:"-"`
	Status        models.DeliveryStatus `json:"status,omitempty"`
	Type          models.EventType      `json:"type,omitempty"`
	Response      ResponseClass         `json:"response,omitempty"`
	RecordID      string                `json:"record_id,omitempty"`
	// From and To bound the time of the event; To is not included.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// check rejects what no delivery can have. Errors: invalid_request, not_found.
func (q DeliverySearch) check() error {
	switch {
	case q.WebhookID != "" && !models.IsID(q.WebhookID, models.PrefixWebhook), q.IntegrationID != "" && !models.IsID(q.IntegrationID, models.PrefixIdentity):
		return models.NotFound()
	case q.Status != "" && !slices.Contains(models.DeliveryStatuses, q.Status):
		return models.Errorf(models.CodeInvalidRequest, "There is no delivery status %q.", q.Status)
	case q.Type != "" && !q.Type.Known():
		return models.Errorf(models.CodeInvalidRequest, "There is no event type %q.", q.Type)
	case q.Response != "" && !slices.Contains(ResponseClasses, q.Response):
		return models.Errorf(models.CodeInvalidRequest, "The response is 2xx, 3xx, 4xx, 5xx or none, not %q.", q.Response)
	case q.RecordID != "" && !models.IsID(q.RecordID, models.PrefixWorkOrder, models.PrefixFeedback):
		return models.Errorf(models.CodeInvalidRequest, "A record is the id of a work order or feedback.")
	}
	return nil
}

// isSparse reports whether the index that serves the search also has others.
func (q DeliverySearch) isSparse() bool {
	return q.Type != "" || q.Response != "" || q.Status != ""
}

const (
	// maxSearched limits the deliveries that one page looks through, so that a filter
	// that few match takes no longer on an address with many.
	maxSearched = 8_000
	// maxTypesSearched is maxSearched if their events are looked up for their types.
	maxTypesSearched = 3_200
	// maxRecordEvents limits the latest changes of a record whose deliveries are listed.
	maxRecordEvents = 500
)

// DeliveryItem is a delivery in a list for people.
type DeliveryItem struct {
	DeliveryView
	RecordID string
	// LatencyMS is the last attempt's, nil without one.
	LatencyMS *int
	// URL is the address's, Integration the name of its integration.
	URL, Integration string
	IntegrationID    string
	Enabled          bool
}

// DeliveryPage is a page of a search, newest first.
type DeliveryPage struct {
	Deliveries []DeliveryItem
	// Next is DeliverySearch's position of the next page, "" on the last one.
	Next string
	// SearchedTo is set if the page ends because it has looked through as many deliveries
	// as one page may: the time of the last one.
	SearchedTo *models.Time
	// Webhook is the address that the search is restricted to. Its OffReason is why its deliveries
	// are held, if they are.
	Webhook *Webhook
	// Targets are the integrations and addresses that a search can be restricted to.
	Targets []DeliveryTarget
}

// DeliveryTarget is an integration and one of its addresses, "" if it has none.
type DeliveryTarget struct{ IntegrationID, Integration, WebhookID, URL string }

// openColumns and finishedColumns are the columns of a delivery d of an address with the columns sends and held_before of
// the view sending, h.
const (
	openColumns = `d.id, d.event_id, d.webhook_id, d.record_id, CASE WHEN h.sends AND d.queued_at >= h.held_before THEN d.status ELSE 'held' END AS status,
				d.attempts, d.next_attempt_at, d.last_status, d.last_error, d.created_at, NULL::integer AS latency_ms`
	finishedColumns = `d.id, d.event_id, d.webhook_id, d.record_id, d.status, d.attempts, NULL::timestamptz AS next_attempt_at, d.last_status, d.last_error, d.created_at, d.latency_ms`
)

// searchSource is a source of searchQuery: the rows of a table that the condition selects. The array and the order keep it
// at the address's index (docs/decisions/0032).
func searchSource(table, columns, condition string) string {
	return `(
			SELECT ` + columns + ` FROM ` + table + ` d
			WHERE d.webhook_id = ANY (ARRAY[h.id]) AND d.id < @before AND d.id >= @after AND ` + condition + `
			ORDER BY d.webhook_id DESC, d.id DESC LIMIT @scan)`
}

// recordSource is searchSource for the deliveries of a record, whose events are between the
// ids of @lows and @highs. It follows the primary key: coalesce keeps the address from
// being looked up in the other index, which in an empty table seems as good.
func recordSource(table, columns string) string {
	return `(
			SELECT ` + columns + ` FROM unnest(@lows::text[], @highs::text[]) m (low, high) CROSS JOIN LATERAL (
				SELECT * FROM ` + table + `
				WHERE id >= m.low AND id < m.high AND record_id = @record AND coalesce(webhook_id, '') = h.id AND id < @before
				LIMIT @scan) d)`
}

// searched are the common table expressions of a search: the deliveries of each address
// that the sources return, the newest @scan, and the id down to which every address has
// been looked through.
func searched(sources string) string {
	return `
	scanned AS MATERIALIZED (
		SELECT d.*, h.url, h.enabled, h.integration_id, h.integration
		FROM (SELECT h.id, h.url, h.enabled, h.integration_id, n.name AS integration, s.sends, s.held_before
			FROM webhooks h
			JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
			JOIN identities n ON n.id = i.id
			JOIN sending s ON s.webhook_id = h.id
			WHERE h.organization_id = @organization AND (@webhook = '' OR h.id = @webhook) AND (@integration = '' OR h.integration_id = @integration)
			OFFSET 0) h
		CROSS JOIN LATERAL (SELECT * FROM (` + sources + `) o ORDER BY o.id DESC LIMIT @scan) d
	), frontier AS (
		SELECT coalesce(max(low), '') AS id FROM (SELECT min(id) AS low FROM scanned GROUP BY webhook_id HAVING count(*) >= @scan) complete
	)`
}

// matches is the condition of a search on what no index has.
const matches = `(@status = '' OR d.status = @status) AND (@code = 0 OR d.last_status BETWEEN @code AND @code + 99)
			AND (NOT @none OR d.attempts > 0 AND d.last_status IS NULL)`

// ofType is the condition of a search on the event e.
const ofType = `(@kind = '' OR e.type = @kind)`

// searchQuery returns a page of deliveries after one row with its progress. The
// events are looked up in the order of the page, so that it stops at its end.
func searchQuery(sources string) string {
	return `
	WITH ` + searched(sources) + `, page AS (
		SELECT d.*, e.type AS event_type
		FROM (SELECT * FROM scanned d WHERE d.id >= (SELECT id FROM frontier) AND ` + matches + ` ORDER BY d.id DESC OFFSET 0) d
		CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
		WHERE ` + ofType + ` ORDER BY d.id DESC LIMIT @limit
	)
	SELECT * FROM (
		SELECT d.id, '' AS event_id, '' AS event_type, d.webhook_id, d.record_id, d.status, d.attempts, d.next_attempt_at,
			d.last_status, d.last_error, d.created_at, d.latency_ms, d.url, d.integration, d.integration_id, d.enabled
		FROM scanned d WHERE d.id = (SELECT id FROM frontier)
		UNION ALL
		SELECT p.id, p.event_id, p.event_type, p.webhook_id, p.record_id, p.status, p.attempts, p.next_attempt_at,
			p.last_status, p.last_error, p.created_at, CASE WHEN p.attempts > 0 THEN coalesce(p.latency_ms,
				(SELECT latency_ms FROM attempts WHERE delivery_id = p.id AND number = p.attempts)) END AS latency_ms,
			p.url, p.integration, p.integration_id, p.enabled
		FROM page p
	) d ORDER BY d.event_id <> '', d.id DESC`
}

// boundQuery returns the last of the newest @enough deliveries of the newest @scan of each address.
func boundQuery(sources string) string {
	return `
	WITH ` + searched(sources) + `
	SELECT id FROM scanned ORDER BY id DESC OFFSET @enough - 1 LIMIT 1`
}

// sources returns the sources of the search. A status is a condition only if an index knows it.
func (q DeliverySearch) sources() string {
	if q.RecordID != "" {
		return recordSource("open_deliveries", openColumns) + " UNION ALL " + recordSource("deliveries", finishedColumns)
	}
	open := searchSource("open_deliveries", openColumns, "true")
	finished := func(condition string) string { return searchSource("deliveries", finishedColumns, condition) }
	switch q.Status {
	case models.DeliveryPending, models.DeliveryRetrying, models.DeliveryHeld:
		return open
	case models.DeliveryFailed:
		return finished("d.status = 'failed'")
	case models.DeliveryDelivered, models.DeliverySkipped:
		return finished("true")
	}
	return open + " UNION ALL " + finished("true")
}

// searchStart is what a search reads before its deliveries.
type searchStart struct {
	// targets are all of the organization; addresses counts those it looks through, webhook is the only one.
	targets   []DeliveryTarget
	addresses int
	webhook   []Webhook
	// before is the id that the page precedes, "" if that delivery is no longer kept.
	before      string
	lows, highs []string
	// at is the time before which the newest deliveries are looked up first.
	at time.Time
	// bound is the id where a page begins that is filled by the newest deliveries.
	bound []string
}

// lastID is above the ids of all deliveries.
const lastID = string(models.PrefixDelivery) + "~"

// queueStart adds the queries of what the search needs to know first, and has the round trip
// fail unless the actor may search. before is the id of the delivery that the page follows, ""
// for the first page.
func (s *Webhooks) queueStart(pipeline *pgx.Batch, actor store.Actor, q DeliverySearch, before string, start *searchStart) {
	start.before, start.at = lastID, s.Now()
	if !q.To.IsZero() {
		start.at = q.To
	}
	args := pgx.NamedArgs{"organization": actor.OrganizationID, "webhook": q.WebhookID}
	access.QueueMayManage(pipeline, actor)
	pipeline.Queue(`SELECT i.id AS integration_id, n.name AS integration, coalesce(h.id, '') AS webhook_id, coalesce(h.url, '') AS url
		FROM integrations i JOIN identities n ON n.id = i.id LEFT JOIN webhooks h ON h.integration_id = i.id
		WHERE i.organization_id = @organization AND i.deleted_at IS NULL ORDER BY n.sort_key, i.id, h.url, h.id`, args).Query(func(rows pgx.Rows) (err error) {
		start.targets, err = store.CollectRows[DeliveryTarget](rows)
		for _, t := range start.targets {
			if t.WebhookID != "" && (q.WebhookID == "" || q.WebhookID == t.WebhookID) && (q.IntegrationID == "" || q.IntegrationID == t.IntegrationID) {
				start.addresses++
			}
		}
		return err
	})
	if q.WebhookID != "" {
		store.QueueAll(pipeline, &start.webhook, `SELECT h.id, h.integration_id, h.url, h.events, h.enabled, coalesce(h.off_reason, `+unusableReason("h")+`) AS off_reason, h.off_at
			FROM webhooks h JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL
			WHERE h.organization_id = @organization AND h.id = @webhook`, args)
	}
	if before != "" {
		pipeline.Queue(`SELECT d.id, d.created_at FROM all_deliveries d JOIN webhooks h ON h.id = d.webhook_id
			WHERE d.id = $1 AND h.organization_id = $2 UNION ALL SELECT '', 'epoch' ORDER BY id DESC LIMIT 1`, before, actor.OrganizationID).
			QueryRow(func(row pgx.Row) error { return row.Scan(&start.before, &start.at) })
	}
	if q.RecordID != "" {
		q.queueChanges(pipeline, s.Now(), &start.lows, &start.highs)
	}
}

// queueChanges adds the query of the ids around the deliveries of the record's latest changes: each
// change is logged at the time of its events' ids.
func (q DeliverySearch) queueChanges(pipeline *pgx.Batch, now time.Time, lows, highs *[]string) {
	pipeline.Queue(`SELECT DISTINCT created_at FROM (
			SELECT created_at FROM log WHERE record_id = $1 AND created_at > $2 AND changes IS NOT NULL AND `+store.AboutNoComment+` ORDER BY id DESC LIMIT $3) latest`,
		q.RecordID, now.Add(-models.EventRetention), maxRecordEvents).Query(func(rows pgx.Rows) error {
		times, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
		*lows, *highs = []string{}, []string{}
		for _, at := range times {
			if !at.Before(q.From) && (q.To.IsZero() || at.Before(q.To)) {
				*lows = append(*lows, models.FirstID(models.PrefixDelivery, at))
				*highs = append(*highs, models.FirstID(models.PrefixDelivery, at.Add(time.Millisecond)))
			}
		}
		return err
	})
}

// arguments are the parameters of a search that looks through scan deliveries.
func (q DeliverySearch) arguments(actor store.Actor, start searchStart, scan int) pgx.NamedArgs {
	code := 0
	if q.Response != "" && q.Response != ResponseNone {
		code = int(q.Response[0]-'0') * 100
	}
	after, before := "", start.before
	if !q.From.IsZero() {
		after = models.FirstID(models.PrefixDelivery, q.From)
	}
	if len(start.bound) > 0 {
		after = max(after, start.bound[0])
	}
	if !q.To.IsZero() {
		before = min(before, models.FirstID(models.PrefixDelivery, q.To))
	}
	return pgx.NamedArgs{
		"organization": actor.OrganizationID, "webhook": q.WebhookID, "integration": q.IntegrationID, "before": before, "after": after, "scan": scan,
		"lows": start.lows, "highs": start.highs, "record": q.RecordID,
		"status": string(q.Status), "code": code, "none": q.Response == ResponseNone, "kind": string(q.Type),
	}
}

// SearchDeliveries returns a page of the deliveries of the actor's organization, the newest
// first. before is DeliveryPage.Next of the previous page, "" for the first one. A page
// looks through a bounded number of deliveries: with filters that few match it may be short,
// and reports its progress. Errors: permission_denied, not_found (no such address or integration),
// invalid_request, cursor_expired, unavailable.
func (s *Webhooks) SearchDeliveries(ctx context.Context, actor store.Actor, search DeliverySearch, before string, limit int) (DeliveryPage, error) {
	if err := search.check(); err != nil {
		return DeliveryPage{}, err
	}
	if before != "" && !models.IsID(before, models.PrefixDelivery) {
		return DeliveryPage{}, models.Errorf(models.CodeInvalidRequest, "The page is not one of this list.")
	}
	limit = min(cmp.Or(max(limit, 0), models.DefaultPageSize), models.MaxPageSize)
	var start searchStart
	var found []DeliveryItem
	// A page is full after few deliveries if most of them match. Of many addresses, few have
	// any of the newest deliveries: where these begin is looked up first.
	enough := 4 * (limit + 1)
	query := func(pipeline *pgx.Batch, scan int) {
		args := search.arguments(actor, start, scan)
		args["limit"] = limit + 1
		store.QueueAll(pipeline, &found, searchQuery(search.sources()), args)
	}
	scan := func(most int) int { return max(limit+1, most/max(start.addresses, 1)) }
	rounds := store.Rounds{
		func(pipeline *pgx.Batch) error {
			s.queueStart(pipeline, actor, search, before, &start)
			return nil
		},
		func(pipeline *pgx.Batch) error {
			if err := start.check(search); err != nil || start.addresses <= 4 || search.RecordID != "" {
				return err
			}
			newest := search // of a day: each partition is another index for each address
			if day := start.at.Add(-24 * time.Hour); newest.From.Before(day) {
				newest.From = day
			}
			args := newest.arguments(actor, start, 1+4*enough/start.addresses)
			args["enough"] = enough
			store.QueueValues(pipeline, &start.bound, boundQuery(search.sources()), args)
			return nil
		},
		func(pipeline *pgx.Batch) error {
			if len(start.bound) > 0 {
				query(pipeline, enough)
			} else {
				query(pipeline, scan(enough))
			}
			return nil
		},
		func(pipeline *pgx.Batch) error {
			bounded, most := len(start.bound) > 0, enough
			if search.isSparse() {
				most = search.mostSearched()
			}
			if isFull(found, limit) || !bounded && (isComplete(found) || scan(most) == scan(enough)) {
				return nil
			}
			start.bound = nil
			query(pipeline, scan(most))
			return nil
		},
	}
	return store.ReadInRounds(ctx, s.Store, actor.OrganizationID, rounds, func() (DeliveryPage, error) { return start.page(found, limit), nil })
}

// mostSearched limits the deliveries that a page of the search looks through.
func (q DeliverySearch) mostSearched() int {
	if q.Type != "" {
		return maxTypesSearched
	}
	return maxSearched
}

// check returns an error if the search may not go on. Errors: not_found, cursor_expired.
func (start searchStart) check(search DeliverySearch) error {
	switch {
	case search.WebhookID != "" && len(start.webhook) == 0,
		search.IntegrationID != "" && !slices.ContainsFunc(start.targets, func(t DeliveryTarget) bool { return t.IntegrationID == search.IntegrationID }):
		return models.NotFound()
	case start.before == "":
		return models.Errorf(models.CodeCursorExpired, "The deliveries of this page are no longer kept.")
	}
	return nil
}

// isFull reports whether the rows fill a page.
func isFull(found []DeliveryItem, limit int) bool {
	return len(found) > limit+1 || len(found) == limit+1 && found[0].EventID != ""
}

// isComplete reports whether nothing is left to look through.
func isComplete(found []DeliveryItem) bool { return len(found) == 0 || found[0].EventID != "" }

// page makes a page from the rows found.
func (start searchStart) page(found []DeliveryItem, limit int) DeliveryPage {
	page := DeliveryPage{Targets: start.targets}
	if len(start.webhook) > 0 {
		page.Webhook = &start.webhook[0]
	}
	var end *DeliveryItem
	if len(found) > 0 && found[0].EventID == "" { // where the search stopped
		end, found = &found[0], found[1:]
	}
	full := len(found) > limit
	found = found[:min(limit, len(found))]
	page.Deliveries = append(page.Deliveries, found...)
	switch {
	case full:
		page.Next = found[limit-1].ID
	case end != nil:
		page.Next, page.SearchedTo = end.ID, &end.CreatedAt
	}
	return page
}
