package store

import (
	"context"

	"gorm.io/gorm/clause"

	"millwright/models"
	"millwright/service/batch"
)

// Submission is a form of the console that was sent: it acts at most once, on the state of the
// record that it was filled from.
type Submission struct {
	PersonID string
	// Key identifies the form that was shown. It is stored in the transaction of the write
	// that the form causes.
	Key string
	// IfMatch is the ETag of the record that the form was filled from, "" if there was none.
	IfMatch string
}

// call is the form as a call: a form that is sent again is a retry with an idempotency key,
// whatever was entered then (docs/console.md, Rules of the pages).
func (f Submission) call() Key {
	return ForCall(f.Key, formMethod, "", []byte{}, f.IfMatch)
}

// FormDoneError is returned if the form was sent before and did its work then. RecordID is what
// it created or changed.
type FormDoneError struct{ RecordID string }

// Error returns the sentence for people.
func (e *FormDoneError) Error() string {
	return "This form was sent before. It acts only once."
}

type formKey struct{}

// WithSubmission returns a context whose next logged write is the form's. Writes that change
// nothing do not use the form up, unless they are of work orders or feedback (Submission.call).
func WithSubmission(ctx context.Context, form Submission) context.Context {
	return context.WithValue(ctx, formKey{}, form)
}

// SubmissionOf returns the form of the context, if there is one.
func SubmissionOf(ctx context.Context) (Submission, bool) {
	form, ok := ctx.Value(formKey{}).(Submission)
	return form, ok
}

// formMethod stands for the HTTP method in the calls of forms.
const formMethod = "FORM"

// ETagOf returns the ETag of a record, which a form passes back in Submission.IfMatch.
func ETagOf(record any) (string, error) {
	body, err := Encode(record)
	return ETag(body), err
}

func (k Key) isForm() bool { return k.method == formMethod }

// OrForm returns the call of the context's form, if there is one, else the call.
func (k Key) OrForm(ctx context.Context) Key {
	if form, sent := SubmissionOf(ctx); sent {
		return form.call()
	}
	return k
}

// unusedForm rejects a form that was sent before. Errors: *FormDoneError.
func (t *ORMTx) unusedForm() error {
	if t.form.Key == "" {
		return nil
	}
	var used models.FormKey
	err := t.DB.Take(&used, "person_id = ? AND key = ?", t.form.PersonID, t.form.Key).Error
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
	if t.form.Key == "" || t.formUsed {
		return nil
	}
	t.formUsed = true
	result := t.DB.Clauses(clause.OnConflict{DoNothing: true}).
		Create(&models.FormKey{PersonID: t.form.PersonID, Key: t.form.Key, RecordID: recordID, UsedAt: t.At})
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
	if t.form.IfMatch == "" {
		return nil
	}
	tag, err := ETagOf(record)
	if err != nil || ETagMatches(t.form.IfMatch, tag) {
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
