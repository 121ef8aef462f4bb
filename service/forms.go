package service

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// formRow is a models.FormRecord whose questions stay as Postgres encodes them: there
// may be hundreds, with thousands of options.
type formRow struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Questions json.RawMessage `json:"questions"`
	CreatedAt models.Time     `json:"created_at"`
	ChangedAt models.Time     `json:"changed_at"`
	Xid       uint64          `json:"-"`
}

func (r formRow) position() position { return position{r.Xid, r.ID} }
func (r formRow) record() formRow    { return r }

// questionsOf selects the questions of a form as JSON records, in order. fields
// adds to each question q, from the joined tables.
func questionsOf(formID, fields, joins string) string {
	return `coalesce((SELECT json_agg(json_build_object('id', q.id, 'label', q.label, 'type', q.type, 'required', q.required,
			'options', coalesce((SELECT json_agg(json_build_object('id', o.id, 'label', o.label) ORDER BY o.position)
				FROM question_options o WHERE o.question_id = q.id), '[]')` + fields + `) ORDER BY q.position)
		FROM questions q ` + joins + ` WHERE q.form_id = ` + formID + `), '[]')`
}

var formColumns = `
	{w}.id, {w}.name, {w}.created_at, {w}.changed_at, ` + questionsOf("{w}.id", "", "") + ` AS questions,
	{w}.changed_xid AS xid`

// Forms returns a page of the organization's forms, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *Service) Forms(ctx context.Context, actor Actor, request ListRequest) ([]byte, error) {
	q := newListQuery("forms", formColumns, actor, nil)
	q.scan(`{w}.organization_id = @organization`)
	return list(ctx, s, q, request, formRow.record)
}

var formQuery = with(`SELECT `+formColumns+` FROM forms {w} WHERE {w}.id = $1 AND {w}.organization_id = $2`, "w", "w")

// Form returns a form of the organization, encoded. A form may have hundreds of
// questions, so it shares no round trip with other reads, which would wait for it.
// Errors: not_found, unavailable.
func (s *Service) Form(ctx context.Context, actor Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixForm) {
		return nil, models.NotFound()
	}
	var row formRow
	return read(ctx, s, actor.OrganizationID, func() ([]byte, error) { return Encode(row) }, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &row, models.NotFound(), formQuery, id, actor.OrganizationID)
		return nil
	})
}
