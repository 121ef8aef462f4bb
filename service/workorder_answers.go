package service

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// answersRow is a work order's form with its answers.
type answersRow struct {
	WorkOrderID string
	FormID      *string
	FormName    *string
	Questions   []models.AnsweredRecord
}

func (r answersRow) record() models.AnswersRecord {
	record := models.AnswersRecord{WorkOrderID: r.WorkOrderID, Questions: r.Questions}
	if r.FormID != nil {
		record.Form = &models.AnswersForm{ID: *r.FormID, Name: *r.FormName}
	}
	return record
}

const answersColumns = `{w}.id AS work_order_id, {w}.form_id,
	(SELECT f.name FROM forms f WHERE f.id = {w}.form_id) AS form_name,
	array_to_json(ARRAY(SELECT shown FROM questions q LEFT JOIN answers a ON a.work_order_id = {w}.id AND a.question_id = q.id
		CROSS JOIN LATERAL (SELECT q.id, q.label, q.type, q.required, ARRAY(SELECT choice FROM question_options o
				CROSS JOIN LATERAL (SELECT o.id, o.label) choice WHERE o.question_id = q.id ORDER BY o.position) AS options,
			a.value, a.answered_by, to_char(a.answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS answered_at) shown
		WHERE q.form_id = {w}.form_id ORDER BY q.position))::text AS questions`

// Answers returns a work order's form with its answers, encoded. Decimals keep
// their digits. Errors: not_found (including when the actor may not read it), unavailable.
func (s *Service) Answers(ctx context.Context, actor Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixWorkOrder) {
		return nil, models.NotFound()
	}
	type textRow struct {
		WorkOrderID      string
		FormID, FormName *string
		Questions        string
	}
	var text textRow
	return read(ctx, s, actor.OrganizationID, func() ([]byte, error) {
		row := answersRow{WorkOrderID: text.WorkOrderID, FormID: text.FormID, FormName: text.FormName}
		decoder := json.NewDecoder(strings.NewReader(text.Questions))
		decoder.UseNumber()
		if err := decoder.Decode(&row.Questions); err != nil {
			return nil, fmt.Errorf("decode a form's questions: %w", err)
		}
		return Encode(row.record())
	}, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &text, models.NotFound(), with(`SELECT `+answersColumns+` FROM work_orders {w} WHERE {w}.id = $1 AND `+readableWorkOrder,
			"w", "w", "actor", "$2"), id, actor.IdentityID)
		return nil
	})
}
