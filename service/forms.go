package service

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// formRow is a models.FormRecord whose questions are the text that triggers keep in
// form_questions: there may be hundreds, with thousands of options.
type formRow struct {
	ID, Name             string
	Questions            []byte
	CreatedAt, ChangedAt models.Time
	Xid                  uint64
}

func (r *formRow) position() position { return position{r.Xid, r.ID} }
func (r *formRow) record() any        { return r }

const formColumns = `
	{w}.id, {w}.name, {w}.created_at, {w}.changed_at,
	coalesce((SELECT questions FROM form_questions WHERE form_id = {w}.id LIMIT 1), '[]') AS questions,
	{w}.changed_xid AS xid`

// Forms returns a page of the organization's forms, encoded. Errors:
// invalid_request, cursor_expired, unavailable.
func (s *Service) Forms(ctx context.Context, actor Actor, request ListRequest) ([]byte, error) {
	q := newListQuery("forms", formColumns, actor, nil)
	q.scan(`{w}.organization_id = @organization`)
	return list[formRow](ctx, s, q, request)
}

var formQuery = fill(`SELECT `+formColumns+` FROM forms {w} WHERE {w}.id = $1 AND {w}.organization_id = $2`, "w", "w")

// Form returns a form of the organization, encoded. A form may have hundreds of
// questions, so it shares no round trip with other reads, which would wait for it.
// Errors: not_found, unavailable.
func (s *Service) Form(ctx context.Context, actor Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixForm) {
		return nil, models.NotFound()
	}
	var row formRow
	return read(ctx, s, actor.OrganizationID, func() ([]byte, error) { return Encode(&row) }, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &row, models.NotFound(), formQuery, id, actor.OrganizationID)
		return nil
	})
}

// appendJSON writes a models.FormRecord.
func (r *formRow) appendJSON(b []byte) []byte {
	b = appendText(b, `{"id":`, r.ID)
	b = appendText(b, `,"name":`, r.Name)
	b = appendEncoded(b, `,"questions":`, r.Questions)
	b = appendTime(b, `,"created_at":`, &r.CreatedAt)
	b = appendTime(b, `,"changed_at":`, &r.ChangedAt)
	return append(b, '}')
}
