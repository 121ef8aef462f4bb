package inventory_test

import (
	"strings"
	"testing"

	"millwright/models"
	"millwright/service/inventory"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// labelsOf returns the questions of a form in order, each with its choices; a retired one in brackets.
func labelsOf(t *testing.T, f *servicetest.Fixture, id string) string {
	t.Helper()
	form, err := f.Inventory.FormForPerson(t.Context(), servicetest.Person(t, f, "ann"), id)
	servicetest.Must(t, err)
	var labels []string
	for _, q := range form.Questions {
		label := strings.Join(append([]string{q.Label}, q.Options...), "/")
		if q.Retired {
			label = "[" + label + "]"
		}
		labels = append(labels, label)
	}
	return strings.Join(labels, "; ")
}

// An administrator makes a form with questions, orders them, and retires one and the form.
func TestAdministratorsChangeForms(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann := t.Context(), servicetest.Person(t, f, "ann")
	id, err := f.Inventory.CreateForm(ctx, ann, store.NoKey, " Fire door ")
	servicetest.Must(t, err)
	save := func(question string, in inventory.QuestionFields) {
		t.Helper()
		servicetest.Must(t, f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, question, in))
	}
	question := func(label string) string {
		return servicetest.Value[string](f, `SELECT id FROM questions WHERE form_id = $1 AND label = $2`, id, label)
	}
	save("", inventory.QuestionFields{Label: " State ", Type: models.QuestionSingleChoice, Required: true, Options: []string{"OK", "Stuck"}})
	save("", inventory.QuestionFields{Label: "Note", Type: models.QuestionText, After: question("State")})
	save("", inventory.QuestionFields{Label: "Seal", Type: models.QuestionMultipleChoice, Options: []string{"Top", "Side"}, After: question("State")})
	servicetest.Expect(t, "the questions", labelsOf(t, f, id), "State/OK/Stuck; Seal/Top/Side; Note")
	ok := servicetest.Value[string](f, `SELECT id FROM question_options WHERE question_id = $1 AND label = 'OK'`, question("State"))
	save(question("State"), inventory.QuestionFields{Label: "Condition", Type: models.QuestionSingleChoice, Options: []string{"Closes", "Fine", "Stuck"}, After: question("Note")})
	save(question("Seal"), inventory.QuestionFields{Label: "Seal", Type: models.QuestionMultipleChoice, Options: []string{"Side"}, Retired: true})
	servicetest.Expect(t, "the questions then", labelsOf(t, f, id), "[Seal/Side]; Note; Condition/Closes/Fine/Stuck")
	servicetest.Expect(t, "the choice that was renamed", servicetest.Value[string](f, `SELECT label FROM question_options WHERE id = $1`, ok), "Closes")
	for range 2 { // the second time without a difference
		servicetest.Must(t, f.Inventory.ChangeForm(ctx, ann, store.NoKey, id, "Doors", true))
	}
	form, err := f.Inventory.FormForPerson(ctx, ann, id)
	if err != nil || form.Name != "Doors" || !form.Retired {
		t.Errorf("the form is %+v, %v", form, err)
	}
	servicetest.Expect(t, "the log", strings.ReplaceAll(servicetest.LogOf(f, id), "Ann Field "+f.ID("ann")+" form.", ""),
		"created\nchanged\nchanged\nchanged\nchanged\nquestion_retired\nretired")
}

// Only administrators of the organization change a form, with fields that are valid and on its current state.
func TestFormsAreChecked(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id := t.Context(), servicetest.Person(t, f, "ann"), f.ID("inspection")
	denied, unknown := string(models.CodePermissionDenied), string(models.CodeNotFound)
	for who, want := range map[string]string{"dan": denied, "pia": unknown} {
		actor := servicetest.Person(t, f, who)
		servicetest.Expect(t, who+" names it", fieldOf(f.Inventory.ChangeForm(ctx, actor, store.NoKey, id, "New", false)), want)
		servicetest.Expect(t, who+" asks", fieldOf(f.Inventory.SaveQuestion(ctx, actor, store.NoKey, id, "", inventory.QuestionFields{Label: "New", Type: models.QuestionText})), want)
	}
	_, err := f.Inventory.CreateForm(ctx, f.Actor("erp"), store.NoKey, "New")
	servicetest.Expect(t, "an integration creates one", fieldOf(err), denied)
	_, err = f.Inventory.CreateForm(ctx, ann, store.NoKey, " ")
	servicetest.Expect(t, "a blank name", fieldOf(err), "/name required")
	choice, many := models.QuestionSingleChoice, make([]string, inventory.MaxChoices+1)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for want, in := range map[string]inventory.QuestionFields{
		"/label required":    {Label: " ", Type: models.QuestionText},
		"/label too_long":    {Label: strings.Repeat("x", models.MaxLabel+1), Type: models.QuestionText},
		"/type unknown":      {Label: "New", Type: "photo"},
		"/options required":  {Label: "New", Type: choice},
		"/options too_many":  {Label: "New", Type: choice, Options: many},
		"/options duplicate": {Label: "New", Type: choice, Options: []string{"A", "B", "A"}},
		"/options value":     {Label: "New", Type: models.QuestionText, Options: []string{"A"}},
		"/after unknown":     {Label: "New", Type: models.QuestionText, After: "qst_01jd8q4v6cf5e8hbbfwj0zq3tc"},
	} {
		servicetest.Expect(t, want, fieldOf(f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, "", in)), want)
	}
	servicetest.Expect(t, "another form's question", fieldOf(f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, "qst_01jd8q4v6cf5e8hbbfwj0zq3tc", inventory.QuestionFields{Label: "New", Type: models.QuestionText})), unknown)
}

