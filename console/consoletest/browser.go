package consoletest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a tab of headless Chromium, with its own cookies.
type Browser struct {
	// Context is for actions of chromedp that Browser has no method for.
	Context context.Context
	// URL is the console's.
	URL     string
	site    *Site
	scripts bool
	t       testing.TB

	mu       sync.Mutex
	problems []string
}

// patience bounds how long a browser may take for one step.
const patience = 30 * time.Second

// findChromium returns the program.
func findChromium(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("These tests need Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM to the path of its program.")
	return ""
}

// Browser opens a tab.
func (s *Site) Browser(t testing.TB) *Browser { return s.open(t, true) }

// BrowserWithoutScripts opens a tab in which pages run no scripts.
func (s *Site) BrowserWithoutScripts(t testing.TB) *Browser { return s.open(t, false) }

func (s *Site) open(t testing.TB, scripts bool) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(findChromium(t)), chromedp.UserDataDir(t.TempDir()),
		// Containers have no user namespaces and a small /dev/shm.
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience),
	)
	allocator, endAllocator := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, end := chromedp.NewContext(allocator)
	b := &Browser{Context: ctx, URL: s.URL, site: s, scripts: scripts, t: t}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // ends the process, so that its folder can be removed
		end()
		endAllocator()
	})
	// The first step starts the browser, which lives as long as its context.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("Chromium does not start: %v", err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, log.Enable, cdp.Empty{})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !scripts})
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
func (b *Browser) resize(width int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 640,
	})
}

// Open opens a page of the site.
func (b *Browser) Open(path string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(b.URL + path))
}

// SignIn signs in as a person of the fixture.
func (b *Browser) SignIn(key string) {
	b.t.Helper()
	b.Open("/console/sign-in")
	b.Fill("email", b.site.Email(key))
	b.Fill("password", Password)
	b.Press("Sign in")
}

// Fill enters text in the field with the name, in the page's main part.
func (b *Browser) Fill(name, text string) {
	b.t.Helper()
	b.Do(chromedp.SetValue(chromedp.CSS(`main [name="`+name+`"]`), text))
}

// Press presses the main part's button, or follows its link, with the text, and waits for
// the next page.
func (b *Browser) Press(text string) { b.t.Helper(); b.press("main", text) }

// PressInSidebar is Press for the sidebar.
func (b *Browser) PressInSidebar(text string) { b.t.Helper(); b.press(`*[@class="sidebar"]`, text) }

func (b *Browser) press(within, text string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	xpath := fmt.Sprintf(`//%s//*[self::button or self::a][normalize-space(.)=%q]`, within, text)
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.Search(xpath), chromedp.NodeVisible)); err != nil {
		b.t.Fatalf("no page follows %q: %v\n%s", text, err, b.describe())
	}
}

// Text returns the text of the element that the CSS selector names.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Text(chromedp.CSS(selector)))
}

// WantText fails the test unless the main part contains the texts.
func (b *Browser) WantText(texts ...string) {
	b.t.Helper()
	got := b.Text("main")
	for _, text := range texts {
		if !strings.Contains(got, text) {
			b.t.Fatalf("the page lacks %q:\n%s", text, b.describe())
		}
	}
}

// WantPath fails the test unless the browser shows the page with this path.
func (b *Browser) WantPath(path string) {
	b.t.Helper()
	at := run(b, chromedp.Location())
	if u, err := url.Parse(at); err != nil || u.Path != path {
		b.t.Fatalf("the browser shows %s, want %s\n%s", at, path, b.describe())
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
