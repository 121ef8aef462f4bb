package servicetest

import (
	"strings"

	"millwright/models"
)

// SetDeliveries gives the deliveries that the condition selects a status, without an
// attempt. A retrying one is due now.
func (f *Fixture) SetDeliveries(status models.DeliveryStatus, where string, args ...any) {
	f.t.Helper()
	table, next := "deliveries", "NULL::timestamptz"
	switch status { //nolint:exhaustive // the others are finished
	case models.DeliveryPending:
		table = "open_deliveries"
	case models.DeliveryRetrying:
		table, next = "open_deliveries", "now()"
	}
	f.Exec(strings.NewReplacer("{where}", where, "{table}", table, "{next}", next, "{status}", string(status),
		"{columns}", "id, seq, event_id, webhook_id, record_id, attempts, attempts_before, last_status, last_error, created_at").Replace(`
		WITH open AS (DELETE FROM open_deliveries WHERE {where} RETURNING {columns}),
			finished AS (DELETE FROM deliveries WHERE {where} RETURNING {columns})
		INSERT INTO {table} ({columns}, status, next_attempt_at)
		SELECT {columns}, '{status}', {next} FROM (SELECT * FROM open UNION ALL SELECT * FROM finished) d`), args...)
}
