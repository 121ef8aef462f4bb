package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// FormDoneError is returned if the form was sent before and did its work then. RecordID is what
// it created or changed.
type FormDoneError struct{ RecordID string }

// Error returns the sentence for people.
func (e *FormDoneError) Error() string {
	return "This form was sent before. It acts only once."
}

// ETagOf returns the ETag of a record, which a form passes back (ForForm).
func ETagOf(record any) (string, error) {
	body, err := Encode(record)
	return ETag(body), err
}

// usedFormQuery selects the record that the form with the key $2 of the person $1 created or changed.
const usedFormQuery = `SELECT record_id FROM form_keys WHERE person_id = $1 AND key = $2`

// useForm queues storing that the form did its work on the record.
func (t *Tx) useForm(key Key, recordID string) error {
	return t.Create(&models.FormKey{PersonID: key.personID, Key: key.key, RecordID: recordID, UsedAt: t.At})
}

// FormStaleError is returned if the record has changed since the form was shown. The change is
// the latest one, by its Log Record; without one, ActorName is "".
type FormStaleError struct {
	ActorName, Action string
	// ActorNow is the actor's present name, nil if it is the same.
	ActorNow *string
	At       models.Time
}

// Error returns the sentence for people.
func (e *FormStaleError) Error() string { return "This was changed since you opened the page." }

// AboutNoComment is the condition that an entry of the log is not about a comment, which
// changes no record and sends no event.
const AboutNoComment = `action NOT LIKE '%.comment%'`

// latestChange selects a FormStaleError about the @record of the @organization.
var latestChange = `
	SELECT actor_name, (SELECT ` + ActorNow("log.actor_name") + ` FROM identities i WHERE i.id = log.actor_id) AS actor_now,
		action, created_at AS at FROM log
	WHERE record_id = @record AND organization_id = @organization AND actor_name IS NOT NULL AND ` + AboutNoComment + ` ORDER BY id DESC LIMIT 1`

// Matches rejects a call whose If-Match does not name the record as it is now, and a form
// that was filled from another state of the record, which the actor may change. Errors:
// precondition_failed, *FormStaleError.
func (t *Tx) Matches(ctx context.Context, key Key, record any, organizationID, recordID string) error {
	if key.ifMatch == "" {
		return nil
	}
	tag, err := ETagOf(record)
	if err != nil || ETagMatches(key.ifMatch, tag) {
		return err
	}
	if !key.isForm() {
		if strings.Contains(key.ifMatch, `W/"`) {
			return models.Errorf(models.CodePreconditionFailed, "A weak ETag (W/) in If-Match never matches. Send the ETag as the API sent it.")
		}
		return models.Errorf(models.CodePreconditionFailed, "The record has changed since the ETag in If-Match was read, or the ETag is not one of this record.")
	}
	var changes []FormStaleError
	if err := t.Read(ctx, func(pipeline *pgx.Batch) {
		QueueAll(pipeline, &changes, latestChange, pgx.NamedArgs{"record": recordID, "organization": organizationID})
	}); err != nil {
		return err
	}
	if len(changes) == 0 {
		return &FormStaleError{}
	}
	return &changes[0]
}
