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

		b.SignIn("ann")
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
		if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND read_at IS NOT NULL`, s.ID("ann")); n != 1 {
			t.Errorf("%d notices are read", n)
		}
		b.Open("/console/feedback?state=resolved")
		b.WantText("It leaks")
		b.Open("/console/feedback?state=resolved&by=" + s.ID("erp"))
		b.WantText("No feedback matches these filters.")
		b.Press("Clear the filters")
		b.WantText("The fan rattles")
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
	b := s.BrowserWithoutScripts(t)
	b.SignIn("ann")
	b.Open("/console/feedback?state=open")
	b.WantText("Number 60", "Number 11")
	b.Press("Next page")
	b.WantText("Number 10", "Number 1")
	b.WantNoText("Number 11")
	b.Press("Newest")
	b.WantText("Number 60")
	s.SignedIn("ann").Get("/console/feedback?before=nonsense").Want(http.StatusBadRequest)
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
	bob.Post(page+"/resolve", nil).Want(http.StatusForbidden, "may not resolve feedback on this place")
	wantNot(t, bob.Get("/console/feedback/new").Want(http.StatusOK, "You may not give feedback on any place"), "<textarea")
	form := ann.Get("/console/feedback/new?node=AHU-1").Want(http.StatusOK).Form("subject", "It leaks")
	s.Exec(`UPDATE organizations SET read_only = true`)
	wantNot(t, ann.Get(page).Want(http.StatusOK, "/resolve"), "/work-orders/new")
	ann.Post("/console/feedback", form).Want(http.StatusSeeOther)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM feedback WHERE status = 'resolved'`); n != 0 {
		t.Errorf("%d are resolved", n)
	}
	s.SignedIn("eve").Get(page).Want(http.StatusNotFound)
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
	if _, err := s.Records.ResolveFeedback(t.Context(), s.Viewer("bob"), store.NoKey, id); err != nil {
		t.Fatal(err)
	}
	v.Post(page+"/resolve", form).Want(http.StatusConflict, "Bob Stone", "resolved the feedback", "since you opened this page")
	v.Post(page+"/resolve", v.Get(page).Form()).Want(http.StatusUnprocessableEntity, "does not allow this")
}

// A notice about a record that the person may no longer read is marked read and leads nowhere.
func TestANoticeOfAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id := newFeedback(t, s)
	for _, person := range []string{"ann", "bob"} {
		s.Exec(`DELETE FROM notices WHERE person_id = $1`, s.ID(person))
		s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at, mail) VALUES ($1, $2, $3, $4, now(), 'inbox')`,
			s.Acme.OrganizationID, s.ID(person), models.NoticeFeedbackOpened, id)
		v := s.SignedIn(person)
		want, button := "/console/feedback/"+id, "Open"
		if person == "bob" {
			want, button = "/console/notices", "Mark as read"
		}
		notice := servicetest.Value[string](s.Fixture, `SELECT id::text FROM notices WHERE person_id = $1`, s.ID(person))
		v.Get("/console/notices").Want(http.StatusOK, button+"<span")
		if to := v.Post("/console/notices/"+notice+"/open", nil).Want(http.StatusSeeOther).Location(); to != want {
			t.Errorf("%s is led to %s, want %s", person, to, want)
		}
	}
}

// Notices about people, teams, integrations and the organization link to their pages, with a
// sentence each.
func TestSecurityNoticesLeadToTheirPages(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	for _, who := range []string{"ann", "cat"} {
		for about, notice := range map[string]struct {
			kind     models.NoticeKind
			text, to string
		}{
			"bob":  {models.NoticeRoleChanged, "A person&#39;s role was changed", "/console/people/" + s.ID("bob")},
			"crew": {models.NoticeTeamAccess, "Someone joined a team that has permissions in the inventory", "/console/teams/" + s.ID("crew")},
			"erp":  {models.NoticeSecretRenewed, "An integration&#39;s secret was renewed", "/console/integrations/" + s.ID("erp")},
			"":     {models.NoticeAccessChanged, "Roles, secrets or ways to sign in were changed", "/console/people"},
		} {
			id := s.Acme.OrganizationID
			if about != "" {
				id = s.ID(about)
			}
			if who == "cat" && about == "erp" { // without the Integrations permission
				notice.to = "/console/notices"
			}
			s.Exec(`DELETE FROM notices`)
			s.Exec(`INSERT INTO notices (organization_id, person_id, kind, record_id, created_at) VALUES ($1, $2, $3, $4, now())`, s.Acme.OrganizationID, s.ID(who), notice.kind, id)
			v := s.SignedIn(who)
			v.Get("/console/notices").Want(http.StatusOK, notice.text)
			path := "/console/notices/" + servicetest.Value[string](s.Fixture, `SELECT id::text FROM notices`) + "/open"
			if to := v.Post(path, nil).Want(http.StatusSeeOther).Location(); to != notice.to {
				t.Errorf("%s of %q leads %s to %s, want %s", notice.kind, about, who, to, notice.to)
			}
		}
	}
}
