package console_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// planned creates a work order of ann on AHU 1 with the form: bob works, cat reviews.
func planned(t testing.TB, s *consoletest.Site) (id, path string) {
	t.Helper()
	form, text := s.ID("inspection"), "First line\nsecond line"
	id = s.Must(s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace the belt", Description: &text, FormID: &form, Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID("cat")},
	}))
	return id, "/console/work-orders/" + id
}

// answer answers the required questions of a planned work order as bob.
func answer(t testing.TB, s *consoletest.Site, id string) {
	t.Helper()
	s.Must(s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, []records.GivenAnswer{
		{QuestionID: s.ID("q_state"), Value: s.ID("o_ok")}, {QuestionID: s.ID("q_parts"), Value: []any{s.ID("o_belt"), s.ID("o_filter")}}, {QuestionID: s.ID("q_hours"), Value: json.Number("1200")},
	}, records.SaveAnswers))
}

// inReview returns a work order that bob completed, in review by the consultant.
func inReview(t testing.TB, s *consoletest.Site, consultant string) string {
	t.Helper()
	id := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Tighten the belt", Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID(consultant)},
	}))
	s.Must(s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, nil, records.CompleteWork))
	return id
}

func statusOf(s *consoletest.Site, id string) string {
	return servicetest.Value[string](s.Fixture, `SELECT status FROM work_orders WHERE id = $1`, id)
}

// Readers see the record with names next to ids, its node's path, answers, people and history;
// no other action is offered, and the page names the rule that forbids each.
func TestTheWorkOrderPageShowsTheRecord(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	answer(t, s, id)
	grant(s, "bob", "integrations")
	page := s.SignedIn("bob").Get(path).Want(http.StatusOK,
		"<bdi>Replace the belt</bdi>", "In progress", "<bdi>Headquarters</bdi> › <bdi>HVAC</bdi>", "<bdi>AHU 1</bdi>", "AHU-1", "<bdi>Bob Stone</bdi>", "<bdi>Cat Rivers</bdi>", "Consultant, reviews the work",
		"bob@acme.example.com", "by <bdi>Ann Field</bdi>", "First line\nsecond line", "<bdi>Inspection</bdi>", "<bdi>OK</bdi>", "<bdi>Belt, Filter</bdi>", "<bdi>1200</bdi>", "No answer", "by <bdi>Bob Stone</bdi>",
		by(s, "ann")+" created the work order.", by(s, "bob")+" answered “Filter state”, “Parts used” and “Running hours”.",
		`href="`+path+`/integrations"`, "Complete and send to review", "Put on hold", id)
	wantNot(t, page, path+"/cancel", path+"/assign", path+"/unassign", path+"/resume", path+"/review")
	if page = s.SignedIn("cat").Get(path).Want(http.StatusOK, "Only an assigned worker may answer this work order"); strings.Contains(page.Body, path+"/integrations") {
		t.Error("cat is shown the integrations without the permission")
	}
	s.SignedIn("ann").Get(path).Want(http.StatusOK, "Assign people", "Cancel…", "A work order needs at least one worker.")
	stranger := s.SignedIn("zed")
	if theirs, unknown := stranger.Get(path).Want(http.StatusNotFound), stranger.Get(unknownOf(path)).Want(http.StatusNotFound); theirs.Body != unknown.Body {
		t.Error("someone who may not read it can tell that it exists")
	}
}

// A step that is rejected shows why, and keeps what was entered.
func TestRejectedSteps(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	bob, cat := s.SignedIn("bob"), s.SignedIn("cat")
	page := bob.Post(path+"/complete", bob.Get(path).Form()).Want(http.StatusUnprocessableEntity, "Required questions have no answer: “Filter state”, “Running hours”.")
	wantNot(t, page, "Complete and send")
	path = "/console/work-orders/" + inReview(t, s, "cat")
	review := func(fields ...string) consoletest.Page {
		return cat.Post(path+"/review", cat.Get(path).Want(http.StatusOK, "Your review").Form(fields...))
	}
	review("decision", "x").Want(http.StatusBadRequest)
	review("decision", "approve", "comment", strings.Repeat("x", 1001)).Want(http.StatusUnprocessableEntity, "at most 1,000 characters", strings.Repeat("x", 1001))
	review("decision", "approve").Want(http.StatusSeeOther)
	s.SignedIn("ann").Get(path+"/cancel").Want(http.StatusUnprocessableEntity, "does not allow this")
}

