package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Opening a work order marks the notices about it read, and no others, after the page has loaded. Without scripts,
// opening a notice does (TestFeedbackIsGivenAndResolved).
func TestOpeningARecordReadsItsNotices(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	planned(t, s)
	unread := func() int {
		return servicetest.Value[int](s.Fixture, `SELECT count(*) FROM notices WHERE person_id = $1 AND read_at IS NULL`, s.ID("bob"))
	}
	s.SignedIn("bob").Get(path).Want(http.StatusOK, path+"/seen")
	servicetest.Expect(t, "unread after a GET", unread(), 2)
	b := s.Browser(t)
	b.SignIn("bob", path)
	servicetest.Await(t, "one of two notices is read after its record was opened", func() bool { return unread() == 1 })
	b.Fill("text", "The belt is loose.")
	b.Press("Comment") // with scripts, too
	b.WantText("Your comment is saved")
}

// quickTimers makes a page's timers a hundred times as fast, and the page hidden if hides is true.
const quickTimers = `const slow = setInterval; window.setInterval = (act, ms) => slow(act, ms / 100);
	Object.defineProperty(document, "hidden", {get: () => window.hides === true})`

// The count of notices follows while the page is visible, and a form keeps what was entered. It
// does not extend the session, at whose end it stops.
func TestTheNoticeCountFollows(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	_, path := planned(t, s)
	s.Exec(`DELETE FROM notices`)
	b := s.Browser(t)
	if _, err := chromedp.Call(b.Context, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: quickTimers}); err != nil {
		t.Fatal(err)
	}
	b.SignIn("bob", path)
	b.Fill("text", "Look at")
	seen := func() string { return servicetest.Value[string](s.Fixture, `SELECT seen_at::text FROM sessions`) }
	before := seen()
	s.Clock.Advance(time.Hour)
	notify(s, "bob", "webhook.failing", "webhook.turned_off")
	if count := b.Text(`.sidebar [data-load] .count`); !strings.HasPrefix(count, "2") {
		t.Errorf("the count is %q", count)
	}
	servicetest.Expect(t, "the form", b.Entered("text"), "Look at")
	if seen() != before {
		t.Error("the count extends the session")
	}
	const counted = `performance.getEntriesByType("resource").filter(e => e.name.endsWith("/notices/count")).length`
	loads := func(after string) float64 {
		b.Do(chromedp.Evaluate[chromedp.Void](after+`, new Promise(done => setTimeout(done, 400))`, chromedp.EvalAwaitPromise))
		return b.Measure(1280, 900, counted)
	}
	if hidden := loads(`window.hides = true`); loads(`0`) != hidden {
		t.Error("a hidden page loads the count")
	}
	if shown := loads(`window.hides = false`); loads(`0`) == shown {
		t.Error("a visible page does not load the count")
	}
	s.Exec(`DELETE FROM sessions`)
	for last, tries := loads(`0`), 0; ; tries++ { // requests sent before the session ended are counted later
		now := loads(`0`)
		if now == last {
			break
		}
		if last = now; tries == 20 {
			t.Fatal("the count is loaded after the session has ended")
		}
	}
	if n := servicetest.Value[int](s.Fixture, `SELECT coalesce(sum(calls), 0) FROM rate_counters WHERE subject LIKE 'page %'`); n > 2 {
		t.Errorf("%d requests of a visitor are counted", n)
	}
}

// A rejected form opens at its first mistake.
func TestFocusGoesToTheFirstMistake(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	creating(s)
	id := plannedWorkOrder(t, s)
	path := "/console/work-orders/" + id
	bob := s.SignedIn("bob")
	for _, test := range []struct {
		from, to string
		fields   []string
		focused  string
	}{
		{path + "/answers", path + "/answers", []string{s.ID("q_hours"), "many", s.ID("q_pressure"), "much"}, s.ID("q_hours")},
		{path + "/answers", path + "/answers", []string{"complete", "yes"}, s.ID("q_state") + "-0"},
		{path + "/edit", path + "/edit", []string{"title", " ", "external_id", strings.Repeat("x", 201)}, "title"},
		{path, path + "/comments", []string{"text", " "}, "text"},
		{"/console/work-orders/new?node=" + s.ID("ahu1"), "/console/work-orders", []string{"title", " "}, "title"},
	} {
		page := bob.Post(test.to, bob.Get(test.from).Want(http.StatusOK).Form(test.fields...)).Want(http.StatusUnprocessableEntity)
		if n := strings.Count(page.Body, " autofocus"); n != 1 {
			t.Errorf("%s: %d fields have the focus", test.to, n)
		}
		before, _, _ := strings.Cut(page.Body, " autofocus")
		if input := before[strings.LastIndex(before, "<"):]; !strings.Contains(input, `id="`+test.focused+`"`) {
			t.Errorf("%s: the focus is at %s", test.to, input)
		}
	}
	// If no field is wrong, the message about the whole form has the focus.
	form := bob.Get(path+"/edit").Form("title", "Mine")
	s.Must(s.Records.UpdateWorkOrder(t.Context(), s.Viewer("ann"), store.NoKey, id, records.WorkOrderPatch{Title: records.Sent[string]{Value: "Theirs", Set: true}}))
	bob.Post(path+"/edit", form).Want(http.StatusConflict, `role="alert" tabindex="-1" autofocus`)
}
