package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
)

// Feedback and the work order that was made of it link to each other, for those who may read both.
func TestFeedbackAndItsWorkOrderAreLinked(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	feedback := newFeedback(t, s)
	page := "/console/feedback/" + feedback
	ann := s.SignedIn("ann")
	newOrder := "/console/work-orders/new?feedback=" + feedback
	wantNot(t, ann.Get(page).Want(http.StatusOK, "Make a work order of it"), "Work orders made of it")
	form := ann.Get(newOrder).Want(http.StatusOK).Form("title", "Balance the fan", "assignees", s.ID("bob"))
	order := ann.Post("/console/work-orders", form).Want(http.StatusSeeOther).Location()
	ann.Get(page).Want(http.StatusOK, "Work orders made of it", `<a href="`+order+`"><bdi>1 Balance the fan</bdi></a>`, "Make another work order of it")
	ann.Get(order).Want(http.StatusOK, `Made of the feedback <a href="`+page+`">“<bdi>The fan rattles</bdi>”</a>`)
	// Bob is its worker, and may not read feedback.
	bob := s.SignedIn("bob")
	wantNot(t, bob.Get(order).Want(http.StatusOK, "Balance the fan"), "Made of the feedback")
	s.Exec(`UPDATE permission_definitions SET grants = '{feedback.read}' WHERE id = $1`, s.ID("working"))
	s.Exec(`DELETE FROM work_order_assignees`)
	wantNot(t, bob.Get(page).Want(http.StatusOK), "Work orders made of it")
	// Another organization's feedback is not found.
	form = ann.Get("/console/work-orders/new?node="+s.ID("ahu1")).Form("title", "Mine", "feedback", strings.Replace(feedback, "iss_0", "iss_1", 1))
	ann.Post("/console/work-orders", form).Want(http.StatusNotFound)
}
