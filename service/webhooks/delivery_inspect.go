package webhooks

import (
	"context"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/store"
	"millwright/webhook"
)

// DeliveryWithAttempts is a delivery with all its attempts, oldest first.
type DeliveryWithAttempts struct {
	DeliveryView
	AttemptsMade []AttemptRecord `json:"attempts_made"`
}

// AttemptRecord is an attempt for people and programs. It has either a status or an error.
type AttemptRecord struct {
	Number    int         `json:"number"`
	StartedAt models.Time `json:"started_at"`
	LatencyMS int64       `json:"latency_ms"`
	Status    *int        `json:"status"`
	Error     *string     `json:"error"`
	RemoteIP  *string     `json:"remote_ip"`
	// ResponseBody is the beginning of the response's body, in base64 if it is not text.
	ResponseBody       *string `json:"response_body"`
	ResponseBodyBase64 bool    `json:"response_body_base64"`
}

// Record returns the attempt as people and programs see it.
func (a Attempt) Record() AttemptRecord {
	record := AttemptRecord{Number: a.Number, StartedAt: a.StartedAt, LatencyMS: a.Latency.Milliseconds()}
	if a.RemoteIP != "" {
		record.RemoteIP = &a.RemoteIP
	}
	if a.Status == 0 {
		record.Error = &a.Error
		return record
	}
	body, isText := printable(a.ResponseBody)
	if !isText {
		body = base64.StdEncoding.EncodeToString(a.ResponseBody)
	}
	record.Status, record.ResponseBody, record.ResponseBodyBase64 = &a.Status, &body, !isText
	return record
}

// Failure returns the reason why the attempt failed, in a sentence, "" if it succeeded.
func (a Attempt) Failure() string {
	switch {
	case a.succeeded():
		return ""
	case a.Status == 0:
		return a.Error
	}
	return fmt.Sprintf("The receiver answered %d.", a.Status)
}

// printable returns the bytes as text, or false if they are not text. If only the
// beginning of a body was kept, its last character may be incomplete and is dropped.
func printable(b []byte) (string, bool) {
	if utf8.Valid(b) {
		return string(b), true
	}
	for cut := 1; cut < utf8.UTFMax && len(b) == webhook.MaxKeptBody; cut++ {
		whole, rest := b[:len(b)-cut], b[len(b)-cut:]
		if utf8.Valid(whole) && !utf8.FullRune(rest) {
			return string(whole), true
		}
	}
	return "", false
}

// DeliveryWithAttempts returns the delivery with its attempts. Like Deliveries, it does not
// check permissions. Errors: not_found, unavailable.
func (s *Webhooks) DeliveryWithAttempts(ctx context.Context, id string) (DeliveryWithAttempts, error) {
	found := DeliveryWithAttempts{AttemptsMade: []AttemptRecord{}}
	return store.Read(ctx, s.Store, "", func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found.DeliveryView, models.NotFound(), `
		SELECT `+deliveryColumns+`
		FROM (SELECT * FROM all_deliveries WHERE id = $1 LIMIT 1) d
		CROSS JOIN LATERAL (SELECT type FROM events WHERE id = d.event_id LIMIT 1) e
		JOIN webhooks h ON h.id = d.webhook_id
		JOIN integrations i ON i.id = h.integration_id AND i.deleted_at IS NULL`, id)
		queueAttemptRecords(pipeline, id, &found.AttemptsMade)
		return nil
	}, func() (DeliveryWithAttempts, error) { return found, nil })
}

// storedAttempt are the columns of an Attempt that is stored.
const storedAttempt = `started_at, latency_ms * interval '1 millisecond' AS latency, coalesce(status, 0) AS status,
		coalesce(error, '') AS error, coalesce(remote_ip, '') AS remote_ip, response_body`

// queueAttemptRecords adds the query of the delivery's attempts, oldest first.
func queueAttemptRecords(pipeline *pgx.Batch, id string, into *[]AttemptRecord) {
	pipeline.Queue(`SELECT number, `+storedAttempt+` FROM all_attempts WHERE delivery_id = $1 ORDER BY number`, id).Query(func(rows pgx.Rows) error {
		made, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Attempt])
		for _, a := range made {
			*into = append(*into, a.Record())
		}
		return err
	})
}
