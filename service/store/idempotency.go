package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/batch"
)

// Key identifies what asks for a write, which is made once regardless of how often it is asked
// for, and on which state of the record. ForCall and ForForm make keys.
type Key struct {
	key, method, path string
	fingerprint       []byte
	ifMatch           string
	// personID is the person who sent the form.
	personID string
}

// NoKey is the key of a command's write, of the service's own, and of a call without an
// idempotency key and without If-Match: each is a new write, on any state of the record.
var NoKey Key

// ForCall returns the key of an HTTP call or of an operator's update of a workflow, of which a retry
// replays the stored response. The idempotency key may be ""; with the method and path (an update
// has its name and workflow id) it identifies the retries. The fingerprint is a digest of the
// request's JSON value, which is the same in a retry. ifMatch is the If-Match header: the ETags that
// the record may have, "" if it may have any.
func ForCall(key, method, path string, fingerprint []byte, ifMatch string) Key {
	return Key{key: key, method: method, path: path, fingerprint: fingerprint, ifMatch: ifMatch}
}

// ForForm returns the key of a form of the console that the person sent. Only the record's id is
// kept of its write, since the response may contain a secret: when the form is sent again, whatever
// was entered then, the write is rejected with a *FormDoneError (docs/console.md, Rules of the
// pages). A write that logs nothing does not use the form up, unless it is of a work order or
// feedback. ifMatch is the ETag of the record that the form was filled from, "" if there was none.
func ForForm(personID, key, ifMatch string) Key {
	return Key{key: key, method: formMethod, fingerprint: []byte{}, ifMatch: ifMatch, personID: personID}
}

// formMethod stands for the HTTP method in the keys of forms.
const formMethod = "FORM"

func (k Key) isForm() bool { return k.method == formMethod }

// WriteResult is the result of a write: the HTTP status, the record's id and the
// record encoded as its GET shows it. A replayed result equals the first one byte
// for byte, but for the people that its caller may not see.
type WriteResult struct {
	Status   int
	RecordID string
	Body     []byte
	// Replayed is true if the response repeats an earlier one, and Readable whether its caller could
	// read the record then.
	Replayed, Readable bool
}

// storedResponse is the response stored with an idempotency key.
type storedResponse struct {
	Fingerprint []byte
	Status      int
	RecordID    string
	Readable    bool
	Body        []byte
}

// WriteRecord runs a write of the actor and returns its result. do queues the write and returns
// the record as the write leaves it; locks name what do locks: the ids of records, or names for
// QueueLockKey. With a key, the response is stored in the write's transaction. A second call with
// the key waits for the first at an advisory lock and replays its response (api.md 4.17), which the
// caller may show to those who may still read the record. Errors: idempotency_key_reused,
// *FormDoneError and do's.
func (s *Store) WriteRecord(
	ctx context.Context, actor Actor, key Key, status int, locks []string,
	do func(ctx context.Context, t *Tx) (id string, record any, err error),
) (WriteResult, error) {
	var result WriteResult
	if key.key != "" {
		locks = append(slices.Clip(locks), key.conflictKey(actor))
	}
	err := s.WriteTogether(ctx, actor.OrganizationID, locks, func(ctx context.Context, t *Tx) error {
		if key.key != "" {
			t.queueStoredResponse(actor, key)
		}
		id, record, err := do(ctx, t)
		if err != nil {
			return err
		}
		body, err := Encode(record)
		if err != nil {
			return err
		}
		result = WriteResult{Status: status, RecordID: id, Body: body}
		if key.key == "" {
			return nil
		}
		return t.Insert(&models.StoredResponse{
			Digest:      key.digest(actor),
			Slot:        models.ResponseSlot(t.At),
			Status:      status,
			CreatedAt:   t.At,
			Fingerprint: key.fingerprint,
			RecordID:    id,
			Readable:    !t.Unreadable && actor.HasReadScope(id),
			Body:        body,
		})
	})
	if replay, ok := errors.AsType[*replayError](err); ok {
		if key.isForm() {
			return WriteResult{}, &FormDoneError{replay.result.RecordID}
		}
		return replay.result, nil
	}
	return result, err
}

// replayError rolls back a repeated write and carries the result of the first.
type replayError struct{ result WriteResult }

func (*replayError) Error() string { return "the write is a repetition" }

// conflictKey identifies the call among all calls with a key.
func (k Key) conflictKey(actor Actor) string {
	return strings.Join([]string{actor.IdentityID, k.method, k.path, k.key}, " ")
}

