package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
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
	result, err := s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Replace the belt", Description: &text, FormID: &form, Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID("cat")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return result.RecordID, "/console/work-orders/" + result.RecordID
}

// answer answers the required questions of a planned work order as bob.
func answer(t testing.TB, s *consoletest.Site, id string) {
	t.Helper()
	_, err := s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, []records.GivenAnswer{
		{QuestionID: s.ID("q_state"), Value: s.ID("o_ok")}, {QuestionID: s.ID("q_parts"), Value: []any{s.ID("o_belt"), s.ID("o_filter")}}, {QuestionID: s.ID("q_hours"), Value: json.Number("1200")},
	}, records.SaveAnswers)
	if err != nil {
		t.Fatal(err)
	}
}

// inReview returns a work order that bob completed, in review by the consultant.
func inReview(t testing.TB, s *consoletest.Site, consultant string) string {
	t.Helper()
	created, err := s.Records.CreateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, records.NewWorkOrder{
		InventoryID: s.ID("ahu1"), Title: "Tighten the belt", Assignees: []string{s.ID("bob")}, Consultants: []string{s.ID(consultant)},
	})
	if err == nil {
		_, err = s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, created.RecordID, nil, records.CompleteWork)
	}
	if err != nil {
		t.Fatal(err)
	}
	return created.RecordID
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
	for _, never := range []string{path + "/cancel", path + "/assign", path + "/unassign", path + "/resume", path + "/review"} {
		if strings.Contains(page.Body, never) {
			t.Errorf("bob is offered %s", never)
		}
	}
	if page = s.SignedIn("cat").Get(path).Want(http.StatusOK, "Only an assigned worker may answer this work order"); strings.Contains(page.Body, path+"/integrations") {
		t.Error("cat is shown the integrations without the permission")
	}
	s.SignedIn("ann").Get(path).Want(http.StatusOK, "Assign people", "Cancel…", "A work order needs at least one worker.")
	for _, key := range []string{"zed", "eve", "pia"} {
		stranger := s.SignedIn(key)
		if theirs, unknown := stranger.Get(path).Want(http.StatusNotFound), stranger.Get(unknownOf(path)).Want(http.StatusNotFound); theirs.Body != unknown.Body {
			t.Errorf("%s can tell that it exists", key)
		}
	}
}

// Every button does what it says, through the service: with its Log Record, notices, events
// and wakes.
func TestStepsOfAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann, bob, cat := s.SignedIn("ann"), s.SignedIn("bob"), s.SignedIn("cat")
	do := func(v *consoletest.Visitor, action string, want string, fields ...string) consoletest.Page {
		t.Helper()
		page := v.Post(path+"/"+action, v.Get(path).Want(http.StatusOK).Form(fields...)).Want(http.StatusSeeOther)
		if got := statusOf(s, id); got != want {
			t.Errorf("after %s the status is %s, want %s", action, got, want)
		}
		v.Get(page.Location()).Want(http.StatusOK) // after a review that is the queue
		return v.Get(path).Want(http.StatusOK)
	}
	do(bob, "hold", "on_hold").Want(http.StatusOK, "On hold", "Resume")
	do(cat, "resume", "open")
	page := bob.Post(path+"/complete", bob.Get(path).Form()).Want(http.StatusUnprocessableEntity, "Required questions have no answer: “Filter state”, “Running hours”.")
	if statusOf(s, id) != "open" || strings.Contains(page.Body, "Complete and send") {
		t.Error("completing without answers")
	}
	answer(t, s, id)
	do(bob, "complete", "sent_to_inspection")
	cat.Get(path).Want(http.StatusOK, "Your review")
	cat.Post(path+"/review", cat.Get(path).Form("decision", "x")).Want(http.StatusBadRequest)
	cat.Post(path+"/review", cat.Get(path).Form("decision", "approve", "comment", strings.Repeat("x", 1001))).Want(http.StatusUnprocessableEntity, "at most 1,000 characters", strings.Repeat("x", 1001))
	do(cat, "review", "back_from_inspection", "decision", "send_back", "comment", "The belt is loose.").Want(http.StatusOK,
		by(s, "cat")+" sent the work order back: <q class=\"lines\"><bdi>The belt is loose.</bdi></q>")
	do(bob, "complete", "sent_to_inspection")
	s.Wakes.Take()
	do(cat, "review", "complete", "decision", "approve")
	woken := s.Wakes.Take()
	if len(woken) == 0 || woken[len(woken)-1].ID != id {
		t.Errorf("the approval wakes %v", woken)
	}
	for sql, want := range map[string]int{
		`SELECT count(*) FROM log WHERE record_id = $1 AND actor_name = 'Cat Rivers' AND action = 'work_order.approved'`:            1,
		`SELECT count(*) FROM events WHERE record_id = $1 AND type = 'work_order.completed'`:                                        1,
		`SELECT count(*) FROM notices WHERE record_id = $1 AND kind = 'work_order.completed' AND person_id = '` + s.ID("ann") + `'`: 1,
	} {
		if n := servicetest.Value[int](s.Fixture, sql, id); n != want {
			t.Errorf("%s: %d", sql, n)
		}
	}
	ann.Get(path+"/cancel").Want(http.StatusUnprocessableEntity, "does not allow this")
}

