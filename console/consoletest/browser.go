package consoletest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"millwright/service/servicetest"
)

// Browser is a tab of headless Chromium, with its own cookies.
type Browser struct {
	// Context is for actions of chromedp that Browser has no method for.
	Context context.Context
	// Effort is what was done since it was last set to nothing.
	Effort
	// URL is the console's.
	URL     string
	site    *Site
	scripts bool
	t       testing.TB

	mu       sync.Mutex
	problems []string
	// opened counts the pages that were opened.
	opened int
}

// Effort is what a person does for something: clicks, characters that are entered, and pages that are opened.
type Effort struct{ Clicks, Keys, Loads int }

// BeginEffort counts from nothing again.
func (b *Browser) BeginEffort() { b.Effort = Effort{Loads: -b.pagesOpened()} }

// Spent returns the effort since BeginEffort.
func (b *Browser) Spent() Effort {
	spent := b.Effort
	spent.Loads += b.pagesOpened()
	return spent
}

func (b *Browser) pagesOpened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// patience bounds how long a browser may take for one step, also next to all other tests on two cores.
const patience = 3 * time.Minute

// Browser opens a tab.
func (s *Site) Browser(t testing.TB) *Browser { t.Helper(); return s.open(t, true) }

// BrowserWithoutScripts opens a tab in which pages run no scripts.
func (s *Site) BrowserWithoutScripts(t testing.TB) *Browser { t.Helper(); return s.open(t, false) }

func (s *Site) open(t testing.TB, scripts bool) *Browser {
	t.Helper()
	b := Open(t, s.URL, scripts)
	b.site = s
	return b
}

// Open opens a tab for the console at the URL, in which pages run scripts or none.
func Open(t testing.TB, at string, scripts bool) *Browser {
	t.Helper()
	ctx, end := chromedp.NewContext(theChromium.use(t), chromedp.WithNewBrowserContext())
	b := &Browser{Context: ctx, URL: at, scripts: scripts, t: t}
	t.Cleanup(end)
	// The first step opens the tab, which lives as long as its context.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium opens no tab: %v", err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	b.setScripts(scripts)
	b.resize(widths[0])
	return b
}

// listen keeps what the browser reports: errors of scripts, of the console, and of the policy.
func (b *Browser) listen(event any) {
	var problem string
	switch event := event.(type) {
	case *log.EventEntryAdded:
		// A page with an error status is reported as a failed load of it; tests check statuses.
		expected := event.Entry.Source == log.EntrySourceNetwork && strings.Contains(event.Entry.Text, "the server responded with a status of")
		if event.Entry.Level == log.EntryLevelError && !expected {
			problem = event.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprintf("%s %+v", event.ExceptionDetails.Text, event.ExceptionDetails.Exception)
	case *page.EventFrameNavigated:
		if event.Frame.ParentID == "" {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.opened++
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == "error" {
			problem = fmt.Sprint("console.error ", event.Args)
		}
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// Do runs actions of chromedp.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.describe())
	}
}

// run runs an action of chromedp and returns its value.
func run[T any](b *Browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%v\n%s", err, b.describe())
	}
	return value
}

// call runs a command of the browser's protocol.
func call[P, R any](b *Browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.Context, command, params); err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
}

func (b *Browser) describe() string {
	ctx, cancel := context.WithTimeout(b.Context, 2*time.Second)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return at + "\n" + text
}

// resize makes the window as wide as this many CSS pixels.
func (b *Browser) resize(width int64) { b.t.Helper(); b.resizeTo(width, 900) }

func (b *Browser) resizeTo(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 640,
	})
}

// Open opens a page of the site.
func (b *Browser) Open(path string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(b.URL + path))
}

// SignIn opens a page of the site with a session of a person of the fixture.
func (b *Browser) SignIn(key, path string) {
	b.t.Helper()
	call(b, network.SetCookie, network.SetCookieParams{Name: sessionCookie, Value: servicetest.Session(b.site.Fixture, key), URL: b.URL, HTTPOnly: new(true)})
	b.Open(path)
}

// SignInAs signs in with the e-mail address and Password, as people do.
func (b *Browser) SignInAs(email string) {
	b.t.Helper()
	b.Open("/console/sign-in")
	b.Fill("email", email)
	b.Fill("password", Password)
	b.Press("Sign in")
}

// LayoutShift loads the page at a width again and returns by how much it moves while its parts
// are loaded, as browsers count it: below 0.1 is good.
func (b *Browser) LayoutShift(path string, width int64) float64 {
	b.t.Helper()
	b.resizeTo(width, 800)
	b.Open(path)
	b.settle()
	return evaluate[float64](b, `new Promise(done => {
		let moved = 0;
		new PerformanceObserver(shifts => shifts.getEntries().forEach(shift => moved += shift.value)).observe({type: "layout-shift", buffered: true});
		setTimeout(() => done(moved), 200);
	})`)
}

// Choose checks the box with the name and value, in the page's main part.
func (b *Browser) Choose(name, value string) {
	b.t.Helper()
	b.Click(`main [name="` + name + `"][value="` + value + `"]`)
}

