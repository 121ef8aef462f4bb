package records

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/store"
)

// A retired question is shown only with the answer that it has.
const answersColumns = `w.id AS work_order_id, w.form_id,
	(SELECT f.name FROM forms f WHERE f.id = w.form_id) AS form_name,
	array_to_json(ARRAY(SELECT shown FROM questions q LEFT JOIN answers a ON a.work_order_id = w.id AND a.question_id = q.id
		CROSS JOIN LATERAL (SELECT q.id, q.label, q.type, q.required AND NOT q.retired AS required, ARRAY(SELECT choice FROM question_options o
				CROSS JOIN LATERAL (SELECT o.id, o.label) choice WHERE o.question_id = q.id ORDER BY o.position) AS options,
			a.value, a.answered_by, to_char(a.answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS answered_at) shown
		WHERE q.form_id = w.form_id AND (NOT q.retired OR a.value IS NOT NULL) ORDER BY q.position))::text AS questions,
	ARRAY(SELECT q.id::text FROM questions q WHERE q.form_id = w.form_id AND q.retired) AS retired`

// answersRow is a work order's form with its answers.
type answersRow struct {
	WorkOrderID      string
	FormID, FormName *string
	// Questions are []models.AnsweredRecord in JSON.
	Questions string
	// Retired are the ids of questions that are asked no longer.
	Retired []string
}

// record returns the answers; numbers are json.Number, so that decimals keep their digits.
func (r answersRow) record() (models.AnswersRecord, error) {
	record := models.AnswersRecord{WorkOrderID: r.WorkOrderID}
	if r.FormID != nil {
		record.Form = &models.AnswersForm{ID: *r.FormID, Name: *r.FormName}
	}
	decoder := json.NewDecoder(strings.NewReader(r.Questions))
	decoder.UseNumber()
	if err := decoder.Decode(&record.Questions); err != nil {
		return record, fmt.Errorf("decode a form's questions: %w", err)
	}
	return record, nil
}

// queueAnswers adds the query of the answers of a work order that the actor may read.
func queueAnswers(pipeline *pgx.Batch, into *answersRow, id string, actor store.Actor) {
	store.QueueOne(pipeline, into, models.NotFound(), `SELECT `+answersColumns+` FROM work_orders w WHERE w.id = $1 AND `+access.ReadableWorkOrder("w", "$2"), id, actor.IdentityID)
}

// Answers returns a work order's form with its answers, encoded. Decimals keep
// their digits. Errors: not_found (including when the actor may not read it), unavailable.
func (s *Records) Answers(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return nil, models.NotFound()
	}
	var row answersRow
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		queueAnswers(pipeline, &row, id, actor)
		return nil
	}, func() ([]byte, error) {
		record, err := row.record()
		if err != nil {
			return nil, err
		}
		return store.Encode(record)
	})
}
