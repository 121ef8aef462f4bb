package store

import (
	"context"

	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/batch"
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

// unusedForm rejects a form that was sent before. Errors: *FormDoneError.
func (t *ORMTx) unusedForm() error {
	if t.key.key == "" {
		return nil
	}
	var used models.FormKey
	err := t.DB.Take(&used, "person_id = ? AND key = ?", t.key.personID, t.key.key).Error
	switch {
	case NotFound(err):
		return nil
	case err != nil:
		return err
	}
	return &FormDoneError{used.RecordID}
}

// useForm stores that the form did its work on the record. A form that is sent twice at a
// time waits here for the first. Errors: *FormDoneError.
func (t *ORMTx) useForm(recordID string) error {
	if t.key.key == "" || t.formUsed {
		return nil
	}
	t.formUsed = true
	result := t.DB.Clauses(clause.OnConflict{DoNothing: true}).
		Create(&models.FormKey{PersonID: t.key.personID, Key: t.key.key, RecordID: recordID, UsedAt: t.At})
	if result.Error == nil && result.RowsAffected == 0 {
		return &FormDoneError{recordID}
	}
	return result.Error
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

// MatchesForm rejects a form that was filled from another state of the record, which the
// actor may change. Errors: *FormStaleError.
func (t *ORMTx) MatchesForm(record any, organizationID, recordID string) error {
	if t.key.ifMatch == "" {
		return nil
	}
	tag, err := ETagOf(record)
	if err != nil || ETagMatches(t.key.ifMatch, tag) {
		return err
	}
	stale, err := ScanOne[FormStaleError](t, &FormStaleError{}, Fill(latestChange, "record", "?", "organization", "?"), recordID, organizationID)
	if err != nil {
		return err
	}
	return &stale
}

// AboutNoComment is the condition that an entry of the log is not about a comment, which
// changes no record and sends no event.
const AboutNoComment = `action NOT LIKE '%.comment%'`

// latestChange selects a FormStaleError about the {record} of the {organization}.
var latestChange = `
	SELECT actor_name, (SELECT ` + Fill(ActorNow, "name", "log.actor_name", "i", "i") + ` FROM identities i WHERE i.id = log.actor_id) AS actor_now,
		action, created_at AS at FROM log
	WHERE record_id = {record} AND organization_id = {organization} AND actor_name IS NOT NULL AND ` + AboutNoComment + ` ORDER BY id DESC LIMIT 1`

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
		return models.Errorf(models.CodePreconditionFailed, "The record has changed since the ETag of If-Match was read.")
	}
	var changes []FormStaleError
	batch.QueueAll(t.Tx, &changes, Fill(latestChange, "record", "$1", "organization", "$2"), recordID, organizationID)
	if err := t.Flush(ctx); err != nil {
		return err
	}
	if len(changes) == 0 {
		return &FormStaleError{}
	}
	return &changes[0]
}
