package migrations_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// wantFormQuestions checks that the stored text of each form contains its questions and
// options, in order.
func wantFormQuestions(h *harness) {
	h.t.Helper()
	const different = `
		SELECT count(*) FROM forms f LEFT JOIN form_questions kept ON kept.form_id = f.id
		WHERE coalesce(kept.questions, '[]')::jsonb <> coalesce((
			SELECT jsonb_agg(jsonb_build_object('id', q.id, 'label', q.label, 'type', q.type, 'required', q.required,
				'options', coalesce((SELECT jsonb_agg(jsonb_build_object('id', o.id, 'label', o.label) ORDER BY o.position)
					FROM question_options o WHERE o.question_id = q.id), '[]')) ORDER BY q.position)
			FROM questions q WHERE q.form_id = f.id), '[]')`
	if n := value[int](h, different); n != 0 {
		h.t.Errorf("the questions of %d forms are wrong", n)
	}
	if n := value[int](h, `SELECT count(*) FROM form_questions WHERE questions IS NULL`); n != 0 {
		h.t.Errorf("%d forms are not encoded", n)
	}
}

// However forms are changed, the questions follow.
func TestFormQuestionsAreKept(t *testing.T) {
	h := newHarness(t)
	const id = `lpad('%d', 26, '0')`
	insert := func(n int) []string {
		form, question := fmt.Sprintf(`'frm_' || `+id, n), fmt.Sprintf(`'qst_' || `+id, n)
		return []string{
			`BEGIN`,
			`INSERT INTO forms (id, organization_id, name, created_at, changed_at) VALUES (` + form + `, '` + organization + `', 'Inspection', now(), now())`,
			fmt.Sprintf(`INSERT INTO questions (id, form_id, position, label, type, required)
				SELECT 'qst_' || lpad((%d + p * 1000)::text, 26, '0'), `+form+`, p, 'State of "part"', 'single_choice', true FROM generate_series(0, 2) p`, n),
			fmt.Sprintf(`INSERT INTO question_options (id, question_id, position, label)
				SELECT 'opt_' || lpad((%d + p * 1000)::text, 26, '0'), `+question+`, p, 'Good' FROM generate_series(0, 2) p`, n),
			`COMMIT`,
		}
	}
	for n := range 50 {
		h.exec(insert(n)...)
	}
	h.exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) VALUES ('frm_` + fmt.Sprintf("%026d", 999) + `', '` + organization + `', 'Empty', now(), now())`)
	// Each way of changing a form comes to another one, so that no later change hides it.
	write := func(n int) {
		form := 0
		next := func(statement string, parts ...any) string {
			form++
			return strings.ReplaceAll(fmt.Sprintf(statement, parts...), "{}", fmt.Sprintf(`lpad('%d', 26, '0')`, (n+form*5)%50))
		}
		h.exec(insert(n)...)
		h.exec(
			next(`UPDATE questions SET label = 'Changed %d' WHERE id = 'qst_' || {}`, n),
			next(`UPDATE question_options SET label = 'Changed %d' WHERE id = 'opt_' || {}`, n),
			`BEGIN`, next(`UPDATE questions SET position = -position WHERE form_id = 'frm_' || {}`),
			next(`UPDATE question_options SET position = 5 - position WHERE question_id = 'qst_' || {}`), `COMMIT`,
			`BEGIN`, next(`UPDATE questions SET label = 'Rejected' WHERE form_id = 'frm_' || {}`), `ROLLBACK`,
			next(`DELETE FROM questions WHERE form_id = 'frm_' || {} AND position = 1`),
			next(`INSERT INTO questions (id, form_id, position, label, type, required) SELECT 'qst_' || lpad('%d', 26, '0'), id, 200 + %[1]d, 'Note', 'text', false
				FROM forms WHERE id = 'frm_' || {}`, 90000+n),
			next(`INSERT INTO question_options (id, question_id, position, label) SELECT 'opt_' || lpad('%d', 26, '0'), id, 50 + %[1]d, 'Broken'
				FROM questions WHERE form_id = 'frm_' || {} AND position = 0`, 90000+n),
			next(`DELETE FROM question_options WHERE question_id = 'qst_' || {} AND position = 1`),
			next(`UPDATE questions SET form_id = 'frm_' || `+fmt.Sprintf(id, (n+7)%50)+`, position = 100 + %d WHERE form_id = 'frm_' || {} AND position = 2`, n),
			fmt.Sprintf(`DELETE FROM forms WHERE id = 'frm_' || `+id, n-30),
		)
	}
	for n := 100; n < 200; n++ {
		write(n)
	}
	wantFormQuestions(h)
}

// Two transactions change options of one form: the text has what both wrote.
func TestFormQuestionsOfConcurrentChanges(t *testing.T) {
	h := newHarness(t)
	h.exec(`INSERT INTO forms (id, organization_id, name, created_at, changed_at) VALUES ('frm_00000000000000000000000001', '`+organization+`', 'Inspection', now(), now())`,
		`INSERT INTO questions (id, form_id, position, label, type, required) SELECT 'qst_' || lpad(n::text, 26, '0'), 'frm_00000000000000000000000001', n, 'Part', 'text', true FROM generate_series(0, 9) n`)
	var writing sync.WaitGroup
	for n := range 10 {
		writing.Go(func() {
			for round := range 10 {
				h.exec(fmt.Sprintf(`UPDATE questions SET label = 'Part %d' WHERE id = 'qst_' || lpad('%d', 26, '0')`, round, n))
			}
		})
	}
	writing.Wait()
	wantFormQuestions(h)
	if n := value[int](h, `SELECT count(*) FROM form_questions WHERE questions LIKE '%Part 8%'`); n != 0 {
		t.Error("the text has labels that were replaced")
	}
}
