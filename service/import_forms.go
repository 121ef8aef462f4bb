package service

import (
	"fmt"

	"millwright/models"
)

func (r *importRun) forms() error {
	for _, form := range r.file.Forms {
		id, err := r.id(form.Key, keyForm, models.PrefixForm)
		if err != nil {
			return err
		}
		row, created := r.formRows.row(id)
		if created {
			*row = models.Form{ID: id, OrganizationID: r.result.OrganizationID, CreatedAt: r.at, ChangedAt: r.at}
			require(r, fmt.Sprintf("form %q", form.Key), "a name", form.Name)
		}
		overwrite(&row.Name, form.Name)
		for position, q := range form.Questions {
			if err := r.question(id, position, q); err != nil {
				return err
			}
		}
	}
	return nil
}

// question fills in a question with its options. They are shown in their form, so a
// change of theirs is a change of the form.
func (r *importRun) question(formID string, position int, q importQuestion) error {
	id, err := r.id(q.Key, keyQuestion, models.PrefixQuestion)
	if err != nil {
		return err
	}
	row, created := r.questions.row(id)
	if created {
		row.ID = id
		require(r, fmt.Sprintf("question %q", q.Key), "a label", q.Label)
	}
	row.FormID, row.Position, row.Type = formID, position, models.QuestionType(q.Type)
	overwrite(&row.Label, q.Label)
	overwrite(&row.Required, q.Required)
	if r.questions.changed(id) {
		r.formRows.touch(formID)
	}
	for i, o := range q.Options {
		optionID, err := r.id(o.Key, keyOption, models.PrefixOption)
		if err != nil {
			return err
		}
		row, created := r.options.row(optionID)
		if created {
			row.ID = optionID
			require(r, fmt.Sprintf("option %q", o.Key), "a label", o.Label)
		}
		row.QuestionID, row.Position = id, i
		overwrite(&row.Label, o.Label)
		if r.options.changed(optionID) {
			r.formRows.touch(formID)
		}
	}
	return nil
}
