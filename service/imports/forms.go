package imports

import (
	"maps"
	"slices"

	"millwright/models"
	"millwright/service/inventory"
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
			require(e, "a name", form.Name)
		}
		setField(e, "name", &row.Name, form.Name)
		setField(e, fieldRetired, &row.Retired, form.Retired)
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
		require(e, "a label", q.Label)
	}
	kind := models.QuestionType(q.Type)
	setField(e, "form", &row.FormID, &formID).names()
	setField(e, "position", &row.Position, &position)
	setField(e, "type", &row.Type, &kind)
	setField(e, "label", &row.Label, q.Label)
	setField(e, "required", &row.Required, q.Required)
	setField(e, fieldRetired, &row.Retired, q.Retired)
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

// checkAnswered reports questions that have answers and would change what these mean: their
// type, their form or their options.
func (r *importRun) checkAnswered() error {
	changed := map[string]string{} // what changes, by the question's id
	for id, stored := range r.questions.stored {
		switch q := r.questions.byID[id]; {
		case q == nil:
		case q.row.Type != stored.Type:
			changed[id] = "type"
		case q.row.FormID != stored.FormID:
			changed[id] = "form"
		}
	}
	for _, o := range r.options.rows {
		stored, known := r.options.stored[o.id]
		if known && o.row.Label == stored.Label && o.row.QuestionID == stored.QuestionID {
			continue
		}
		for _, id := range []string{o.row.QuestionID, stored.QuestionID} {
			if _, there := r.questions.stored[id]; there && changed[id] == "" {
				changed[id] = "options"
			}
		}
	}
	answered, err := inventory.Answered(r.Tx, slices.Sorted(maps.Keys(changed)))
	for _, e := range r.entries {
		if e.kind == keyQuestion && slices.Contains(answered, e.id) {
			r.problems.add("question %q: it has answers, so its %s cannot change; retire it (retired: true) and add another question", e.key, changed[e.id])
		}
	}
	return err
}

func (r *importRun) option(formID, questionID string, position int, o importOption) error {
	e, err := r.entry(o.Key, keyOption, models.PrefixOption)
	if err != nil {
		return err
	}
	row, created := rowOf(e, &r.options)
	if created {
		row.ID = e.id
		require(e, "a label", o.Label)
	}
	setField(e, "question", &row.QuestionID, &questionID).names()
	setField(e, "position", &row.Position, &position)
	setField(e, "label", &row.Label, o.Label)
	if r.options.changed(e.id) {
		r.formRows.touch(formID)
	}
	return nil
}

// savePositions has the questions of a form, or the choices of a question, that the console added follow those in the file.
func (r *importRun) savePositions(table, parent string, parents, named []string) error {
	return r.Exec(`UPDATE `+table+` t SET position = x.place FROM (
			SELECT id, row_number() OVER (PARTITION BY `+parent+` ORDER BY (id = ANY (@named)) DESC, position, id) - 1 AS place
			FROM `+table+` WHERE `+parent+` = ANY (@parents)) x
		WHERE x.id = t.id AND x.place <> t.position`, map[string]any{"named": models.TextArray(named), "parents": models.TextArray(parents)})
}
