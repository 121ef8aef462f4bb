package console_test

import (
	"net/http"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Someone gives feedback, the manager finds it by filters, opens its notice and resolves it,
// with and without scripts.
func TestFeedbackIsGivenAndResolved(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		allowFeedback(s)
		newFeedback(t, s)
		bob := s.SignedIn("bob")
		given := bob.Post("/console/feedback", bob.Get("/console/feedback/new?node=AHU-1").Want(http.StatusOK, "Headquarters", "AHU 1").
			Form("subject", "It leaks", "description", "Water below it.")).Want(http.StatusSeeOther)
		bob.Get(given.Location()).Want(http.StatusOK, "It leaks", "Water below it.", "Bob Stone", "gave feedback", "Resolve")

		b.SignIn("ann", "/console")
		b.PressInSidebar("Notices 2 unread")
		b.Press("Open: Feedback was opened It leaks")
		b.WantText("Water below it.", "Headquarters › HVAC ›")
		b.Open("/console/feedback?state=open")
		b.WantText("It leaks", "The fan rattles")
		b.Press("Bob Stone")
		b.WantText("Only what Bob Stone gave.", "It leaks")
		b.WantNoText("The fan rattles")
		b.Press("It leaks")
		b.Press("Resolve")
		b.WantText("The reporter gets a notice", "Ann Field resolved the feedback")
		s.WantRows(1, `notices WHERE person_id = $1 AND read_at IS NOT NULL`, s.ID("ann"))
		b.Open("/console/feedback?state=resolved")
		b.WantText("It leaks")
		b.Open("/console/feedback?state=resolved&by=" + s.ID("erp"))
		b.WantText("No feedback matches these filters.")
		b.Press("Clear the filters")
		b.WantText("The fan rattles")
		b.PressInSidebar("Notices 1 unread")
		b.Press("Mark all as read")
		b.WantText("You have read everything.")
	})
}

// wantNot fails the test if a page has the text.
func wantNot(t *testing.T, page consoletest.Page, unwanted ...string) {
	t.Helper()
	for _, text := range unwanted {
		if strings.Contains(page.Body, text) {
			t.Errorf("the page has %q:\n%s", text, page.Body)
		}
	}
}

// A page of the list links to the next one and back, with the filters.
func TestPagesOfFeedback(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	s.Exec(`INSERT INTO feedback (id, organization_id, inventory_id, subject, status, created_by, created_at, changed_at)
		SELECT 'iss_01kjq7k69re00b2a00a' || lpad(n::text, 7, '0'), $1, $2, 'Number ' || n, 'open', $3, now(), now() FROM generate_series(1, 60) n`,
		s.Acme.OrganizationID, s.ID("ahu1"), s.ID("erp"))
	ann := s.SignedIn("ann")
	first := ann.Get("/console/feedback?state=open").Want(http.StatusOK, ">Number 60<", ">Number 11<")
	next := unescaped(nextPage.FindAllStringSubmatch(first.Body, -1))[0]
	second := ann.Get(next).Want(http.StatusOK, ">Number 10<", ">Number 1<", ">Newest<", `href="/console/feedback?state=open"`)
	wantNot(t, second, ">Number 11<")
	ann.Get("/console/feedback?before=nonsense").Want(http.StatusBadRequest)
}

// The page offers what the person may do, and names the rule that forbids the rest.
func TestFeedbackOffersWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	page := "/console/feedback/" + newFeedback(t, s)
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read}' WHERE id = $1`, s.ID("working"))
	ann, bob := s.SignedIn("ann"), s.SignedIn("bob")
	ann.Get(page).Want(http.StatusOK, "/resolve", "/console/work-orders/new?feedback="+strings.TrimPrefix(page, "/console/feedback/")+"&amp;node="+s.ID("ahu1"))
	wantNot(t, bob.Get(page).Want(http.StatusOK), "/resolve")
	wantNot(t, bob.Get(page), "/work-orders/new")
	wantNot(t, bob.Get("/console/feedback/new").Want(http.StatusOK, "You may not give feedback on any place"), "<textarea")
	s.Exec(`UPDATE organizations SET read_only = true`)
	wantNot(t, ann.Get(page).Want(http.StatusOK, "/resolve"), "/work-orders/new")
	ann.Get("/console/feedback/new?node=AHU-1").Want(http.StatusOK, "<textarea") // giving feedback still works
}

