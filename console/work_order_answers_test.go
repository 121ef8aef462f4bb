package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// storedAnswers are the answers of a work order by the questions' keys.
func storedAnswers(s *consoletest.Site, id string) string {
	keys := map[string]string{}
	for _, key := range []string{"q_state", "q_parts", "q_hours", "q_pressure", "q_note", "o_ok", "o_dirty", "o_belt", "o_filter"} {
		keys[s.ID(key)] = key
	}
	text := servicetest.Value[string](s.Fixture, `SELECT coalesce(string_agg(a.question_id || '=' || a.value::text, ' ' ORDER BY q.position), '')
		FROM answers a JOIN questions q ON q.id = a.question_id WHERE a.work_order_id = $1`, id)
	for id, key := range keys {
		text = strings.ReplaceAll(text, id, key)
	}
	return text
}

// answersForm is the form of a page with answers by the questions' keys.
func answersForm(s *consoletest.Site, page consoletest.Page, pairs ...string) url.Values {
	form := page.Form()
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if pairs[i] == "complete" {
			form.Set("complete", value)
			continue
		}
		if strings.HasPrefix(value, "o_") {
			value = s.ID(value)
		}
		form.Add(s.ID(pairs[i]), value)
	}
	return form
}

// A worker answers questions of every type, changes and clears answers, and completes the work.
func TestAWorkOrderIsAnswered(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := plannedWorkOrder(t, s)
	v, path := s.SignedIn("bob"), "/console/work-orders/"+id+"/answers"
	page := v.Get(path).Want(http.StatusOK, "Filter state (required to complete)", "Running hours (required to complete)", `inputmode="numeric"`, `inputmode="decimal"`, `type="radio"`, `type="checkbox"`)
	form := answersForm(s, page, "q_state", "o_dirty", "q_parts", "o_belt", "q_parts", "o_filter", "q_hours", " 120 ", "q_pressure", "12.50", "q_note", "Belt\r\nworn <b>")
	if page := v.Post(path, form).Want(http.StatusSeeOther); page.Location() != "/console/work-orders/"+id || page.Done() != "answered" {
		t.Errorf("it redirects to %s with %q", page.Location(), page.Done())
	}
	const all = `q_state="o_dirty" q_parts=["o_belt", "o_filter"] q_hours=120 q_pressure=12.50 q_note="Belt\nworn <b>"`
	servicetest.Expect(t, "the answers", storedAnswers(s, id), all)
	page = v.Get(path).Want(http.StatusOK, `value="`+s.ID("o_dirty")+`" checked`, `value="12.50"`, "Belt\nworn &lt;b&gt;</textarea>")
	// An unchanged answer keeps its time and author.
	s.Clock.Advance(time.Hour)
	v.Post(path, answersForm(s, page, "q_state", "o_dirty", "q_parts", "o_belt", "q_parts", "o_filter", "q_hours", "121", "q_pressure", "12.50", "q_note", "Belt\r\nworn <b>")).Want(http.StatusSeeOther)
	s.WantRows(1, `answers WHERE answered_at > $1`, s.Clock.Now().Add(-time.Minute))
	// Emptied answers are cleared, and a form that lacks questions leaves them alone.
	page = v.Get(path)
	v.Post(path, answersForm(s, page, "q_state", "o_ok", "q_hours", "121", "q_pressure", "", "q_note", "")).Want(http.StatusSeeOther)
	partial := v.Get(path).Form(s.ID("q_hours"), "122")
	partial.Set("asked", s.ID("q_hours"))
	v.Post(path, partial).Want(http.StatusSeeOther)
	servicetest.Expect(t, "the answers", storedAnswers(s, id), `q_state="o_ok" q_hours=122`)
	form = answersForm(s, v.Get(path).Want(http.StatusOK, "Save and complete"), "q_state", "o_ok", "q_hours", "122")
	form.Set("complete", "yes")
	form.Set("confirmed", "yes")
	v.Post(path, form).Want(http.StatusSeeOther)
	servicetest.Expect(t, "the status", statusOf(s, id), "complete")
}