func TestAssignAndRemovePeople(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann := s.SignedIn("ann")
	page := ann.Get(path+"/assign").Want(http.StatusOK, `Dan Woods <span class="hint">0 open</span>`, `Crew <span class="hint">team, `, `Polar Lifts <span class="hint">service company</span>`)
	for _, never := range []string{"Zed Nowhere", "Eve Hill", "Bob Stone", "Cat Rivers"} {
		if strings.Contains(page.Body, ">"+never+" <span") {
			t.Errorf("%s is offered", never)
		}
	}
	ann.Get(path+"/assign?find=wood").Want(http.StatusOK, "Dan Woods")
	ann.Get(path+"/assign?find=zed").Want(http.StatusOK, "No one who can be assigned matches")
	ann.Post(path+"/assign", page.Form("identity", s.ID("dan"), "role", "worker")).Want(http.StatusSeeOther)
	ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("crew"), "role", "consultant")).Want(http.StatusSeeOther)
	ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("zed"), "role", "worker")).Want(http.StatusUnprocessableEntity, "is not connected to the place")
	ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", "nonsense", "role", "worker")).Want(http.StatusUnprocessableEntity, "There is no such identity.")
	ann.Get(path).Want(http.StatusOK, by(s, "ann")+" added Dan Woods as worker.", by(s, "ann")+" added Crew as consultant.")
	form := ann.Get(path).Form()
	form.Set("identity", s.ID("bob"))
	ann.Post(path+"/unassign", form).Want(http.StatusSeeOther)
	ann.Get(path).Want(http.StatusOK, "removed Bob Stone as worker")
	// The last worker stays, and the page explains why.
	form = ann.Get(path).Form()
	form.Set("identity", s.ID("dan"))
	ann.Post(path+"/unassign", form).Want(http.StatusUnprocessableEntity, "A work order needs at least one worker.")
	form = ann.Get(path).Form()
	form.Set("identity", s.ID("eve"))
	ann.Post(path+"/unassign", form).Want(http.StatusNotFound)
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM work_order_assignees WHERE work_order_id = $1`, id); n != 3 {
		t.Errorf("%d are assigned", n)
	}
}

func TestCancellingAsksFirst(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	ann := s.SignedIn("ann")
	page := ann.Get(path+"/cancel").Want(http.StatusOK, "Cancel “Replace the belt”?", "It cannot be reopened.", "1 worker and 1 consultant are told", "0 answers stay", "Keep it")
	ann.Post(path+"/cancel", page.Form("reason", strings.Repeat("x", 1001))).Want(http.StatusUnprocessableEntity, "at most 1000 characters")
	if statusOf(s, id) != "open" {
		t.Error("looking cancels")
	}
	ann.Post(path+"/cancel", ann.Get(path+"/cancel").Form("reason", "A duplicate")).Want(http.StatusSeeOther)
	ann.Get(path).Want(http.StatusOK, "Cancelled", "<bdi>A duplicate</bdi>", by(s, "ann")+" cancelled the work order: <q class=\"lines\"><bdi>A duplicate</bdi></q>")
}

// Two people on one work order: the second one sees what the first one did, in words, and
// keeps what was entered.
func TestTwoPeopleOnAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	answer(t, s, id)
	if _, err := s.Records.AnswerWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id, nil, records.CompleteWork); err != nil {
		t.Fatal(err)
	}
	ann, cat := s.SignedIn("ann"), s.SignedIn("cat")
	form := cat.Get(path).Form("decision", "approve", "comment", "Well done.")
	ann.Post(path+"/assign", ann.Get(path+"/assign").Form("identity", s.ID("dan"), "role", "worker")).Want(http.StatusSeeOther)
	title := "Replace the long belt"
	s.Exec(`UPDATE work_orders SET status = 'in_progress', completed_by = NULL WHERE id = $1`, id)
	if _, err := s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{
		Title: records.Sent[string]{Value: title, Set: true}, Priority: records.Sent[models.Priority]{Value: models.PriorityHigh, Set: true},
	}); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE work_orders SET status = 'sent_to_inspection' WHERE id = $1`, id)
	stale := cat.Post(path+"/review", form).Want(http.StatusConflict,
		by(s, "ann")+" changed the title from “Replace the belt” to “Replace the long belt” and the priority from none to high at ",
		", and before that "+by(s, "ann")+" added Dan Woods as worker at", "since you opened this page", ">Well done.</textarea>")
	if statusOf(s, id) != "sent_to_inspection" {
		t.Error("it was approved")
	}
	cat.Post(path+"/review", stale.Form("decision", "approve", "comment", "Well done.")).Want(http.StatusSeeOther)

	// At once, one of them holds it and the other one is told.
	other, path := planned(t, s)
	forms := map[*consoletest.Visitor]url.Values{ann: ann.Get(path).Form(), cat: cat.Get(path).Form()}
	hold := func(v *consoletest.Visitor) func() consoletest.Page {
		return func() consoletest.Page { return v.Post(path+"/hold", forms[v]) }
	}
	pages := atOnce(hold(ann), hold(cat))
	wantStatuses(t, pages, http.StatusSeeOther, http.StatusConflict)
	for _, page := range pages {
		if page.Status == http.StatusConflict {
			page.Want(http.StatusConflict, "put the work order on hold at")
		}
	}
	if statusOf(s, other) != "on_hold" {
		t.Error("it is not on hold")
	}
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
	b.SignIn("ann")
	b.Open(path)
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
	b.SignIn("bob")
	b.Open(path)
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
	answer(t, s, id)
	commentOn(t, s, "ann", id, "Look at the belt.")
	if _, err := s.Records.HoldWorkOrder(t.Context(), s.Viewer("bob"), store.NoKey, id); err != nil {
		t.Fatal(err)
	}
	cat := s.SignedIn("cat")
	lines := []string{"created the work order", "answered “Filter state”", "Look at the belt.", "put the work order on hold"}
	page, last := cat.Get(path).Want(http.StatusOK), 0
	for _, line := range lines {
		at := strings.Index(page.Body, line)
		if at < last {
			t.Errorf("%q is missing or not in order", line)
		}
		last = at
	}
	// A new comment is the last line, where the browser goes.
	if to := cat.Post(path+"/comments", cat.Get(path).Form("text", "It is worn.")).Want(http.StatusSeeOther).Location(); to != path+"#latest" {
		t.Errorf("it redirects to %s", to)
	}
	cat.Get(path).Want(http.StatusOK, `<li class="card" id="latest"><div class="row"><strong>`+by(s, "cat")+`</strong>`)
}