func TestAssignAndRemovePeople(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	ann := s.SignedIn("ann")
	ann.Get(path+"/assign").Want(http.StatusOK, `Dan Woods <span class="hint">0 open</span>`, `Crew <span class="hint">team, `, `Polar Lifts <span class="hint">service company</span>`)
	ann.Get(path+"/assign?find=zed").Want(http.StatusOK, "No one who can be assigned matches")
	assign := func(identity, role string) consoletest.Page {
		return ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", identity, "role", role))
	}
	remove := func(key string) consoletest.Page {
		form := ann.Get(path).Form()
		form.Set("identity", s.ID(key))
		return ann.Post(path+"/unassign", form)
	}
	assign("nonsense", "worker").Want(http.StatusUnprocessableEntity, "There is no such identity.")
	assign(s.ID("crew"), "consultant").Want(http.StatusSeeOther)
	remove("bob").Want(http.StatusUnprocessableEntity, "A work order needs at least one worker.")
	assign(s.ID("dan"), "worker").Want(http.StatusSeeOther)
	remove("bob").Want(http.StatusSeeOther)
	ann.Get(path).Want(http.StatusOK, by(s, "ann")+" added Dan Woods as worker.", by(s, "ann")+" added Crew as consultant.", "removed Bob Stone as worker")
}

func TestCancellingAsksFirst(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann := s.SignedIn("ann")
	page := ann.Get(path+"/cancel").Want(http.StatusOK, "Cancel “Replace the belt”?", "It cannot be reopened.", "1 worker and 1 consultant are told", "0 answers stay", "Keep it")
	ann.Post(path+"/cancel", page.Form("reason", strings.Repeat("x", 1001))).Want(http.StatusUnprocessableEntity, "at most 1000 characters")
	servicetest.Expect(t, "the status", statusOf(s, id), "open")
	ann.Post(path+"/cancel", ann.Get(path+"/cancel").Form("reason", "A duplicate")).Want(http.StatusSeeOther)
	ann.Get(path).Want(http.StatusOK, "Cancelled", ": <bdi>A duplicate</bdi></dd>", by(s, "ann")+" cancelled the work order: <q class=\"lines\"><bdi>A duplicate</bdi></q>")
}

// Two people on one work order: the second one sees what the first one did, in words, and
// keeps what was entered.
func TestTwoPeopleOnAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	answer(t, s, id)
	s.Must(s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, nil, records.CompleteWork))
	ann, cat := s.SignedIn("ann"), s.SignedIn("cat")
	form := cat.Get(path).Form("decision", "approve", "comment", "Well done.")
	ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("dan"), "role", "worker")).Want(http.StatusSeeOther)
	title := "Replace the long belt"
	s.Exec(`UPDATE work_orders SET status = 'in_progress', completed_by = NULL WHERE id = $1`, id)
	s.Must(s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{
		Title: records.Sent[string]{Value: title, Set: true}, Priority: records.Sent[models.Priority]{Value: models.PriorityHigh, Set: true},
	}))
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, id)
	stale := cat.Post(path+"/review", form).Want(http.StatusConflict,
		by(s, "ann")+" changed the title from “Replace the belt” to “Replace the long belt” and the priority from none to high at ",
		", and before that "+by(s, "ann")+" added Dan Woods as worker at", "since you opened this page", ">Well done.</textarea>")
	servicetest.Expect(t, "the status", statusOf(s, id), "sent_to_inspection")
	cat.Post(path+"/review", stale.Form("decision", "approve", "comment", "Well done.")).Want(http.StatusSeeOther)
}

