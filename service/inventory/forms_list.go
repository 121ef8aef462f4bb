package inventory

import (
	"context"

	"github.com/jackc/pgx/v5"

	"millwright/models"
	"millwright/service/access"
	"millwright/service/lists"
	"millwright/service/store"
)

// FormSummary is a form with how many questions it has.
type FormSummary struct {
	ID, Name            string
	Questions, Required int
	// Retired is whether new work orders cannot have it.
	Retired   bool
	ChangedAt models.Time
}

var formListQuery = `
	SELECT f.id, f.name, f.retired, f.changed_at, q.questions, q.required
	FROM (SELECT * FROM forms WHERE organization_id = @organization AND ` + lists.InNamePage("forms", "words") + `
		ORDER BY sort_key, id LIMIT @limit) f
	CROSS JOIN LATERAL (SELECT count(*) AS questions, count(*) FILTER (WHERE required) AS required FROM questions WHERE form_id = f.id AND NOT retired) q
	ORDER BY f.sort_key, f.id`

// FormsForPerson returns a page of the organization's forms by name. Any person of the organization
// may read it. Errors: permission_denied for an integration, unavailable.
func (s *Inventory) FormsForPerson(ctx context.Context, actor store.Actor, filter lists.NameFilter) ([]FormSummary, error) {
	var found []FormSummary
	if err := access.RequirePerson(actor, "The list of forms"); err != nil {
		return nil, err
	}
	args := filter.Args(actor.OrganizationID)
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueAll(pipeline, &found, formListQuery, args)
		return nil
	}, func() ([]FormSummary, error) { return found, nil })
}

// FormQuestion is a question of a form with the labels of its choices.
type FormQuestion struct {
	ID, Label string
	Type      models.QuestionType
	Required  bool
	// Retired is whether it is asked no longer.
	Retired bool
	Options []string
}

// FormDetail is a form with its questions, retired ones too, and where it is used.
type FormDetail struct {
	ID, Name  string
	Retired   bool
	ChangedAt models.Time
	Questions []FormQuestion `db:"-"`
	// WorkOrders are the latest maxFormUses with the form, as far as the reader may read them,
	// newest first.
	WorkOrders []ListedWorkOrder `db:"-"`
}

// maxFormUses bounds how many work orders with a form are looked at.
const maxFormUses = 20

const formQuestionsQuery = `
	SELECT q.id, q.label, q.type, q.required, q.retired,
		ARRAY(SELECT o.label FROM question_options o WHERE o.question_id = q.id ORDER BY o.position) AS options
	FROM questions q WHERE q.form_id = @id ORDER BY q.position`

var formUsesQuery = `
	SELECT w.id, w.number, w.title, w.status
	FROM (SELECT * FROM work_orders WHERE form_id = @id ORDER BY id DESC LIMIT @max) w
	WHERE ` + access.ReadableWorkOrder("w", "@actor") + `
	ORDER BY w.id DESC`

// FormForPerson returns a form of the organization with its questions and the latest work orders
// that have it. Any person of the organization may read it. Errors: not_found,
// permission_denied for an integration, unavailable.
func (s *Inventory) FormForPerson(ctx context.Context, actor store.Actor, id string) (FormDetail, error) {
	var found FormDetail
	if err := access.RequirePerson(actor, "A form with its use"); err != nil {
		return found, err
	}
	if !models.IsID(id, models.PrefixForm) {
		return found, models.NotFound()
	}
	args := pgx.NamedArgs{"id": id, "organization": actor.OrganizationID, "actor": actor.IdentityID, "max": maxFormUses}
	return store.Read(ctx, s.Store, actor.OrganizationID, func(pipeline *pgx.Batch) error {
		store.QueueOne(pipeline, &found, models.NotFound(), `SELECT id, name, retired, changed_at FROM forms WHERE id = @id AND organization_id = @organization`, args)
		store.QueueAll(pipeline, &found.Questions, formQuestionsQuery, args)
		store.QueueAll(pipeline, &found.WorkOrders, formUsesQuery, args)
		return nil
	}, func() (FormDetail, error) { return found, nil })
}

// State returns what forms about the form are filled from.
func (d FormDetail) State() FormState { return FormState{d.ID, d.ChangedAt} }