// Each grant on the node taken away in turn: its actions are neither offered nor done.
func TestGrantsOnAWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	ann, cat := s.SignedIn("ann"), s.SignedIn("cat")
	all := []string{"inventory.read", "work_orders.read", "work_orders.create", "work_orders.update", "work_orders.delete", "work_orders.forward"}
	needs := map[string]string{"hold": "work_orders.update", "cancel": "work_orders.delete", "assign": "work_orders.forward", "unassign": "work_orders.forward"}
	// ann created it, and is no worker: she reads it with either of two grants.
	id, path := planned(t, s)
	if _, err := s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.ID("crew")}, nil); err != nil {
		t.Fatal(err)
	}
	for action, needed := range needs {
		var kept []string
		for _, g := range all {
			if g != needed {
				kept = append(kept, g)
			}
		}
		form := ann.Get(path).Form("identity", s.ID("bob"), "role", "worker")
		s.Exec(`UPDATE permission_definitions SET grants = $2 WHERE id = $1`, s.ID("manager"), kept)
		before := logged(s)
		if page := ann.Get(path).Want(http.StatusOK); strings.Contains(page.Body, path+"/"+action) {
			t.Errorf("without %s the page offers to %s", needed, action)
		}
		ann.Post(path+"/"+action, form).Want(http.StatusForbidden)
		if action == "cancel" || action == "assign" {
			ann.Get(path + "/" + action).Want(http.StatusForbidden)
		}
		if logged(s) != before {
			t.Errorf("without %s someone can %s", needed, action)
		}
		s.Exec(`UPDATE permission_definitions SET grants = $2 WHERE id = $1`, s.ID("manager"), all)
		if page := ann.Get(path).Want(http.StatusOK); !strings.Contains(page.Body, path+"/"+action) {
			t.Errorf("with every grant the page does not offer to %s", action)
		}
	}
	for _, action := range []string{"complete", "cancel", "assign", "unassign"} {
		if page := cat.Post(path+"/"+action, cat.Get(path).Form("identity", s.ID("bob"))); page.Status != http.StatusForbidden && page.Status != http.StatusUnprocessableEntity {
			t.Errorf("cat, a consultant, can %s: %d", action, page.Status)
		}
	}
	s.Exec(`UPDATE organizations SET read_only = true WHERE id = $1`, s.Acme.OrganizationID)
	wantNot(t, ann.Get(path).Want(http.StatusOK), path+"/edit")
	ann.Post(path+"/hold", ann.Get(path).Form()).Want(http.StatusForbidden, "read-only")
}

