package inventory

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/lists"
	"millwright/service/store"
)

// formRecord is a models.FormRecord whose questions Postgres encodes: there may be hundreds, with
// thousands of options.
type formRecord struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Questions jsontext.Value `json:"questions"`
	Retired   bool           `json:"retired"`
	CreatedAt models.Time    `json:"created_at"`
	ChangedAt models.Time    `json:"changed_at"`
}

type formRow struct {
	formRecord
	Xid uint64
}

func (r *formRow) Position() lists.Position { return lists.Position{Xid: r.Xid, ID: r.ID} }
func (r *formRow) Record() any              { return &r.formRecord }

const formColumns = `
	w.id, w.name, w.retired, w.created_at, w.changed_at,
	array_to_json(ARRAY(SELECT shown FROM questions q
		CROSS JOIN LATERAL (SELECT q.id, q.label, q.type, q.required, ARRAY(SELECT choice FROM question_options o
			CROSS JOIN LATERAL (SELECT o.id, o.label) choice WHERE o.question_id = q.id ORDER BY o.position) AS options) shown
		WHERE q.form_id = w.id AND NOT q.retired ORDER BY q.position))::text AS questions,
	w.changed_xid AS xid`

// Forms returns a page of the forms that new work orders of the organization can have, encoded. Those by ids and with
// changed_since include retired ones (api.md 4.14). Errors: invalid_request, cursor_expired, unavailable.
func (s *Inventory) Forms(ctx context.Context, actor store.Actor, request lists.ListRequest) ([]byte, error) {
	q := lists.NewQuery("forms", formColumns, actor, nil)
	listed := `w.organization_id = @organization`
	if len(request.IDs) == 0 && request.ChangedSince == "" {
		listed += ` AND NOT w.retired`
	}
	q.Scan(listed)
	return lists.List[formRow](ctx, s.Store, q, request)
}

var formQuery = `SELECT ` + formColumns + ` FROM forms w WHERE w.id = $1 AND w.organization_id = $2`

// Form returns a form of the organization, encoded. A form may have hundreds of
// questions, so it is one of the organization's reads, and not read with the admission of its call.
// Errors: not_found, unavailable.
func (s *Inventory) Form(ctx context.Context, actor store.Actor, id string) ([]byte, error) {
	if !models.IsID(id, models.PrefixForm) {
		return nil, models.NotFound()
	}
	var row formRow
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &row, models.NotFound(), formQuery, id, actor.OrganizationID)
		return nil
	}, func() ([]byte, error) { return store.Encode(row.Record()) })
}