// A question shows the mistake in its answer, and the form keeps all answers.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := plannedWorkOrder(t, s, "cat")
	v, path := s.SignedIn("bob"), "/console/work-orders/"+id+"/answers"
	good := []string{"q_state", "o_ok", "q_parts", "o_belt", "q_hours", "5", "q_pressure", "1.5", "q_note", "Kept note"}
	for _, test := range []struct{ question, value, wants string }{
		{"q_state", "opt_nothing", "one of the question"},
		{"q_parts", "opt_nothing", "list of ids"},
		{"q_hours", "many", "must be an integer"},
		{"q_pressure", "1,5,0", "must be a number"},
		{"q_note", strings.Repeat("x", 10_001), "at most 10,000 characters"},
	} {
		form := answersForm(s, v.Get(path).Want(http.StatusOK), good...)
		form.Set(s.ID(test.question), test.value)
		page := v.Post(path, form).Want(http.StatusUnprocessableEntity, test.wants, `id="`+s.ID(test.question)+`-about"><p class="problem">`)
		if test.question != "q_note" && !strings.Contains(page.Body, "Kept note</textarea>") || test.question != "q_state" && !strings.Contains(page.Body, s.ID("o_ok")+`" checked`) {
			t.Errorf("%s: the other answers are lost", test.question)
		}
	}
	form := answersForm(s, v.Get(path), "q_note", "Kept note")
	form.Set("complete", "yes")
	page := v.Post(path, form).Want(http.StatusUnprocessableEntity, "Answer this question to complete the work order.", "Kept note</textarea>")
	for _, key := range []string{"q_state", "q_hours"} {
		if !strings.Contains(page.Body, `id="`+s.ID(key)+`-about"><p class="problem">`) {
			t.Errorf("%s is not marked", key)
		}
	}
	servicetest.Expect(t, "the answers", storedAnswers(s, id), "")
	form = answersForm(s, v.Get(path).Want(http.StatusOK, "send to the consultants"), good...)
	form.Set("complete", "yes")
	v.Post(path, form).Want(http.StatusSeeOther)
	servicetest.Expect(t, "the status", statusOf(s, id), "sent_to_inspection")
}

// Someone who answers after another worker reads who did, sees the other's answers and keeps
// the input.
func TestAnswersOverOthers(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := plannedWorkOrder(t, s)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("dan")}, nil))
	path := "/console/work-orders/" + id + "/answers"
	bob, dan := s.SignedIn("bob"), s.SignedIn("dan")
	s.Exec(`UPDATE questions SET required = false WHERE id = $1`, s.ID("q_state"))
	first, mine := answersForm(s, bob.Get(path), "q_hours", "6"), answersForm(s, bob.Get(path), "q_hours", "7", "q_note", "Bob was here")
	s.Clock.Advance(time.Minute)
	dan.Post(path, answersForm(s, dan.Get(path), "q_hours", "8")).Want(http.StatusSeeOther)
	wantNow(t, bob.Post(path, first).Want(http.StatusConflict), "8")
	dan.Post(path, answersForm(s, dan.Get(path), "q_hours", "8", "q_state", "o_ok")).Want(http.StatusSeeOther)
	page := bob.Post(path, mine).Want(http.StatusConflict, by(s, "dan")+" answered", "Bob was here</textarea>")
	wantNow(t, page, "OK", "8", "nothing")
	servicetest.Expect(t, "the answers", storedAnswers(s, id), `q_state="o_ok" q_hours=8`)
	bob.Post(path, answersForm(s, page, "q_hours", "9", "q_state", "o_ok", "q_note", "Bob was here")).Want(http.StatusSeeOther)
	servicetest.Expect(t, "the answers", storedAnswers(s, id), `q_state="o_ok" q_hours=9 q_note="Bob was here"`)
}

// Without scripts too, a person edits a work order and answers its questions.
func TestAWorkOrderIsAnsweredInABrowser(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	creating(s)
	id := plannedWorkOrder(t, s)
	b.SignIn("bob", "/console/work-orders/"+id+"/edit")
	b.Fill("title", "Edited title")
	b.Press("Save")
	b.Open("/console/work-orders/" + id + "/answers")
	b.WantText("Edited title")
	b.Choose(s.ID("q_state"), s.ID("o_dirty"))
	b.Choose(s.ID("q_parts"), s.ID("o_belt"))
	b.Fill(s.ID("q_hours"), "12")
	b.Fill(s.ID("q_pressure"), "0.50")
	b.Fill(s.ID("q_note"), "Done")
	b.Press("Save and complete…")
	b.WantText("It cannot be reopened.")
	b.Press("Not yet")
	b.Fill(s.ID("q_pressure"), "0,50")
	b.Press("Save and complete…")
	b.Press("Save the answers and complete")
	b.WantPath("/console/work-orders/" + id)
	if got, want := storedAnswers(s, id), fmt.Sprintf("q_state=%q q_parts=[%q] q_hours=12 q_pressure=0.50 q_note=%q", "o_dirty", "o_belt", "Done"); got != want {
		t.Errorf("the answers are %s, want %s", got, want)
	}
	if record := workOrder(t, s, id); record.Title != "Edited title" || record.Status.Code != string(models.StatusComplete) {
		t.Errorf("it is %+v", record)
	}
}