// A customer's work order shows whose it is to people with incoming work orders, who forward
// it to their own people.
func TestACustomersWorkOrder(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	if _, err := s.Records.AssignWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, []string{s.Polar.OrganizationID}, nil); err != nil {
		t.Fatal(err)
	}
	if page := s.SignedIn("ann").Get(path); strings.Contains(page.Body, "<dt>Customer</dt>") {
		t.Error("its own organization is a customer")
	}
	pia := s.SignedIn("pia")
	pia.Get(path).Want(http.StatusOK, "<dt>Customer</dt><dd><bdi>Acme Facilities</bdi></dd>", "A service company may remove only its own people.")
	choices := pia.Get(path+"/assign").Want(http.StatusOK, `Pia Frost <span class="hint">`)
	if strings.Contains(choices.Body, "Dan Woods") {
		t.Error("a service company is offered its customer's people")
	}
	pia.Post(path+"/assign", choices.Form("identity", s.ID("pia"), "role", "worker")).Want(http.StatusSeeOther)
	pia.Get(path).Want(http.StatusOK, by(s, "pia")+" added Pia Frost as worker.")
}

// A page shows the latest thirty changes and links to earlier ones.
func TestTheHistoryHasPages(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	id, path := planned(t, s)
	for i := range 31 {
		if _, err := s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{
			Priority: records.Sent[models.Priority]{Value: models.Priorities[i%2], Set: true}, Title: records.Sent[string]{Value: strings.Repeat("x", i+1), Set: true},
		}); err != nil {
			t.Fatal(err)
		}
	}
	v := s.SignedIn("ann")
	first := v.Get(path).Want(http.StatusOK, "Earlier")
	next := unescaped(earlierLines.FindAllStringSubmatch(first.Body, -1))[0]
	second := v.Get(next).Want(http.StatusOK, "created the work order", "Newest")
	if n := strings.Count(first.Body, "changed the title"); n != 30 {
		t.Errorf("the first page has %d changes", n)
	}
	if n := strings.Count(second.Body, "changed the title"); n != 1 {
		t.Errorf("the second page has %d changes", n)
	}
}

// Hold, resume, review, send back, approve and cancel in a browser, with scripts and without; a
// double click holds once.
func TestStepsOfAWorkOrderInABrowser(t *testing.T) {
	t.Parallel()
	onBrowsers(t, func(t *testing.T, s *consoletest.Site, b *consoletest.Browser) {
		path := "/console/work-orders/" + inReview(t, s, "ann")
		b.SignIn("ann")
		b.Open(path)
		b.Fill("comment", "The belt is loose.")
		b.Press("Send back")
		b.WantText("Sent back. Its workers are told")
		b.Open(path)
		b.WantText("Back from review", "The belt is loose.", "Ann Field sent the work order back")
		b.Click("main .drop > summary")
		b.Do(chromedp.DoubleClick(chromedp.CSS(`main form[action$="/hold"] button`)))
		b.WantText("On hold")
		b.WantNoText("Put on hold")
		if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM log WHERE action = 'work_order.held'`); n != 1 {
			t.Errorf("it was held %d times", n)
		}
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

var earlierLines = regexp.MustCompile(`<a class="button" href="([^"]+)" rel="prev">Earlier`)
