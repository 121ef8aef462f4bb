package consoletest

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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

// Check checks the page that the browser shows, in light and dark and at every width, and that
// the browser has reported no problem since the last check. The page is not loaded again for each
// of them: what a style sheet says of a width or a theme does not depend on how it came about.
func (b *Browser) Check(name string) {
	b.t.Helper()
	b.settle()
	b.setScripts(true) // for axe
	b.wantNoProblems(name)
	rules := map[string]string{"light": allRules, "dark": colorRules}
	for _, width := range widths {
		b.resize(width)
		layouts := map[string]string{}
		for _, theme := range []string{"light", "dark"} {
			where := fmt.Sprintf("%s, %s, %d px", name, theme, width)
			b.setTheme(theme)
			b.fits(where, width)
			b.wantNoProblems(where) // before axe, whose own work may break the policy
			// The style of no other width differs from both in what axe looks for.
			if width == 1280 || width == 320 {
				layouts[theme] = evaluate[string](b, layout)
				b.checkAccess(where, rules[theme])
			}
		}
		if layouts["light"] != layouts["dark"] {
			b.t.Errorf("%s, %d px: the themes differ in more than colors", name, width)
		}
	}
	b.resize(widths[0])
	b.setTheme("")
	b.setScripts(b.scripts)
}

// layout evaluates to the place of each element, and whether it is visible. If both themes have
// the same layout, only the rules about colors can find something in just one of them. Places
// depend on how far the page is scrolled: to a field with the focus, or by axe-core.
const layout = `scrollTo(0, 0), [...document.querySelectorAll("body *")].map(e => {
	const r = e.getBoundingClientRect()
	return [r.x, r.y, r.width, r.height, e.checkVisibility({visibilityProperty: true, opacityProperty: true})].join()
}).join(";")`

// What axe-core checks: the rules of WCAG 2.2 AA, and the color rules among them.
const (
	allRules   = `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}`
	colorRules = `{type: "rule", values: ["color-contrast", "link-in-text-block"]}`
)

// setTheme makes pages light or dark, "" as the browser usually shows them.
func (b *Browser) setTheme(theme string) {
	b.t.Helper()
	var media emulation.SetEmulatedMediaParams
	if theme != "" {
		media.Features = []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
	}
	call(b, emulation.SetEmulatedMedia, media)
}

// OnTelephone makes the window as large as a telephone's.
func (b *Browser) OnTelephone() { b.t.Helper(); b.resizeTo(phoneWidth, 844) }

// Measure returns what the expression is in a window of the size in CSS pixels.
func (b *Browser) Measure(width, height int64, expression string) float64 {
	b.t.Helper()
	b.settle()
	b.resizeTo(width, height)
	defer b.resize(widths[0])
	return evaluate[float64](b, expression)
}

