package console_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// commentOn comments on a record and returns the comment's id.
func commentOn(t testing.TB, s *consoletest.Site, by, record, text string) string {
	t.Helper()
	if err := s.Records.AddComment(t.Context(), s.Viewer(by), store.NoKey, record, text); err != nil {
		t.Fatal(err)
	}
	return servicetest.Value[string](s.Fixture, `SELECT id FROM comments WHERE record_id = $1 ORDER BY created_at DESC LIMIT 1`, record)
}

// Readers comment on a work order and on feedback, without scripts too. Those concerned find a notice.
func TestComments(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.BrowserWithoutScripts(t)
	allowFeedback(s)
	record, feedback := inReview(t, s, "cat"), newFeedback(t, s)
	s.Exec(`DELETE FROM notices`)
	b.SignIn("bob", "/console")
	for _, page := range []string{"/console/work-orders/" + record, "/console/feedback/" + feedback} {
		b.Open(page)
		b.Fill("text", "The belt is loose.")
		b.Press("Comment")
		b.WantText("Your comment is saved", "The belt is loose.")
	}
	cat := s.SignedIn("cat")
	cat.Get("/console/notices").Want(http.StatusOK, "has a new comment")
	cat.Get("/console/work-orders/"+record).Want(http.StatusOK, "<strong>"+by(s, "bob")+"</strong>", `<p class="lines"><bdi>The belt is loose.</bdi></p>`)
	cat.Get("/console/feedback/"+feedback).Want(http.StatusOK, "<strong>"+by(s, "bob")+"</strong>", `<p class="lines"><bdi>The belt is loose.</bdi></p>`)
	s.SignedIn("ann").Get("/console/notices").Want(http.StatusOK, "Feedback has a new comment")
}

// A rejected comment stays in the box, which has the focus, with what is wrong; another form of
// the page has no part in it.
func TestRejectedComments(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	bob := s.SignedIn("bob")
	path := "/console/work-orders/" + inReview(t, s, "ann")
	form := bob.Get(path).Want(http.StatusOK).Form("text", longText+" <i>end</i>")
	page := bob.Post(path+"/comments", form).Want(http.StatusUnprocessableEntity, "at most 10000 characters", "&lt;i&gt;end&lt;/i&gt;</textarea>", ` autofocus aria-invalid="true"`)
	wantNot(t, page, "<p>The text must have") // above the page
	bob.Post(path+"/comments", page.Form("text", " Tight\r\nenough ")).Want(http.StatusSeeOther)
	wantNot(t, bob.Get(path).Want(http.StatusOK, "<bdi>Tight\nenough</bdi>"), "autofocus")
}

// An administrator removes a comment on a page that states the effect. The line stays.
func TestAnAdministratorRemovesAComment(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := inReview(t, s, "ann")
	record, comment := "/console/work-orders/"+id, commentOn(t, s, "bob", id, "Call 4711 <i>now</i>")
	path := record + "/remove-comment?comment=" + comment
	bob, ann := s.SignedIn("bob"), s.SignedIn("ann")
	wantNot(t, bob.Get(record).Want(http.StatusOK, "4711"), path)
	bob.Get(path).Want(http.StatusForbidden, "administrator")
	bob.Post(path, nil).Want(http.StatusForbidden, "administrator")
	s.SignedIn("eve").Post(path, nil).Want(http.StatusNotFound)
	ann.Post("/console/work-orders/"+newRecord(t, s)+"/remove-comment?comment="+comment, nil).Want(http.StatusNotFound)
	ann.Get(record).Want(http.StatusOK, `href="`+path+`"`)
	page := ann.Get(path).Want(http.StatusOK, "Call 4711 &lt;i&gt;now", "cannot be restored")
	ann.Post(path, page.Form()).WantRedirect(record + "#activity")
	for _, reader := range []*consoletest.Visitor{ann, bob} {
		page := reader.Get(record).Want(http.StatusOK, "<strong>"+by(s, "bob")+"</strong>", "Removed by an administrator.")
		wantNot(t, page, "4711")
		wantNot(t, page, path)
	}
	wantNot(t, ann.Get(path).Want(http.StatusOK, "has removed it already"), "Remove the comment")
	ann.Get("/console/log").Want(http.StatusOK, "removed a comment on the work order")
}

// A record's page shows the latest thirty lines of its activity, oldest first.
func TestPagesOfComments(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	feedback, order := newFeedback(t, s), newRecord(t, s)
	ann := s.SignedIn("ann")
	for id, c := range map[string]struct{ path, first string }{
		feedback: {"/console/feedback/" + feedback, "gave feedback"}, order: {"/console/work-orders/" + order, "created the work order"},
	} {
		for n := range 35 {
			commentOn(t, s, "ann", id, "Number "+strconv.Itoa(n)+".")
		}
		page := ann.Get(c.path).Want(http.StatusOK, "Number 34.", "Number 5.", "Earlier")
		wantNot(t, page, "Number 4.")
		if strings.Index(page.Body, "Number 5.") > strings.Index(page.Body, "Number 34.") {
			t.Errorf("%s: the newest line is not the last", c.path)
		}
		_, next, _ := strings.Cut(page.Body, `href="`+c.path+`?before=`)
		before, _, _ := strings.Cut(next, "#")
		page = ann.Get(c.path+"?before="+before).Want(http.StatusOK, "Number 4.", "Number 0.", c.first, "Newest")
		wantNot(t, page, "Number 5.")
	}
}