// Select chooses the option with the value in the list with the name, in the page's main part.
func (b *Browser) Select(name, value string) {
	b.t.Helper()
	b.Clicks++
	b.Do(chromedp.SetValue(chromedp.CSS(`main select[name="`+name+`"]`), value))
}

// Click clicks the first element that the CSS selector names.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.settle()
	b.Clicks++
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// settle waits until the parts that are loaded after the page are in it: they move what
// follows, and a click would miss.
func (b *Browser) settle() {
	b.t.Helper()
	if !b.scripts {
		return
	}
	b.await(func(ctx context.Context) (missing string) {
		settled, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.querySelector('[hx-trigger="load"]') === null`))
		if err != nil || !settled {
			return fmt.Sprintf("parts of the page are not loaded (%v)", err)
		}
		return ""
	})
}

// Fill enters text in the field with the name, in the page's main part.
func (b *Browser) Fill(name, text string) {
	b.t.Helper()
	b.Keys += utf8.RuneCountInString(text)
	b.Do(chromedp.SetValue(chromedp.CSS(`main [name="`+name+`"]`), text))
}

// Entered returns what the field with the name shows, in the page's main part.
func (b *Browser) Entered(name string) string {
	b.t.Helper()
	return run(b, chromedp.Value(chromedp.CSS(`main [name="`+name+`"]`)))
}

// Unfold opens the main part's details whose summary is the text.
func (b *Browser) Unfold(text string) {
	b.t.Helper()
	b.settle()
	b.Do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//summary[normalize-space(.)=%q]`, text)), chromedp.NodeVisible))
}

// Press presses the main part's button, or follows its link, with the text, and waits for
// the next page.
func (b *Browser) Press(text string) { b.t.Helper(); b.press("main", text) }

// PressInSidebar is Press for the sidebar.
func (b *Browser) PressInSidebar(text string) { b.t.Helper(); b.press(`*[@class="sidebar"]`, text) }

// PressInMenu is Press for the menu below the person's name.
func (b *Browser) PressInMenu(text string) {
	b.t.Helper()
	b.Click("header .drop > summary")
	b.press("header", text)
}

// PressAction is Press for the menu of the main part's actions.
func (b *Browser) PressAction(text string) {
	b.t.Helper()
	b.Click("main .drop > summary")
	b.Press(text)
}

func (b *Browser) press(within, text string) {
	b.t.Helper()
	b.settle()
	b.Clicks++
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	xpath := fmt.Sprintf(`//%s//*[self::button or self::a][normalize-space(.)=%q][not(ancestor::details[not(@open)]) or ancestor::summary]`, within, text)
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.Search(xpath), chromedp.NodeVisible)); err != nil {
		b.t.Fatalf("no page follows %q: %v\n%s", text, err, b.describe())
	}
}

// Text waits until the first element that the CSS selector names has text, and returns it.
func (b *Browser) Text(selector string) (text string) {
	b.t.Helper()
	b.await(func(ctx context.Context) (missing string) {
		var err error
		if text, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector))); err != nil || text == "" {
			return fmt.Sprintf("%s has no text (%v)", selector, err)
		}
		return ""
	})
	return text
}

// WantText waits until the main part contains all of the strings.
func (b *Browser) WantText(want ...string) { b.t.Helper(); b.wantText(true, want) }

// WantNoText waits until the main part contains none of the strings.
func (b *Browser) WantNoText(unwanted ...string) { b.t.Helper(); b.wantText(false, unwanted) }

func (b *Browser) wantText(contained bool, parts []string) {
	b.t.Helper()
	b.await(func(ctx context.Context) (missing string) {
		got, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("main")))
		if err != nil || got == "" {
			return fmt.Sprintf("the page has no text (%v)", err)
		}
		for _, text := range parts {
			if strings.Contains(got, text) != contained {
				return fmt.Sprintf("that the page contains %q is %t", text, !contained)
			}
		}
		return ""
	})
}

// WantPath waits until the browser shows the page with this path.
func (b *Browser) WantPath(path string) {
	b.t.Helper()
	b.await(func(ctx context.Context) (missing string) {
		at, err := chromedp.Run(ctx, chromedp.Location())
		if u, malformed := url.Parse(at); err != nil || malformed != nil || u.Path != path {
			return fmt.Sprintf("the browser shows %s, not %s (%v)", at, path, err)
		}
		return ""
	})
}

// await waits until check finds nothing missing, and fails the test with what is after
// patience. While a page loads, check may get errors, which count as missing.
func (b *Browser) await(check func(context.Context) (missing string)) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for missing := check(ctx); missing != ""; {
		select {
		case <-tick.C:
			if again := check(ctx); ctx.Err() == nil {
				missing = again // else the end of the time is the error
			}
		case <-ctx.Done():
			b.t.Fatalf("%s\n%s", missing, b.describe())
		}
	}
}

// evaluate runs an expression, a promise too, and returns its value.
func evaluate[T any](b *Browser, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// wantNoProblems fails the test if the browser has reported any.
func (b *Browser) wantNoProblems(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		b.t.Errorf("%s: the browser reports: %s", where, problem)
	}
	b.problems = nil
}
