package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// Call is how a write was asked for: what makes its retry the same call.
type Call struct {
	// Key is the idempotency key, "" for a call without one.
	Key string
	// Method and Path are those of the HTTP call.
	Method, Path string
	// Fingerprint tells one request body from another.
	Fingerprint []byte
	// IfMatch holds the ETags one of which the record must still have, "" for any.
	IfMatch string
}

// Answer is what a write answers: the status, the record's id and the record
// encoded as its reader shows it. A replayed answer is the first one, byte for byte.
type Answer struct {
	Status   int
	RecordID string
	Body     []byte
	Replayed bool
}

// Encode writes a record as JSON the way every answer and event shows it.
func Encode(record any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record); err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// IdempotencyRetention is how long a key is kept (contract, idempotency).
const IdempotencyRetention = 24 * time.Hour

// storedAnswer is what an idempotency key remembers.
type storedAnswer struct {
	Fingerprint []byte
	Status      int
	RecordID    string
	Body        []byte
}

// answer runs a write of the actor and returns its answer. do queues the
// writing and the reading of the record, whose rows arrive in record with the
// next flush. With a key, the answer is stored in the write's own transaction;
// a second call with the key waits for the first (the advisory lock) and
// replays it. Errors: idempotency_key_reused and those of do.
func (s *Service) answer(
	ctx context.Context, actor Actor, call Call, status int,
	do func(ctx context.Context, t *tx) (id string, record func() any, err error),
) (Answer, error) {
	var answer Answer
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		if call.Key != "" {
			t.queueStoredAnswer(actor, call)
		}
		id, record, err := do(ctx, t)
		if err != nil {
			return err
		}
		if err := t.flush(ctx); err != nil {
			return err
		}
		body, err := Encode(record())
		if err != nil {
			return err
		}
		answer = Answer{Status: status, RecordID: id, Body: body}
		if call.Key == "" {
			return nil
		}
		return t.insert(&models.IdempotencyKey{
			IntegrationID: actor.IdentityID,
			Method:        call.Method,
			Path:          call.Path,
			Key:           call.Key,
			Fingerprint:   call.Fingerprint,
			Status:        status,
			RecordID:      id,
			Body:          body,
			CreatedAt:     t.at,
		})
	})
	if replay, ok := errors.AsType[*replayError](err); ok {
		return replay.answer, nil
	}
	return answer, err
}

// replayError ends a transaction whose write happened before, and carries its answer out.
type replayError struct{ answer Answer }

func (*replayError) Error() string { return "the write happened before" }

// queueStoredAnswer locks the key and looks for its answer. What it finds ends
// the flush, before any rule is looked at.
func (t *tx) queueStoredAnswer(actor Actor, call Call) {
	t.queue(`SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(' ', $1::text, $2::text, $3::text, $4::text), 0))`,
		actor.IdentityID, call.Method, call.Path, call.Key)
	t.batch.Queue(`
		SELECT fingerprint, status, record_id, body FROM idempotency_keys
		WHERE integration_id = $1 AND method = $2 AND path = $3 AND key = $4 AND created_at > $5`,
		actor.IdentityID, call.Method, call.Path, call.Key, t.at.Add(-IdempotencyRetention),
	).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[storedAnswer])
		if err != nil || len(found) == 0 {
			return err
		}
		if subtle.ConstantTimeCompare(found[0].Fingerprint, call.Fingerprint) != 1 {
			return models.Errorf(models.CodeIdempotencyKeyReused,
				"The Idempotency-Key was used for another request. Use a new key for a new request.")
		}
		return &replayError{Answer{
			Status: found[0].Status, RecordID: found[0].RecordID, Body: found[0].Body, Replayed: true,
		}}
	})
	// A key past its life gives its place to the new one.
	t.queue(`DELETE FROM idempotency_keys
		WHERE integration_id = $1 AND method = $2 AND path = $3 AND key = $4 AND created_at <= $5`,
		actor.IdentityID, call.Method, call.Path, call.Key, t.at.Add(-IdempotencyRetention))
}

// ETag returns the entity tag of an encoded record. It is strong: the same tag
// means the same bytes.
func ETag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

// ETagMatches reports whether an If-Match header names the tag (RFC 9110 section
// 13.1.1: strong comparison, so a weak form is no match).
func ETagMatches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		if candidate = strings.TrimSpace(candidate); candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}