func (b *Browser) setScripts(on bool) {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// CheckWidth is for a page that Check has seen with other content, which changes what fits and what a policy blocks, and
// not what axe-core looks for: the page fits these and more widths, no cell of a table is too narrow to read, and the browser has
// reported no problem.
func (b *Browser) CheckWidth(name string, more ...int64) {
	b.t.Helper()
	b.settle()
	for _, width := range slices.Concat(widths, []int64{900, 768, 640}, more) {
		b.resize(width)
		where := fmt.Sprintf("%s, %d px", name, width)
		b.fits(where, width)
		if width < 640 { // there every table is cards
			continue
		}
		// Elsewhere some are, whose heading is hidden.
		if narrow := evaluate[[]string](b, `[...document.querySelectorAll("td, th")].filter(e => e.checkVisibility() && e.innerText.trim().length > 3 && e.clientWidth < 48)
			.filter(e => !e.querySelector(".visually-hidden") && getComputedStyle(e.parentElement.parentElement).position !== "absolute").slice(0, 5).map(e => e.clientWidth + " px: " + e.outerHTML.slice(0, 120))`); len(narrow) > 0 {
			b.t.Errorf("%s: cells are too narrow:\n%s", where, strings.Join(narrow, "\n"))
		}
	}
	b.wantNoProblems(name)
	b.resize(widths[0])
}

// fits checks that the page does not scroll sideways.
func (b *Browser) fits(where string, width int64) {
	b.t.Helper()
	if !evaluate[bool](b, fmt.Sprintf(`matchMedia("(width: %dpx)").matches`, width)) {
		b.t.Fatalf("%s: the window has another width", where)
	}
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

// checkAccess runs axe-core with the rules.
func (b *Browser) checkAccess(where, rules string) {
	b.t.Helper()
	if !evaluate[bool](b, `"axe" in window`) {
		b.Do(chromedp.Evaluate[chromedp.Void](axe))
	}
	found := evaluate[[]violation](b, `axe.run(document, {preload: false, resultTypes: ["violations"], runOnly: `+rules+`}).then(r => r.violations)`)
	for _, v := range found {
		for _, node := range v.Nodes {
			b.t.Errorf("%s: axe: %s (%s)\n%s\n%s", where, v.Help, v.ID, node.HTML, node.Summary)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
}

// Pictures for the documentation are this high: at least the sidebar, and not all of a long list.
const minPictureHeight, pictureHeight = 540, 1600

// brokenWords evaluates to the words of headings, and of the last cells of rows, which have actions,
// that take two lines, except for long ones.
const brokenWords = `[...document.querySelectorAll("main h1, main td:not([data-label])")].flatMap(place => {
	const broken = [], walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), range = document.createRange()
	for (let text; text = walker.nextNode();) for (const word of text.data.matchAll(/(?<!\S)\S{1,16}(?!\S)/g)) {
		range.setStart(text, word.index)
		range.setEnd(text, word.index + word[0].length)
		if (new Set([...range.getClientRects()].map(r => r.top)).size > 1) broken.push(word[0])
	}
	return broken
})`

// phoneWidth is the width of a telephone.
const phoneWidth = 390

// Look is how a page is shown: its theme, light or dark, and its width in CSS pixels.
type Look struct {
	Theme string
	Width int64
}

// Picture checks that the page that the browser shows was loaded with status 200, that it fits
// a desk and a telephone, that no heading or action breaks within a word there, and that the browser
// has reported no problem. With CONSOLE_DOCS=DIRECTORY it keeps the upper part as
// NAME-THEME-WIDTH.png for each look there. It returns these names.
func (b *Browser) Picture(name string, looks ...Look) (names []string) {
	b.t.Helper()
	b.settle()
	if status := evaluate[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusOK {
		b.t.Errorf("%s: the status is %d", name, status)
	}
	for _, width := range []int64{widths[0], phoneWidth} {
		b.resize(width)
		b.fits(fmt.Sprintf("%s, %d px", name, width), width)
		if broken := evaluate[[]string](b, brokenWords); len(broken) > 0 {
			b.t.Errorf("%s, %d px: lines break within %q", name, width, broken)
		}
	}
	b.wantNoProblems(name)
	directory := os.Getenv("CONSOLE_DOCS")
	if directory != "" {
		b.WantNoText("not available just now") // charts have little time
	}
	for _, look := range looks {
		names = append(names, fmt.Sprintf("%s-%s-%d.png", name, look.Theme, look.Width))
		if directory != "" {
			b.keep(filepath.Join(directory, names[len(names)-1]), look)
		}
	}
	b.setTheme("")
	b.resize(widths[0])
	return names
}

// keep saves the upper part of the page.
func (b *Browser) keep(path string, look Look) {
	b.t.Helper()
	b.resizeTo(look.Width, minPictureHeight)
	b.setTheme(look.Theme)
	evaluate[bool](b, `document.activeElement.blur() || true`) // its caret blinks
	shown, err := png.Decode(bytes.NewReader(run(b, chromedp.FullScreenshot(100))))
	if err != nil {
		b.t.Fatal(err)
	}
	var content bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&content, paletted(shown, pictureHeight)); err != nil {
		b.t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content.Bytes(), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

// pictureColors is the number of colors in a picture: with more, files are larger and look the same.
const pictureColors = 96

// paletted returns the picture down to a height with few colors, which makes its file a third
// as large. The most frequent one is first; then comes the one whose pixels are worst off, by
// their number and distance, so that a rare color is not lost among the grays of letters' edges.
func paletted(shown image.Image, height int) *image.Paletted {
	size := shown.Bounds()
	size.Max.Y = min(size.Max.Y, size.Min.Y+height)
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(shown.At(x, y)).(color.RGBA) }
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	// Colours with the same count always come in the same order.
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	palette, index, distances := color.Palette{}, make(map[color.RGBA]uint8, len(colors)), make([]int, len(colors))
	for next := 0; len(palette) < min(len(colors), pictureColors); {
		chosen := colors[next]
		palette = append(palette, chosen)
		worst := -1
		for i, c := range colors {
			if d := distance(c, chosen); len(palette) == 1 || d < distances[i] {
				distances[i], index[c] = d, uint8(len(palette)-1)
			}
			if cost := distances[i] * counts[c]; cost > worst {
				next, worst = i, cost
			}
		}
	}
	drawn := image.NewPaletted(image.Rect(0, 0, size.Dx(), size.Dy()), palette)
	for y := range size.Dy() {
		for x := range size.Dx() {
			drawn.SetColorIndex(x, y, index[at(size.Min.X+x, size.Min.Y+y)])
		}
	}
	return drawn
}

// distance is the square of the distance of two colors.
func distance(a, b color.RGBA) int {
	square := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
	return square(a.R, b.R) + square(a.G, b.G) + square(a.B, b.B)
}
