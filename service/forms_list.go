package service

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"millwright/models"
)

// FormSummary is a form with how many questions it has.
type FormSummary struct {
	ID, Name            string
	Questions, Required int
	ChangedAt           models.Time
}

var formListQuery = `
	SELECT f.id, f.name, f.changed_at, q.questions, q.required
	FROM (SELECT * FROM forms WHERE organization_id = @organization AND ` + fill(inNamePage, "w", "forms", "text", "''") + `
		ORDER BY lower(name), id LIMIT @limit) f
	CROSS JOIN LATERAL (SELECT count(*) AS questions, count(*) FILTER (WHERE required) AS required FROM questions WHERE form_id = f.id) q
	ORDER BY lower(f.name), f.id`

// FormsForPerson returns a page of the organization's forms by name. Any person of the organization
// may read it. Errors: permission_denied for an integration, unavailable.
func (s *Service) FormsForPerson(ctx context.Context, actor Actor, filter NameFilter) ([]FormSummary, error) {
	var found []FormSummary
	if err := requirePerson(actor, "The list of forms"); err != nil {
		return nil, err
	}
	args := filter.args()
	args["organization"] = actor.OrganizationID
	return read(ctx, s, actor.OrganizationID, func() ([]FormSummary, error) { return found, nil }, func(pipeline *pgx.Batch) error {
		queueAll(pipeline, &found, formListQuery, args)
		return nil
	})
}

// FormUse is a work order with a form.
type FormUse struct {
	ID     string
	Number int64
	Title  string
	Status models.WorkOrderStatus
}

// FormDetail is a form with its questions and where it is used.
type FormDetail struct {
	ID, Name             string
	CreatedAt, ChangedAt models.Time
	Questions            []models.QuestionRecord
	// WorkOrders are the latest maxFormUses with the form, as far as the reader may read them,
	// newest first.
	WorkOrders []FormUse
}

// maxFormUses bounds how many work orders with a form are looked at.
const maxFormUses = 20

var formUsesQuery = `
	SELECT w.id, w.number, w.title, w.status
	FROM (SELECT * FROM work_orders WHERE form_id = @id ORDER BY id DESC LIMIT @max) w
	WHERE ` + fill(readableWorkOrder, "w", "w", "actor", "@actor") + `
	ORDER BY w.id DESC`

// FormOf returns a form of the organization with its questions and the latest work orders
// that have it. Any person of the organization may read it. Errors: not_found,
// permission_denied for an integration, unavailable.
func (s *Service) FormOf(ctx context.Context, actor Actor, id string) (FormDetail, error) {
	var found FormDetail
	if err := requirePerson(actor, "A form with its use"); err != nil {
		return found, err
	}
	if !models.IsID(id, models.PrefixForm) {
		return found, models.NotFound()
	}
	var row formRow
	args := pgx.NamedArgs{"id": id, "actor": actor.IdentityID, "max": maxFormUses}
	return read(ctx, s, actor.OrganizationID, func() (FormDetail, error) {
		found.ID, found.Name, found.CreatedAt, found.ChangedAt = row.ID, row.Name, row.CreatedAt, row.ChangedAt
		return found, json.Unmarshal(row.Questions, &found.Questions)
	}, func(pipeline *pgx.Batch) error {
		queueOne(pipeline, &row, models.NotFound(), formQuery, id, actor.OrganizationID)
		queueAll(pipeline, &found.WorkOrders, formUsesQuery, args)
		return nil
	})
}
