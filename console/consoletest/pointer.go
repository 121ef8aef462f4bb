package consoletest

import (
	"fmt"

	"github.com/chromedp/chromedp"
)

// Unfold opens the main part's details whose summary is the text.
func (b *Browser) Unfold(text string) {
	b.t.Helper()
	b.settle()
	b.Do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//summary[normalize-space(.)=%q]`, text)), chromedp.NodeVisible))
}

// middleOf scrolls to the element that the expression is, and returns the place of its middle.
func (b *Browser) middleOf(element string) (at [2]float64) {
	b.t.Helper()
	return evaluate[[2]float64](b, `(element => {
		element.scrollIntoView({block: "center"})
		const place = element.getBoundingClientRect()
		return [place.x + place.width / 2, place.y + place.height / 2]
	})(`+element+`)`)
}

// Entered returns what the field with the name shows, in the page's main part.
func (b *Browser) Entered(name string) string {
	b.t.Helper()
	return run(b, chromedp.Value(chromedp.CSS(`main [name="`+name+`"]`)))
}
