package servicetest

import (
	"crypto/rand"
	"strings"
	"time"

	"millwright/models"
)

// SetDeliveries gives the deliveries that the condition selects a status, without an
// attempt. A retrying one is due now. A held one waits for its address to be turned on with a time.
func (f *Fixture) SetDeliveries(status models.DeliveryStatus, where string, args ...any) {
	f.t.Helper()
	table, column, values := openOr(status)
	f.Exec(strings.NewReplacer("{where}", where, "{table}", table, "{column}", column, "{values}", values, "{status}", string(stored(status)),
		"{columns}", "id, event_id, webhook_id, record_id, attempts, attempts_before, last_status, last_error, created_at").Replace(`
		WITH open AS (DELETE FROM open_deliveries WHERE {where} RETURNING {columns}),
			finished AS (DELETE FROM deliveries WHERE {where} RETURNING {columns})
		INSERT INTO {table} ({columns}, status{column})
		SELECT {columns}, '{status}'{values} FROM (SELECT * FROM open UNION ALL SELECT * FROM finished) d`), args...)
	if status == models.DeliveryHeld {
		f.hold(where, args...)
	}
}

// hold has the addresses of open deliveries hold them, and everything older, as if they had been off since.
func (f *Fixture) hold(where string, args ...any) {
	f.t.Helper()
	f.Exec(`UPDATE webhooks w SET held_before = greatest(w.held_before, d.newest + interval '1 millisecond')
		FROM (SELECT webhook_id, max(queued_at) AS newest FROM open_deliveries WHERE `+where+` GROUP BY webhook_id) d WHERE d.webhook_id = w.id`, args...)
}

// stored is the status in the row of a delivery with the status.
func stored(status models.DeliveryStatus) models.DeliveryStatus {
	if status == models.DeliveryHeld {
		return models.DeliveryPending
	}
	return status
}

// openOr returns the table of deliveries with the status, and what open ones have besides the common columns.
func openOr(status models.DeliveryStatus) (table, columns, values string) {
	switch status { //nolint:exhaustive // the others are finished
	case models.DeliveryPending, models.DeliveryHeld:
		return "open_deliveries", ", queued_at", ", created_at"
	case models.DeliveryRetrying:
		return "open_deliveries", ", queued_at, next_attempt_at", ", created_at, now()"
	}
	return "deliveries", "", ""
}

// PlantDeliveries inserts n deliveries of the events of one type about a record to an
// address of the fixture: the first at the time, each a second later. They have the status,
// after one attempt with the response unless it is pending or held; 0 is no response.
func (f *Fixture) PlantDeliveries(hook, recordID string, kind models.EventType, status models.DeliveryStatus, response, n int, at time.Time) {
	f.t.Helper()
	events, deliveries, times := make([]string, n), make([]string, n), make([]time.Time, n)
	for i := range n {
		times[i] = at.Add(time.Duration(i) * time.Second)
		var err error
		if events[i], err = models.NewID(models.PrefixEvent, times[i], rand.Reader); err != nil {
			f.t.Fatal(err)
		}
		deliveries[i] = string(models.PrefixDelivery) + strings.TrimPrefix(events[i], string(models.PrefixEvent))
	}
	table, column, values := openOr(status)
	attempts := 1
	if status == models.DeliveryPending || status == models.DeliveryHeld {
		attempts = 0
	}
	f.Exec(`INSERT INTO events (id, organization_id, type, record_id, actor_id, data, created_at)
		SELECT id, (SELECT organization_id FROM webhooks WHERE id = $3), $4, $5, $6, '{}', at FROM unnest($1::text[], $2::timestamptz[]) u (id, at)`,
		events, times, f.ID(hook), string(kind), recordID, f.ID("erp"))
	f.Exec(`INSERT INTO `+table+` (id, event_id, webhook_id, record_id, status, attempts, last_status, last_error, created_at`+column+`)
		SELECT id, event, $4, $5, $6, $7, CASE WHEN $7 > 0 AND $8 > 0 THEN $8 END,
			CASE WHEN $7 > 0 AND $8 = 0 THEN 'No response came within 10 seconds.' END, at`+strings.Replace(values, "created_at", "at", 1)+`
		FROM unnest($1::text[], $2::text[], $3::timestamptz[]) u (id, event, at)`,
		deliveries, events, times, f.ID(hook), recordID, string(stored(status)), attempts, response)
	if status == models.DeliveryHeld {
		f.hold(`id = ANY ($1)`, deliveries)
	}
	if attempts > 0 {
		f.Exec(`INSERT INTO attempts (delivery_id, number, started_at, latency_ms, status, error)
			SELECT id, 1, at, 25, nullif($3, 0), CASE WHEN $3 = 0 THEN 'No response came within 10 seconds.' END FROM unnest($1::text[], $2::timestamptz[]) u (id, at)`,
			deliveries, times, response)
	}
}

// AddAddresses adds n integrations to the ERP's organization with an address each, whose URLs
// end in /other/0 and so on.
func (f *Fixture) AddAddresses(n int) {
	f.t.Helper()
	const erp, numbers = ` FROM integrations i JOIN webhooks h ON h.integration_id = i.id, generate_series(0, $2::int - 1) n WHERE h.id = $1`, `lpad(n::text, 26, '0')`
	f.Exec(`INSERT INTO identities (id, organization_id, kind, name, created_at, changed_at)
		SELECT 'idn_' || `+numbers+`, i.organization_id, 'integration', 'Other ' || n, h.created_at, h.created_at`+erp, f.ID("erp_hook"), n)
	f.Exec(`INSERT INTO integrations (id, organization_id, client_id, secret_hash, scopes)
		SELECT 'idn_' || `+numbers+`, i.organization_id, 'cli_' || n, i.secret_hash, i.scopes`+erp, f.ID("erp_hook"), n)
	f.Exec(`INSERT INTO webhooks (id, organization_id, integration_id, slot, url, events, secret_sealed, created_at, enabled_since, held_before, enabled)
		SELECT 'whk_' || `+numbers+`, h.organization_id, 'idn_' || `+numbers+`, 1, 'https://example.com/other/' || n, h.events, h.secret_sealed, h.created_at, h.enabled_since, h.held_before, true`+erp,
		f.ID("erp_hook"), n)
}