// Completing asks once, because nothing undoes it: before the answers are saved with it too, and
// with what was entered. Sending to review asks nothing: the consultants may send it back.
func TestCompletingAsksOnce(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	reviewed, _ := planned(t, s)
	id := plannedWorkOrder(t, s)
	answer(t, s, reviewed)
	v, path := s.SignedIn("bob"), "/console/work-orders/"+id
	wantNot(t, v.Get("/console/work-orders/"+reviewed).Want(http.StatusOK, "Complete and send to review"), `href="/console/work-orders/`+reviewed+"/complete")
	v.Get("/console/work-orders/"+reviewed+"/complete").Want(http.StatusOK, "Its consultants review it")
	page := v.Get(path+"/answers").Want(http.StatusOK, "Save and complete…")
	v.Post(path+"/answers", answersForm(s, page, "q_state", "o_ok", "complete", "yes")).Want(http.StatusUnprocessableEntity, "Answer this question to complete")
	asked := v.Post(path+"/answers", answersForm(s, page, "q_state", "o_ok", "q_hours", "7", "q_parts", "o_belt", "q_parts", "o_filter", "complete", "yes")).
		Want(http.StatusOK, "It cannot be reopened.", "Save the answers and complete", "Not yet")
	if statusOf(s, id) != "open" || storedAnswers(s, id) != "" {
		t.Fatal("it did not ask")
	}
	back := asked.Form("again", "yes")
	back.Del("confirmed")
	v.Post(path+"/answers", back).Want(http.StatusOK, `value="7"`)
	v.Post(path+"/answers", keptForm(asked)).Want(http.StatusSeeOther)
	if got := storedAnswers(s, id); statusOf(s, id) != "complete" || got != `q_state="o_ok" q_parts=["o_belt", "o_filter"] q_hours=7` {
		t.Errorf("it is %s with %s", statusOf(s, id), got)
	}
	// Without a form, from the work order itself and on its answers page.
	for page, says := range map[string]string{"/complete": "It cannot be reopened.", "/answers": "This work order has no form"} {
		id := plannedWorkOrder(t, s)
		s.Exec(`UPDATE work_orders SET form_id = NULL WHERE id = $1`, id)
		path := "/console/work-orders/" + id
		v.Get(path).Want(http.StatusOK, `href="`+path+`/complete"`)
		v.Post(path+page, v.Get(path+page).Want(http.StatusOK, says).Form("complete", "yes", "confirmed", "yes")).Want(http.StatusSeeOther)
		servicetest.Expect(t, "the status", statusOf(s, id), "complete")
		v.Get(path+"/complete").Want(http.StatusUnprocessableEntity, "does not allow this")
	}
}

// A decimal comma is a point; one that may separate thousands is asked about.
func TestDecimalCommas(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := plannedWorkOrder(t, s)
	v, path := s.SignedIn("bob"), "/console/work-orders/"+id+"/answers"
	for _, test := range []struct{ question, entered, stored, problem string }{
		{"q_pressure", "12,5", "q_pressure=12.5", ""},
		{"q_pressure", "-0,25", "q_pressure=-0.25", ""},
		{"q_pressure", "1,2345", "q_pressure=1.2345", ""},
		{"q_pressure", "1.234", "q_pressure=1.234", ""},
		{"q_pressure", "1,234", "", "Is 1,234 meant as 1.234, or does the comma separate thousands?"},
		{"q_pressure", "0,125", "", "Is 0,125 meant as 0.125"},
		{"q_pressure", "1,234.5", "", "number"},
		{"q_pressure", "1,2,3", "", "number"},
		{"q_hours", "12,000", "", "Is 12,000 meant as 12.000"},
		{"q_hours", "7,0", "q_hours=7", ""},
	} {
		s.Exec(`DELETE FROM answers`)
		sent := v.Post(path, answersForm(s, v.Get(path), test.question, test.entered))
		if test.problem != "" {
			sent.Want(http.StatusUnprocessableEntity, test.problem, `value="`+test.entered+`"`)
		} else {
			sent.Want(http.StatusSeeOther)
		}
		servicetest.Expect(t, "the answers", storedAnswers(s, id), test.stored)
	}
}