// The form for new feedback shows errors at the fields, and keeps what was entered.
func TestRejectedFeedback(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	sent := v.Get("/console/feedback/new").Want(http.StatusOK).Form("node", "AHU-1", "subject", "It leaks <b>", "description", longText)
	page := v.Post("/console/feedback", sent).Want(http.StatusUnprocessableEntity, "at most 10000 characters", "It leaks &lt;b&gt;", "AHU 1")
	v.Post("/console/feedback", page.Form("subject", "It leaks", "description", "short")).Want(http.StatusSeeOther)
	sent = v.Get("/console/feedback/new?node=nowhere").Want(http.StatusOK, "No place on which you may give feedback").Form("subject", "It leaks")
	v.Post("/console/feedback", sent).Want(http.StatusUnprocessableEntity, "No place on which you may give feedback")
}

// Two people resolve the same feedback: one does, and the other is told who did.
func TestTwoPeopleResolveFeedback(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	allowFeedback(s)
	id := newFeedback(t, s)
	page := "/console/feedback/" + id
	v := s.SignedIn("ann")
	form := v.Get(page).Want(http.StatusOK).Form()
	s.Must(s.Records.ResolveFeedback(t.Context(), s.Viewer("bob"), store.NoKey, id))
	v.Post(page+"/resolve", form).Want(http.StatusConflict, "Bob Stone", "resolved the feedback", "since you opened this page")
	v.Post(page+"/resolve", v.Get(page).Form()).Want(http.StatusUnprocessableEntity, "does not allow this")
}

// Notices about people, teams, integrations, addresses and the organization link to their pages, with a
// sentence each.
func TestSecurityNoticesLeadToTheirPages(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for _, who := range []string{"ann", "cat"} {
		for about, notice := range map[string]struct {
			kind     models.NoticeKind
			text, to string
		}{
			"bob":         {models.NoticeRoleChanged, "A person&#39;s role was changed", "/console/people/" + s.ID("bob")},
			"crew":        {models.NoticeTeamAccess, "Someone joined a team that has permissions in the inventory", "/console/teams/" + s.ID("crew")},
			"erp":         {models.NoticeSecretRenewed, "An integration&#39;s secret was renewed", "/console/integrations/" + s.ID("erp")},
			"reader_hook": {models.NoticeWebhookOff, "A webhook address was turned off after a final failure", "/console/webhooks/" + s.ID("reader_hook")},
			"":            {models.NoticeAccessChanged, "Roles, secrets or ways to sign in were changed", "/console/people"},
		} {
			id := s.Acme.OrganizationID
			if about != "" {
				id = s.ID(about)
			}
			button := "Open<span"
			if who == "cat" && (about == "erp" || about == "reader_hook") { // without the Integrations permission
				notice.to, button = "/console/notices", "Mark as read<span"
			}
			s.Exec(`DELETE FROM notices`)
			s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, $3, $4, now())`, s.Acme.OrganizationID, s.ID(who), notice.kind, id)
			v := s.SignedIn(who)
			v.Get("/console/notices").Want(http.StatusOK, notice.text, button)
			if about == "reader_hook" && who == "ann" {
				v.Get("/console/notices").Want(http.StatusOK, "127.0.0.1:9/reader")
			}
			path := "/console/notices/" + servicetest.Value[string](s.Fixture, `SELECT id::text FROM notices`) + "/open"
			servicetest.Expect(t, string(notice.kind)+" leads "+who+" to", v.Post(path, nil).Want(http.StatusSeeOther).Location(), notice.to)
		}
	}
}

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
