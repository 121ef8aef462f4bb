package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"millwright/models"
	"millwright/service/store"
)

// FormState is what forms about a form of the organization are filled from.
type FormState struct {
	ID        string      `json:"id"`
	ChangedAt models.Time `json:"changed_at"`
}

// QuestionFields are what an administrator enters about a question.
type QuestionFields struct {
	Label             string
	Type              models.QuestionType
	Required, Retired bool
	// Options are the labels of the choices, in order; types without choices have none.
	Options []string
	// After is the id of the question before it, "" for the first place.
	After string
}

// check returns the errors in a question. Its label is trimmed. Choices that stay as stored may be more, and alike: an import
// allows that.
func (in *QuestionFields) check(optionsChange bool) []models.FieldError {
	in.Label = models.Trim(in.Label)
	fields := checkLabel("/label", in.Label)
	if !in.Type.Known() {
		return append(fields, models.FieldError{Pointer: "/type", Code: "unknown", Detail: "Choose what answers the question."})
	}
	switch n := len(in.Options); {
	case !in.Type.HasOptions() && n > 0:
		return append(fields, models.FieldError{Pointer: "/options", Code: "value", Detail: "Such an answer has no choices. Remove them, or let the answer be one or any of them."})
	case !in.Type.HasOptions() || !optionsChange && n > 0:
		return fields
	case n == 0:
		fields = append(fields, models.FieldError{Pointer: "/options", Code: "required", Detail: "Enter at least one choice."})
	case n > MaxChoices:
		fields = append(fields, models.FieldError{Pointer: "/options", Code: "too_many", Detail: fmt.Sprintf("Enter at most %d choices.", MaxChoices)})
	}
	for i, label := range in.Options {
		fields = append(fields, checkLabel("/options", label)...)
		if slices.Contains(in.Options[:i], label) {
			fields = append(fields, models.FieldError{Pointer: "/options", Code: "duplicate", Detail: "“" + models.Shorten(label) + "” stands there twice."})
		}
	}
	return fields
}

func checkLabel(pointer, label string) []models.FieldError {
	if models.IsBlank(label) {
		return []models.FieldError{{Pointer: pointer, Code: "required", Detail: "A question and its choices need a visible character."}}
	}
	return store.CheckText(pointer, &label, models.MaxLabel)
}

// CreateForm creates a form without questions and returns its id. Only administrators may. Errors:
// permission_denied, validation_failed (/name), unavailable.
func (s *Inventory) CreateForm(ctx context.Context, actor store.Actor, key store.Key, name string) (string, error) {
	row := models.Form{OrganizationID: actor.OrganizationID, Searched: models.Searched{Name: models.Trim(name)}}
	err := s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		err := requireAdmin(t, actor, ErrChangesNoForms())
		if err == nil {
			err = store.Invalid(store.CheckName(row.Name))
		}
		if err != nil {
			return err
		}
		if row.ID, err = t.NewID(models.PrefixForm); err != nil {
			return err
		}
		row.CreatedAt, row.ChangedAt = t.At, t.At
		if err := t.Create(&row); err != nil {
			return err
		}
		return t.Log(actor, row.OrganizationID, "form.created", row.ID)
	})
	return row.ID, err
}

// ChangeForm names a form, and retires it or brings it back: new work orders cannot have a retired one. Only
// administrators may. Errors: not_found, permission_denied, validation_failed (/name), *FormStaleError, unavailable.
func (s *Inventory) ChangeForm(ctx context.Context, actor store.Actor, key store.Key, id, name string, retired bool) error {
	return s.changeForm(ctx, actor, key, id, func(_ *store.Tx, form *models.Form) (string, error) {
		action := Retirement("form.", form.Retired, retired, form.Name != models.Trim(name))
		form.Name, form.Retired = models.Trim(name), retired
		return action, store.Invalid(store.CheckName(form.Name))
	})
}

// Retirement returns the action of a change that may retire something or bring it back, "" without a change.
func Retirement(prefix string, was, is, changed bool) string {
	switch {
	case !was && is:
		return prefix + "retired"
	case was && !is:
		return prefix + "brought_back"
	case changed:
		return prefix + "changed"
	}
	return ""
}

// SaveQuestion changes a question of a form, or adds one for the id "". A question that has answers keeps its type and
// its choices, so that the answers keep their meaning. Only administrators may. Errors: not_found,
// permission_denied, validation_failed (/label, /type, /options, /after), *FormStaleError, unavailable.
func (s *Inventory) SaveQuestion(ctx context.Context, actor store.Actor, key store.Key, formID, id string, in QuestionFields) error {
	return s.changeForm(ctx, actor, key, formID, func(t *store.Tx, _ *models.Form) (string, error) {
		var questions []models.Question
		if err := t.DB.Order("position").Find(&questions, "form_id = ?", formID).Error; err != nil {
			return "", err
		}
		at := slices.IndexFunc(questions, func(q models.Question) bool { return q.ID == id })
		if id != "" && at < 0 {
			return "", models.NotFound()
		}
		var before models.Question
		if at >= 0 {
			before = questions[at]
			questions = slices.Delete(questions, at, at+1)
		}
		var options []models.QuestionOption
		if err := t.DB.Order("position").Find(&options, "question_id = ?", id).Error; err != nil {
			return "", err
		}
		optionsChange := !slices.EqualFunc(in.Options, options, func(label string, o models.QuestionOption) bool { return label == o.OneLine() })
		place, err := in.placeAmong(questions, at < 0, optionsChange)
		if err != nil {
			return "", err
		}
		after := models.Question{ID: id, FormID: formID, Position: place, Label: in.Label, Type: in.Type, Required: in.Required, Retired: in.Retired}
		if after == before && !optionsChange {
			return "", nil
		}
		if at < 0 {
			if after.ID, err = t.NewID(models.PrefixQuestion); err != nil {
				return "", err
			}
		}
		err = saveQuestions(t, slices.Insert(questions, place, after), after.ID, at < 0)
		meaning := before.Type != after.Type
		if err == nil && optionsChange {
			var changed bool
			changed, err = saveOptions(t, after.ID, options, in.Options)
			meaning = meaning || changed
		}
		if err == nil && at >= 0 && meaning {
			err = requireUnanswered(t, id)
		}
		return cmp.Or(Retirement("form.question_", before.Retired, after.Retired, false), "form.changed"), err
	})
}

