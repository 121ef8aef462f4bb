package consoletest

import (
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is the element that has the keyboard's focus.
type focused struct {
	// Name is what it is called: its text, or that of its label.
	Name string `json:"name"`
	// HTML is the beginning of it.
	HTML string `json:"html"`
	// Place is where it is: left, top, right and bottom.
	Place string `json:"place"`
	// Visible is whether a part of it is in the window, covered by nothing, and it is marked as
	// the one with the focus (WCAG 2.4.7 and 2.4.11).
	Visible bool `json:"visible"`
}

const readFocus = `(() => {
	const e = document.activeElement
	if (!e || e === document.body) return {name: "", html: "", visible: true}
	const label = e.labels && e.labels[0], place = e.getBoundingClientRect(), style = getComputedStyle(e)
	const shows = (x, y) => e.contains(document.elementFromPoint(x, y))
	const uncovered = [...e.getClientRects()].some(r => shows((r.left + r.right) / 2, (r.top + r.bottom) / 2))
	return {
		name: (label || e).innerText.trim(), html: e.outerHTML.slice(0, 160),
		place: [place.left, place.top, place.right, place.bottom].map(Math.round).join(" "),
		visible: place.width > 1 && place.height > 1 && uncovered &&
			style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
	}
})()`

// TabTo presses Tab until the element with the text, or with a label that begins with it,
// has the focus. Every element on the way must show that it has the focus.
func (b *Browser) TabTo(text string) {
	b.t.Helper()
	const most = 200
	for range most {
		b.Do(chromedp.KeyEvent(kb.Tab))
		var at focused
		b.await(func(ctx context.Context) (missing string) { // until it has scrolled into view
			var err error
			if at, err = chromedp.Run(ctx, chromedp.Evaluate[focused](readFocus)); err != nil || !at.Visible {
				return fmt.Sprintf("the focus is not visible on %s at %s (%v)", at.HTML, at.Place, err)
			}
			return ""
		})
		if at.Name == text || strings.HasPrefix(at.Name, text+"\n") || strings.HasPrefix(at.Name, text+" ") {
			return
		}
	}
	b.t.Fatalf("Tab does not reach %q\n%s", text, b.describe())
}

// Type presses the keys of the text.
func (b *Browser) Type(text string) { b.t.Helper(); b.Do(chromedp.KeyEvent(text)) }

// Enter presses Enter and waits for the next page.
func (b *Browser) Enter() { b.t.Helper(); b.pressKey("Enter", kb.Enter) }

// Space presses the space bar and waits for the next page.
func (b *Browser) Space() { b.t.Helper(); b.pressKey("Space", " ") }

func (b *Browser) pressKey(name, key string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(key)); err != nil {
		b.t.Fatalf("no page follows %s: %v\n%s", name, err, b.describe())
	}
}

// StopsToRow follows the skip link and returns how often Tab is pressed from the beginning of the page until a row of a
// table has the focus. It takes a skip link to the list where there is one.
func (b *Browser) StopsToRow() (stops int) {
	b.t.Helper()
	b.SkipToContent()
	const most = 100
	for stops = 1; stops < most; stops++ {
		switch evaluate[string](b, `(e => e.closest("tbody tr") ? "row" : e.matches(".skip") ? "skip" : "")(document.activeElement)`) {
		case "row":
			return stops
		case "skip":
			b.Do(chromedp.KeyEvent(kb.Enter))
		}
		b.Do(chromedp.KeyEvent(kb.Tab))
	}
	b.t.Fatalf("Tab does not reach a row\n%s", b.describe())
	return most
}

// SkipToContent follows the skip link, which must be the first stop of Tab on a page that was
// just opened. The next Tab goes to the main part.
func (b *Browser) SkipToContent() {
	b.t.Helper()
	b.Do(chromedp.KeyEvent(kb.Tab))
	b.await(func(ctx context.Context) (missing string) {
		at, err := chromedp.Run(ctx, chromedp.Evaluate[focused](readFocus))
		if err != nil || !at.Visible || at.Name != "Skip to the content" {
			return fmt.Sprintf("the first Tab focuses %s at %s, visible: %t (%v)", at.HTML, at.Place, at.Visible, err)
		}
		return ""
	})
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.await(func(ctx context.Context) (missing string) {
		in, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.activeElement === document.querySelector("main")`))
		if err != nil || !in {
			return fmt.Sprintf("the skip link does not focus the main part (%v)", err)
		}
		return ""
	})
}
