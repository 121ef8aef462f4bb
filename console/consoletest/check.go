package consoletest

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe.min.js
var axe string

// widths are the widths in CSS pixels at which pages are checked.
var widths = []int64{1280, 390, 320}

// violation is what axe-core finds.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Check checks the page that the browser shows, in light and dark and at every width. name
// names its pictures, "" takes none. It loads the page again, so the page must be one that
// a GET shows; CheckShown checks the response to a form.
func (b *Browser) Check(name string) {
	b.t.Helper()
	b.check(name, true)
}

// CheckShown is Check without loading the page again.
func (b *Browser) CheckShown(name string) {
	b.t.Helper()
	b.check(name, false)
}

func (b *Browser) check(name string, reload bool) {
	b.t.Helper()
	setScripts := func(on bool) {
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
	}
	setScripts(true) // for axe
	for _, theme := range []string{"light", "dark"} {
		for _, width := range widths {
			where := fmt.Sprintf("%s, %s, %d px", name, theme, width)
			b.resize(width)
			call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
			})
			if reload {
				b.Do(chromedp.Reload())
			}
			b.fits(where, width)
			b.wantNoProblems(where) // before axe, whose own work may break the policy
			b.checkAccess(where)
			if folder := os.Getenv("CONSOLE_SCREENSHOTS"); folder != "" && name != "" {
				b.picture(filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", name, theme, width)))
			}
		}
	}
	b.resize(widths[0])
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	setScripts(b.scripts)
}

// CheckWidth checks, at every width, that the page fits and that no cell of a table is too
// narrow to read.
func (b *Browser) CheckWidth(name string) {
	b.t.Helper()
	for _, width := range append([]int64{900, 640}, widths...) {
		b.resize(width)
		b.Do(chromedp.Reload())
		where := fmt.Sprintf("%s, %d px", name, width)
		b.fits(where, width)
		// Below some width a table is cards, whose heading is hidden.
		if narrow := evaluate[[]string](b, `[...document.querySelectorAll("td, th")].filter(e => e.innerText.trim().length > 3 && e.clientWidth < 48)
			.filter(e => !e.querySelector(".visually-hidden") && getComputedStyle(e.parentElement.parentElement).position !== "absolute").slice(0, 5).map(e => e.clientWidth + " px: " + e.outerHTML.slice(0, 120))`); len(narrow) > 0 && width >= 640 {
			b.t.Errorf("%s: cells are too narrow:\n%s", where, strings.Join(narrow, "\n"))
		}
	}
	b.resize(widths[0])
}

// fits checks that the page does not scroll sideways.
func (b *Browser) fits(where string, width int64) {
	b.t.Helper()
	if wide := evaluate[float64](b, `document.documentElement.scrollWidth`); wide > float64(width) {
		b.t.Errorf("%s: the page is %v px wide and scrolls sideways: %s", where, wide, b.widest())
	}
}

// widest names the elements that make the page too wide.
func (b *Browser) widest() string {
	b.t.Helper()
	return strings.Join(evaluate[[]string](b, `[...document.querySelectorAll("body *")]
		.filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 120))`), "\n")
}

// checkAccess runs axe-core with the rules of WCAG 2.2 AA.
func (b *Browser) checkAccess(where string) {
	b.t.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](axe))
	found := evaluate[[]violation](b, `axe.run(document, {resultTypes: ["violations"], runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}).then(r => r.violations)`)
	for _, v := range found {
		for _, node := range v.Nodes {
			b.t.Errorf("%s: axe: %s (%s)\n%s\n%s", where, v.Help, v.ID, node.HTML, node.Summary)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
}

func (b *Browser) picture(path string) {
	b.t.Helper()
	png := run(b, chromedp.FullScreenshot(100))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
