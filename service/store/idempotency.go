package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"millwright/models"
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

// Write runs a write of the actor in a transaction (Run) and returns its result. do decides and queues what changes,
// and returns the id of the record and the record as the write leaves it. With a key, the response is stored in the
// write's transaction, of a form the record's id alone. A second call with the key waits for the first and replays its
// response (api.md 4.17), which the caller may show to those who may still read the record. Errors: idempotency_key_reused,
// *FormDoneError, Run's, and unavailable if a lock or a statement takes too long.
func (s *Store) Write(
	ctx context.Context, actor Actor, key Key, status int, lock Lock, read func(*pgx.Batch), do func(*Tx) (id string, record any, err error),
) (WriteResult, error) {
	var result WriteResult
	write := func(t *Tx) error {
		id, record, err := do(t)
		if err != nil {
			return err
		}
		body, err := Encode(record)
		if err != nil {
			return err
		}
		result = WriteResult{Status: status, RecordID: id, Body: body}
		switch {
		case key.key == "":
			return nil
		case key.isForm():
			return t.useForm(key, id)
		default:
			return t.storeResponse(actor, key, result)
		}
	}
	err := s.withKey(ctx, key, actor, func(first beginning) error {
		return s.run(ctx, actor.OrganizationID, lock, first, read, write)
	})
	if replay, ok := errors.AsType[*replayError](err); ok {
		return replay.result, nil
	}
	if err != nil {
		return WriteResult{}, Limited(s.Translate(err))
	}
	return result, nil
}

// replayError rolls back a repeated write and carries the result of the first.
type replayError struct{ result WriteResult }

func (*replayError) Error() string { return "the write is a repetition" }

// name identifies the call among all calls with a key, "" without a key.
func (k Key) name(actor Actor) string {
	if k.key == "" {
		return ""
	}
	return hex.EncodeToString(k.digest(actor))
}

// caller is the id of the identity that makes the call: of a form, the person's who sent it.
func (k Key) caller(actor Actor) string { return cmp.Or(k.personID, actor.IdentityID) }

// digest identifies the call among all calls with a key: half of a SHA-256 of its parts,
// each with its length.
func (k Key) digest(actor Actor) []byte {
	digest := sha256.New()
	for _, part := range []string{k.caller(actor), k.method, k.path, k.key} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		digest.Write(length[:])
		digest.Write([]byte(part))
	}
	return digest.Sum(nil)[:16]
}

// lockKey locks a key until the transaction ends, unless another one has it locked.
const lockKey = `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`

const (
	ofKey = ` FROM stored_responses WHERE digest = @key_digest AND created_at > @key_since LIMIT 1`
	// storedResponseQuery selects the storedResponse of the key with the Arguments.
	storedResponseQuery = `SELECT fingerprint, status, record_id, readable, body` + ofKey
	// UnusedKey is the condition that the key has no stored response.
	UnusedKey = `(SELECT true` + ofKey + `) IS NULL`
)

// Arguments adds to the arguments of a query what UnusedKey takes.
func (k Key) Arguments(actor Actor, now models.Time, args pgx.NamedArgs) pgx.NamedArgs {
	args["key_digest"], args["key_since"] = k.digest(actor), now.Add(-models.IdempotencyRetention)
	return args
}

// errKeyHeld is the error of a transaction whose key another process holds.
var errKeyHeld = errors.New("another process runs a call with the key")

// keyPoll is the pause before a call asks again for a key that another process holds.
const keyPoll = 50 * time.Millisecond

// withKey runs a write with the key while no other one with it runs, here or in another process, where it waits as long as
// the caller does: a repeated call replays the response of the first. It waits without a connection and without a place
// among the writes.
func (s *Store) withKey(ctx context.Context, key Key, actor Actor, write func(beginning) error) error {
	return s.oneAtATime(ctx, key.name(actor), func() error {
		for {
			err := write(beginning{
				statement: "BEGIN", queries: func(pipeline *pgx.Batch) { key.queueUnused(pipeline, actor, s.CurrentTime()) },
				lockTimeout: s.LockTimeout, statementTimeout: s.StatementTimeout,
			})
			if !errors.Is(err, errKeyHeld) {
				return err
			}
			select {
			case <-time.After(keyPoll):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

// queueUnused queues locking the key and finding out whether it was used. If it was, the round trip fails with
// replayError, FormDoneError or idempotency_key_reused; if it is locked, with errKeyHeld.
func (k Key) queueUnused(begin *pgx.Batch, actor Actor, now models.Time) {
	if k.key == "" {
		return
	}
	begin.Queue(lockKey, k.name(actor)).QueryRow(func(row pgx.Row) error {
		var locked bool
		err := row.Scan(&locked)
		if err == nil && !locked {
			err = errKeyHeld
		}
		return err
	})
	if k.isForm() {
		begin.Queue(usedFormQuery, k.personID, k.key).Query(func(rows pgx.Rows) error {
			used, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err == nil && len(used) > 0 {
				err = &FormDoneError{used[0]}
			}
			return err
		})
		return
	}
	queue(begin, storedResponseQuery, []any{k.Arguments(actor, now, pgx.NamedArgs{})}).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[storedResponse])
		if err == nil && len(found) > 0 {
			err = k.replay(actor, found[0])
		}
		return err
	})
}

// storeResponse queues storing the result of the call with the key.
func (t *Tx) storeResponse(actor Actor, key Key, result WriteResult) error {
	return t.Upsert(&models.StoredResponse{ // one of a slot that was not emptied in time has expired: none was found under the lock
		Digest: key.digest(actor), Slot: models.ResponseSlot(t.At), Status: result.Status, CreatedAt: t.At, Fingerprint: key.fingerprint,
		RecordID: result.RecordID, Readable: !t.Unreadable && actor.HasReadScope(result.RecordID), Body: result.Body,
	})
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