// digest identifies the call among all calls with a key: half of a SHA-256 of its parts,
// each with its length.
func (k Key) digest(actor Actor) []byte {
	digest := sha256.New()
	for _, part := range []string{actor.IdentityID, k.method, k.path, k.key} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		digest.Write(length[:])
		digest.Write([]byte(part))
	}
	return digest.Sum(nil)[:16]
}

const lockKey = `SELECT u.nth, {lock}(hashtextextended(u.name, 0)){taken} AS taken FROM unnest($1::text[]) WITH ORDINALITY u (name, nth)`

var (
	lockKeys = &batch.Statement{
		Stage: stageKey, ReadOnly: true,
		SQL:       Fill(lockKey, "lock", "pg_advisory_xact_lock", "taken", "::text = ''"),
		SharedSQL: Fill(lockKey, "lock", "pg_try_advisory_xact_lock", "taken", ""),
	}
	storedResponses = &batch.Statement{Stage: stageStored, ReadOnly: true, SQL: `
		SELECT u.nth, k.fingerprint, k.status, k.record_id, k.readable, k.body
		FROM unnest($1::bytea[], $2::timestamptz[]) WITH ORDINALITY u (digest, since, nth)
		CROSS JOIN LATERAL (
			SELECT fingerprint, status, record_id, readable, body FROM stored_responses
			WHERE digest = u.digest AND created_at > u.since LIMIT 1) k`}
)

// replaceExpiredResponse replaces a response of a slot that was not emptied in time. The
// row cannot be another one, since storedResponses found none under the advisory lock.
const replaceExpiredResponse = `
	ON CONFLICT (digest, slot) DO UPDATE SET fingerprint = excluded.fingerprint,
		status = excluded.status, record_id = excluded.record_id, readable = excluded.readable, body = excluded.body, created_at = excluded.created_at`

// QueueLockKey queues locking a name until the transaction ends, against writes of all
// processes. In a shared transaction the write does not wait, but runs alone.
func (t *Tx) QueueLockKey(name string) {
	t.QueueBulkRows(lockKeys, func(row pgx.CollectableRow) error {
		var taken bool
		if err := row.Scan(&taken); err != nil {
			return err
		}
		if !taken {
			return batch.ErrRunAlone
		}
		return nil
	}, name)
}

// queueStoredResponse queues locking the key and loading its response. If there is
// one, the flush fails with replayError or idempotency_key_reused before any rule
// is checked.
func (t *Tx) queueStoredResponse(actor Actor, key Key) {
	t.QueueLockKey(key.conflictKey(actor))
	t.QueueBulkRows(storedResponses, func(row pgx.CollectableRow) error {
		found, err := pgx.RowToStructByPos[storedResponse](row)
		if err != nil {
			return err
		}
		return key.replay(actor, found)
	}, key.digest(actor), t.At.Add(-models.IdempotencyRetention))
}

// replay returns the error with which a call is rolled back that repeats the one whose response was
// found. Errors: *replayError, idempotency_key_reused.
func (k Key) replay(actor Actor, found storedResponse) (err error) {
	if subtle.ConstantTimeCompare(found.Fingerprint, k.fingerprint) != 1 {
		return models.Errorf(models.CodeIdempotencyKeyReused,
			"The Idempotency-Key was used for another request. Use a new key for a new request.")
	}
	body := found.Body
	if !actor.ShowPeople {
		if body, err = withoutPeople(body); err != nil {
			return err
		}
	}
	return &replayError{WriteResult{Status: found.Status, RecordID: found.RecordID, Body: body, Replayed: true, Readable: found.Readable}}
}

// withoutPeople removes the member people, which is not the first, of an encoded
// record. The rest stays as it is, byte for byte.
func withoutPeople(record []byte) ([]byte, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(record))
	if _, err := decoder.ReadToken(); err != nil {
		return nil, fmt.Errorf("read a stored record: %w", err)
	}
	for decoder.PeekKind() == '"' {
		begin := decoder.InputOffset()
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("read a stored record: %w", err)
		}
		people := name.String() == "people"
		if err := decoder.SkipValue(); err != nil {
			return nil, fmt.Errorf("read a stored record: %w", err)
		}
		if people {
			return slices.Concat(record[:begin], record[decoder.InputOffset():]), nil
		}
	}
	return record, nil
}
