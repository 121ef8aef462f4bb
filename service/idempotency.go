package service

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
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

// WriteResult is what a write answers: the status, the record's id and the record
// encoded as its reader shows it. A replayed answer is the first one, byte for byte.
type WriteResult struct {
	Status   int
	RecordID string
	Body     []byte
	Replayed bool
}

// storedResponse is what an idempotency key remembers.
type storedResponse struct {
	Fingerprint []byte
	Status      int
	RecordID    string
	Body        []byte
}

// result runs a write of the actor and returns its answer. do queues the
// writing and the reading of the record, whose rows arrive in record with the
// next flush; locks are the ids of the records that it locks. With a key, the
// result is stored in the write's own transaction; a second call with the key
// waits for the first (the advisory lock) and replays it. Errors:
// idempotency_key_reused and those of do.
func (s *Service) writeRecord(
	ctx context.Context, actor Actor, call Call, status int, locks []string,
	do func(ctx context.Context, t *tx) (id string, record func() any, err error),
) (WriteResult, error) {
	var answer WriteResult
	if call.Key != "" {
		locks = append(slices.Clip(locks), call.conflictKey(actor))
	}
	err := s.writeTogether(ctx, locks, func(ctx context.Context, t *tx) error {
		if call.Key != "" {
			t.queueStoredResponse(actor, call)
		}
		id, record, err := do(ctx, t)
		if err != nil {
			return err
		}
		if err := t.Flush(ctx); err != nil {
			return err
		}
		body, err := Encode(record())
		if err != nil {
			return err
		}
		answer = WriteResult{Status: status, RecordID: id, Body: body}
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
		return replay.result, nil
	}
	return answer, err
}

// replayError ends a transaction whose write happened before, and carries its answer out.
type replayError struct{ result WriteResult }

func (*replayError) Error() string { return "the write happened before" }

// conflictKey names the call among all calls with a key.
func (c Call) conflictKey(actor Actor) string {
	return strings.Join([]string{actor.IdentityID, c.Method, c.Path, c.Key}, " ")
}

const lockKey = `SELECT u.nth, {lock}(hashtextextended(u.name, 0)){taken} AS taken FROM unnest($1::text[]) WITH ORDINALITY u (name, nth)`

var (
	lockKeys = &batch.Statement{
		Stage: stageKey, ReadOnly: true,
		SQL:       with(lockKey, "lock", "pg_advisory_xact_lock", "taken", "::text = ''"),
		SharedSQL: with(lockKey, "lock", "pg_try_advisory_xact_lock", "taken", ""),
	}
	storedResponses = &batch.Statement{Stage: stageStored, ReadOnly: true, SQL: `
		SELECT u.nth, k.fingerprint, k.status, k.record_id, k.body
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
			WITH ORDINALITY u (integration_id, method, path, key, since, nth)
		JOIN idempotency_keys k USING (integration_id, method, path, key) WHERE k.created_at > u.since`}
)

// replaceExpiredKey lets a key past its life give its place to the new one: no other is
// left when the answer is stored, since storedResponses found none.
const replaceExpiredKey = `
	ON CONFLICT (integration_id, method, path, key) DO UPDATE SET fingerprint = excluded.fingerprint,
		status = excluded.status, record_id = excluded.record_id, body = excluded.body, created_at = excluded.created_at`

// queueStoredResponse locks the key and looks for its answer. What it finds ends
// the flush, before any rule is looked at.
func (t *tx) queueStoredResponse(actor Actor, call Call) {
	t.QueueBulkRows(lockKeys, func(row pgx.CollectableRow) error {
		var taken bool
		if err := row.Scan(&taken); err != nil {
			return err
		}
		if !taken {
			return batch.ErrRunAlone
		}
		return nil
	}, call.conflictKey(actor))
	t.QueueBulkRows(storedResponses, func(row pgx.CollectableRow) error {
		found, err := pgx.RowToStructByPos[storedResponse](row)
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare(found.Fingerprint, call.Fingerprint) != 1 {
			return models.Errorf(models.CodeIdempotencyKeyReused,
				"The Idempotency-Key was used for another request. Use a new key for a new request.")
		}
		return &replayError{WriteResult{Status: found.Status, RecordID: found.RecordID, Body: found.Body, Replayed: true}}
	}, actor.IdentityID, call.Method, call.Path, call.Key, t.at.Add(-models.IdempotencyRetention))
}