// placeAmong returns the place of the question among the others of its form. Errors: validation_failed.
func (in *QuestionFields) placeAmong(others []models.Question, created, optionsChange bool) (int, error) {
	fields := in.check(optionsChange)
	place := 1 + slices.IndexFunc(others, func(q models.Question) bool { return q.ID == in.After })
	if place == 0 && in.After != "" {
		fields = append(fields, store.UnknownField("/after", "question"))
	}
	if created && len(others) >= MaxChoices {
		fields = append(fields, models.FieldError{Pointer: "/label", Code: "too_many", Detail: fmt.Sprintf("A form has at most %d questions.", MaxChoices)})
	}
	return place, store.Invalid(fields)
}

// requireUnanswered rejects a change of what the answers of a question mean. Errors: validation_failed (/type).
func requireUnanswered(t *store.Tx, id string) error {
	// Answers that are being stored hold a share of this lock. One that was checked before and is stored after this write
	// may still name what the question had, as after an import.
	if err := t.Exec(`SELECT FROM questions WHERE id = ? FOR UPDATE`, id); err != nil {
		return err
	}
	answered, err := Answered(t, []string{id})
	if err == nil && len(answered) > 0 {
		err = models.Invalid(models.FieldError{Pointer: "/type", Code: "in_use",
			Detail: "The question has answers: its type and its choices cannot change. Retire it and add another one."})
	}
	return err
}

// saveQuestions writes the questions of a form at their places. created is whether the one with the id is new.
func saveQuestions(t *store.Tx, questions []models.Question, id string, created bool) error {
	for place, q := range questions {
		moved := q.Position != place
		q.Position = place
		var err error
		switch {
		case q.ID == id && created:
			err = t.Create(&q)
		case q.ID == id:
			err = t.UpdateColumns(&q, "position", "label", "type", "required", "retired")
		case moved:
			err = t.UpdateColumns(&q, "position")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// saveOptions makes the choices of a question those with the labels: a stored one keeps its identity with its label, and
// one whose label is gone gets a new label or is removed. It reports whether anything but their order changes.
func saveOptions(t *store.Tx, questionID string, stored []models.QuestionOption, labels []string) (changed bool, err error) {
	kept := make([]models.QuestionOption, len(labels))
	for place, label := range labels {
		if at := slices.IndexFunc(stored, func(o models.QuestionOption) bool { return o.OneLine() == label }); at >= 0 {
			kept[place] = stored[at]
			stored = slices.Delete(stored, at, at+1)
		}
	}
	changed = len(stored) > 0
	for place, o := range kept {
		if o.ID == "" {
			changed = true
			if len(stored) > 0 {
				o, stored = stored[0], stored[1:]
			} else if o.ID, err = t.NewID(models.PrefixOption); err != nil {
				return false, err
			}
			o.QuestionID, o.Label = questionID, labels[place]
		}
		o.Position = place
		if err := t.Upsert(&o); err != nil {
			return false, err
		}
	}
	for _, o := range stored {
		if err := t.Delete(&o); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// Answered returns which of the questions have answers. It goes by the work orders of their forms: answers have no
// index by question.
func Answered(t *store.Tx, ids []string) ([]string, error) {
	return store.ScanAll[string](t, `
		SELECT q.id FROM questions q WHERE q.id = ANY (?) AND EXISTS (
			SELECT FROM work_orders w JOIN answers a ON a.work_order_id = w.id AND a.question_id = q.id WHERE w.form_id = q.form_id)`,
		models.TextArray(ids))
}

// changeForm changes a form in one transaction. change returns the action, "" if nothing is different. Errors:
// not_found, permission_denied, *FormStaleError, change's.
func (s *Inventory) changeForm(ctx context.Context, actor store.Actor, key store.Key, id string, change func(*store.Tx, *models.Form) (action string, err error)) error {
	return s.Transaction(ctx, actor.OrganizationID, key, func(t *store.Tx) error {
		if err := requireAdmin(t, actor, ErrChangesNoForms()); err != nil {
			return err
		}
		if !models.IsID(id, models.PrefixForm) {
			return models.NotFound()
		}
		form, err := store.LockRow[models.Form](t, id)
		if err == nil && form.OrganizationID != actor.OrganizationID {
			err = models.NotFound()
		}
		if err == nil {
			err = t.Matches(ctx, key, FormState{form.ID, form.ChangedAt}, form.OrganizationID, id)
		}
		if err != nil {
			return err
		}
		action, err := change(t, &form)
		if err != nil || action == "" {
			return err
		}
		form.ChangedAt = t.At.After(form.ChangedAt)
		if err := t.UpdateColumns(&form, "name", "retired", "changed_at"); err != nil {
			return err
		}
		return t.Log(actor, form.OrganizationID, action, id)
	})
}

// ErrChangesNoForms is permission_denied for everyone but administrators.
func ErrChangesNoForms() error {
	return models.Errorf(models.CodePermissionDenied, "Only administrators make and change forms.")
}
