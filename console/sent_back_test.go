package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// Sending back requires a comment, which the workers find wherever they look: in the notice, on
// the work order and where they answer, until they complete it again.
func TestWhyWorkCameBackIsShown(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	answer(t, s, id)
	complete := func() {
		s.Must(s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, nil, records.CompleteWork))
	}
	complete()
	bob, cat := s.SignedIn("bob"), s.SignedIn("cat")
	banner := "Sent back by " + by(s, "cat")
	page := cat.Post(path+"/review", cat.Get(path).Form("decision", "send_back", "comment", " ")).Want(http.StatusUnprocessableEntity,
		"Sending work back requires a comment", `aria-invalid="true"`, "autofocus")
	if statusOf(s, id) != "sent_to_inspection" {
		t.Fatal("it was sent back without a comment")
	}
	next := cat.Post(path+"/review", page.Form("decision", "send_back", "comment", "The belt is <loose>.")).Want(http.StatusSeeOther).Location()
	cat.Get(next).Want(http.StatusOK, "Sent back. Its workers are told", "To review")
	cat.Get(path).Want(http.StatusOK, banner)
	bob.Get(path).Want(http.StatusOK, path+"/start")
	for _, where := range []string{path, path + "/answers"} {
		bob.Get(where).Want(http.StatusOK, banner, `<q class="lines"><bdi>The belt is &lt;loose&gt;.</bdi></q>`)
	}
	bob.Get("/console/notices").Want(http.StatusOK, "was sent back", "The belt is &lt;loose&gt;.")
	bob.Get("/console").Want(http.StatusOK, "Sent back to me")
	// It stays while the worker works.
	s.Must(s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, []records.GivenAnswer{{QuestionID: s.ID("q_note"), Value: "Tightened"}}, records.SaveAnswers))
	bob.Get(path).Want(http.StatusOK, "In progress", banner)
	complete()
	wantNot(t, bob.Get(path).Want(http.StatusOK), banner)
	wantNot(t, bob.Get(path+"/answers").Want(http.StatusOK), banner)
}

// No one has a reason to assign or remove people of a closed work order. Those who can no longer
// act are marked.
func TestPeopleOfAClosedWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann := s.SignedIn("ann")
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("dan")}, nil))
	const mark = "Not active"
	wantNot(t, ann.Get(path).Want(http.StatusOK, path+"/assign", path+"/unassign"), mark)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("dan"))
	if page := ann.Get(path).Want(http.StatusOK); strings.Count(page.Body, mark) != 1 {
		t.Errorf("%d people are marked", strings.Count(page.Body, mark))
	}
	s.Must(s.Records.CancelWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, nil))
	page := ann.Get(path).Want(http.StatusOK, "Cancelled", "Dan Woods")
	wantNot(t, page, path+"/assign")
	wantNot(t, page, path+"/unassign")
}