var primaryButton = regexp.MustCompile(`class="(?:button )?primary"[^>]*>(?:<svg.*?</svg>)?([^<]+)<`)

// The page has one primary action, what the person does next. A menu has the others, and why the person cannot
// complete the work order.
func TestTheNextActionIsPrimary(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	want := func(key, path, next string) consoletest.Page {
		t.Helper()
		page := s.SignedIn(key).Get(path).Want(http.StatusOK)
		if found := strings.Join(unescaped(primaryButton.FindAllStringSubmatch(page.Body, -1)), ", "); found != next {
			t.Errorf("the primary action of %s is %q, want %q", key, found, next)
		}
		return page
	}
	want("bob", path, "Start work").Want(http.StatusOK, `<button type="button" disabled>Complete</button><p class="muted">Required questions have no answer: “Filter state”, “Running hours”.</p>`)
	wantNot(t, want("cat", path, ""), "Edit")
	page := want("ann", path, "")
	for _, other := range []string{"hold", "assign", "edit", "cancel"} {
		page.Want(http.StatusOK, path+"/"+other)
	}
	answer(t, s, id)
	want("bob", path, "Complete and send to review").Want(http.StatusOK, path+"/answers")
	s.Exec(`UPDATE work_orders SET status = 'on_hold' WHERE id = $1`, id)
	want("bob", path, "Resume")
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, id)
	want("cat", path, "Approve")
	s.Exec(`UPDATE work_orders SET status = 'open' WHERE id = $1`, id)
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("bob"))
	want("ann", path, "Assign people")
}

// The page has two columns on a desk. In one column the brief facts are first, then what to do.
func TestAWorkOrderHasTwoColumns(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	b := s.Browser(t)
	b.SignIn("ann", path)
	b.CheckWidth("a work order")
	const place = `(name => [...document.querySelector(".columns").children].map(e => e.getBoundingClientRect()[name]))`
	for _, test := range []struct {
		width int64
		want  string
	}{
		{1280, place + `("x")[1] < ` + place + `("x")[0] && ` + place + `("x")[0] === ` + place + `("x")[2] && ` + place + `("y")[0] === ` + place + `("y")[1]`},
		{899, place + `("y")[0] < ` + place + `("y")[1] && ` + place + `("y")[1] < ` + place + `("y")[2]`},
	} {
		if b.Measure(test.width, 900, `Number(`+test.want+`)`) != 1 {
			t.Errorf("at %d px the columns are elsewhere", test.width)
		}
	}
	// The sidebar stays in view.
	if at := b.Measure(1280, 300, `scrollTo({top: 200, behavior: "instant"}), document.querySelector(".sidebar .nav").getBoundingClientRect().top`); at != 0 {
		t.Errorf("the sidebar is at %v", at)
	}
}

// A menu closes with Escape, and when the focus goes elsewhere: it never covers the focus.
func TestTheMenuOfActions(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	b := s.Browser(t)
	b.SignIn("bob", path)
	b.Click("main .drop > summary")
	b.WantText("Put on hold")
	b.Check("work-order-actions")
	b.Open(path)
	for _, leave := range []func(){
		func() { b.Do(chromedp.KeyEvent(kb.Escape)) }, func() { b.TabTo("AHU 1") }, func() { b.Do(chromedp.MouseClickXY(2, 2)) },
	} {
		b.Click("main .drop > summary")
		b.WantText("Put on hold")
		leave()
		b.WantNoText("Put on hold")
	}
}

// The activity shows comments and changes in one stream, newest last.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	commentOn(t, s, "ann", id, "Look at the belt.")
	cat := s.SignedIn("cat")
	cat.Post(path+"/hold", cat.Get(path).Form()).Want(http.StatusSeeOther)
	page, last := cat.Get(path).Want(http.StatusOK), 0
	for _, line := range []string{"created the work order", "Look at the belt.", "put the work order on hold"} {
		at := strings.Index(page.Body, line)
		if at < last {
			t.Errorf("%q is missing or not in order", line)
		}
		last = at
	}
	// A new comment is the last line, where the browser goes.
	cat.Post(path+"/comments", cat.Get(path).Form("text", "It is worn.")).WantRedirect(path + "#latest")
	cat.Get(path).Want(http.StatusOK, `<li class="card" id="latest"><div class="row"><strong>`+by(s, "cat")+`</strong>`)
}