// A question that has answers keeps what they mean. Its label, its place and their order are free.
func TestAnsweredQuestionsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id, state := t.Context(), servicetest.Person(t, f, "ann"), f.ID("inspection"), f.ID("q_state")
	order := servicetest.Create(t, f)
	f.Exec(`UPDATE work_orders SET form_id = $2 WHERE id = $1`, order, id)
	f.Exec(`INSERT INTO answers (work_order_id, question_id, value, answered_at, answered_by) VALUES ($1, $2, to_jsonb($3::text), now(), $4)`, order, state, f.ID("o_ok"), f.ID("bob"))
	save := func(in inventory.QuestionFields) string {
		return fieldOf(f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, state, in))
	}
	choice := models.QuestionSingleChoice
	servicetest.Expect(t, "another type", save(inventory.QuestionFields{Label: "State", Type: models.QuestionText}), "/type in_use")
	servicetest.Expect(t, "a renamed choice", save(inventory.QuestionFields{Label: "State", Type: choice, Options: []string{"Fine", "Dirty"}}), "/type in_use")
	servicetest.Expect(t, "a choice less", save(inventory.QuestionFields{Label: "State", Type: choice, Options: []string{"OK"}}), "/type in_use")
	before, _, _ := strings.Cut(labelsOf(t, f, id), "; ")
	servicetest.Expect(t, "what was rejected", before, "Filter state/OK/Dirty")
	servicetest.Expect(t, "a choice more", save(inventory.QuestionFields{Label: "State", Type: choice, Options: []string{"OK", "Dirty", "Torn"}}), "/type in_use")
	servicetest.Expect(t, "another label, order and place", save(inventory.QuestionFields{Label: "State", Type: choice, Options: []string{"Dirty", "OK"}, After: f.ID("q_note")}), "")
	if got := labelsOf(t, f, id); !strings.HasSuffix(got, "; State/Dirty/OK") {
		t.Errorf("the questions are %q", got)
	}
}

// An import allows choices that are alike or have several lines. Such a question changes all the same, and keeps them.
func TestQuestionsOfImportsChange(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id, state := t.Context(), servicetest.Person(t, f, "ann"), f.ID("inspection"), f.ID("q_state")
	order := servicetest.Create(t, f)
	f.Exec(`UPDATE question_options SET label = E'Fine\n or so\n' WHERE question_id = $1`, state)
	f.Exec(`UPDATE work_orders SET form_id = $2 WHERE id = $1`, order, id)
	f.Exec(`INSERT INTO answers (work_order_id, question_id, value, answered_at, answered_by) VALUES ($1, $2, to_jsonb($3::text), now(), $4)`, order, state, f.ID("o_ok"), f.ID("bob"))
	in := inventory.QuestionFields{Label: "State", Type: models.QuestionSingleChoice, Options: []string{"Fine or so", "Fine or so"}, Retired: true}
	for range 2 { // the second time without a difference
		servicetest.Must(t, f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, state, in))
	}
	servicetest.Expect(t, "the log", strings.ReplaceAll(servicetest.LogOf(f, id), "Ann Field "+f.ID("ann")+" ", ""), "form.question_retired")
	f.Exec(`DELETE FROM answers`)
	in.Options = []string{"Fine or so", "Torn"}
	servicetest.Must(t, f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, state, in))
	in.Options = []string{"Torn"}
	servicetest.Must(t, f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, state, in))
	servicetest.Expect(t, "the choices", servicetest.Value[string](f, `SELECT string_agg(label, '/' ORDER BY position) FROM question_options WHERE question_id = $1`, state), "Torn")
}

// What the console added to a form has no key. An import leaves it, after what the file lists.
func TestImportsKeepQuestionsOfTheConsole(t *testing.T) {
	t.Parallel()
	f := servicetest.New(t)
	ctx, ann, id := t.Context(), servicetest.Person(t, f, "ann"), f.ID("inspection")
	if err := f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, "", inventory.QuestionFields{Label: "By hand", Type: models.QuestionText, After: f.ID("q_note")}); err != nil {
		t.Fatal(err)
	}
	if err := f.Inventory.SaveQuestion(ctx, ann, store.NoKey, id, f.ID("q_state"), inventory.QuestionFields{
		Label: "Filter state", Type: models.QuestionSingleChoice, Required: true, Options: []string{"OK", "Dirty", "Torn"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Imports.Run(ctx, []byte(`
organization: {key: acme}
forms:
  - key: inspection
    questions:
      - {key: q_state, type: single_choice, options: [{key: o_ok}, {key: o_dirty}, {key: o_wet, label: Wet}]}
      - {key: q_parts, type: multiple_choice, options: [{key: o_belt}, {key: o_filter}]}
      - {key: q_hours, type: integer}
      - {key: q_pressure, type: decimal}
      - {key: q_note, type: text}
      - {key: q_color, label: Color, type: text}
`)); err != nil {
		t.Fatal(err)
	}
	servicetest.Expect(t, "the questions", labelsOf(t, f, id), "Filter state/OK/Dirty/Wet/Torn; Parts used/Belt/Filter; Running hours; Pressure drop; Note; Color; By hand")
}
