package imports

import (
	"fmt"

	"millwright/models"
)

func (r *importRun) forms() error {
	for _, form := range r.file.Forms {
		e, err := r.entry(form.Key, keyForm, models.PrefixForm)
		if err != nil {
			return err
		}
		row, created := rowOf(e, &r.formRows)
		if created {
			*row = models.Form{ID: e.id, OrganizationID: r.result.OrganizationID, CreatedAt: r.At, ChangedAt: r.At}
			require(r, fmt.Sprintf("form %q", form.Key), "a name", form.Name)
		}
		setField(e, "name", &row.Name, form.Name)
		for position, q := range form.Questions {
			if err := r.question(e.id, position, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// question fills in a question with its options. They are shown in their form, so a
// change of theirs is a change of the form.
func (r *importRun) question(formID string, position int, q importQuestion) error {
	e, err := r.entry(q.Key, keyQuestion, models.PrefixQuestion)
	if err != nil {
		return err
	}
	row, created := rowOf(e, &r.questions)
	if created {
		row.ID = e.id
		require(r, fmt.Sprintf("question %q", q.Key), "a label", q.Label)
	}
	kind := models.QuestionType(q.Type)
	setField(e, "form", &row.FormID, &formID).names()
	setField(e, "position", &row.Position, &position)
	setField(e, "type", &row.Type, &kind)
	setField(e, "label", &row.Label, q.Label)
	setField(e, "required", &row.Required, q.Required)
	if r.questions.changed(e.id) {
		r.formRows.touch(formID)
	}
	for i, o := range q.Options {
		if err := r.option(formID, e.id, i, o); err != nil {
			return err
		}
	}
	return nil
}

func (r *importRun) option(formID, questionID string, position int, o importOption) error {
	e, err := r.entry(o.Key, keyOption, models.PrefixOption)
	if err != nil {
		return err
	}
	row, created := rowOf(e, &r.options)
	if created {
		row.ID = e.id
		require(r, fmt.Sprintf("option %q", o.Key), "a label", o.Label)
	}
	setField(e, "question", &row.QuestionID, &questionID).names()
	setField(e, "position", &row.Position, &position)
	setField(e, "label", &row.Label, o.Label)
	if r.options.changed(e.id) {
		r.formRows.touch(formID)
	}
	return nil
}