// Each grant on the node taken away in turn: its action is not offered.
func TestGrantsOnAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann := s.SignedIn("ann")
	// ann created it, and is no worker: she reads it with either of two grants.
	id, path := planned(t, s)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("crew")}, nil))
	needs := map[string]models.Grant{
		"hold": models.GrantWorkOrdersUpdate, "edit": models.GrantWorkOrdersUpdate, "cancel": models.GrantWorkOrdersDelete,
		"assign": models.GrantWorkOrdersForward, "unassign": models.GrantWorkOrdersForward,
	}
	for _, missing := range append([]models.Grant{""}, models.AllGrants...) {
		s.Exec(`UPDATE permission_definitions SET grants = $2 WHERE id = $1`, s.ID("manager"), namesBut(models.AllGrants, missing))
		page := ann.Get(path).Want(http.StatusOK)
		for action, needed := range needs {
			if offered := strings.Contains(page.Body, path+"/"+action); offered != (needed != missing) {
				t.Errorf("without %q the page offers to %s: %t", missing, action, offered)
			}
		}
	}
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	wantNot(t, ann.Get(path).Want(http.StatusOK), path+"/edit")
}

// A customer's work order shows whose it is to people with incoming work orders, who forward
// it to their own people.
func TestACustomersWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	s.Must(s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.Polar.OrganizationID}, nil))
	wantNot(t, s.SignedIn("ann").Get(path), "<dt>Customer</dt>")
	pia := s.SignedIn("pia")
	pia.Get(path).Want(http.StatusOK, "<dt>Customer</dt><dd><bdi>Acme Facilities</bdi></dd>", "A service company may remove only its own people.")
	choices := pia.Get(path+"/assign").Want(http.StatusOK, `Pia Frost <span class="hint">`)
	wantNot(t, choices, "Dan Woods", "Replacing removes")
	pia.Post(path+"/assign", choices.Form("identity", s.ID("pia"), "role", "worker")).Want(http.StatusSeeOther)
	pia.Get(path).Want(http.StatusOK, by(s, "pia")+" added Pia Frost as worker.")
}

// Hold, resume, review, send back, approve and cancel in a browser, with scripts and without; a
// double click holds once.
func TestStepsOfAWorkOrderInABrowser(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		path := "/console/work-orders/" + inReview(t, s, "ann")
		b.SignIn("ann", path)
		b.Fill("comment", "The belt is loose.")
		b.Press("Send back")
		b.WantText("Sent back. Its workers are told")
		b.Open(path)
		b.WantText("Back from review", "The belt is loose.", "Ann Field sent the work order back")
		b.Click("main .drop > summary")
		b.Do(chromedp.DoubleClick(chromedp.CSS(`main form[action$="/hold"] button`)))
		b.WantText("On hold")
		b.WantNoText("Put on hold")
		s.WantRows(1, `log WHERE action = 'work_order.held'`)
		b.Open(path)
		b.Press("Resume")
		b.WantText("Resumed.")
		b.Press("Assign people")
		b.Choose("identity", s.ID("dan"))
		b.Press("Assign")
		b.WantText("Ann Field added Dan Woods as worker.")
		b.PressAction("Cancel…")
		b.WantText("It cannot be reopened.")
		b.Fill("reason", "A duplicate")
		b.Press("Cancel the work order")
		b.WantText("Cancelled", "A duplicate")
		b.Open("/console/work-orders/" + inReview(t, s, "ann"))
		b.Press("Approve")
		b.WantText("Approved: the work order is complete.")
	})
}
