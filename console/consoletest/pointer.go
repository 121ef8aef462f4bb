package consoletest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// Unfold opens the main part's details whose summary is the text.
func (b *Browser) Unfold(text string) {
	b.t.Helper()
	b.settle()
	b.Do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//summary[normalize-space(.)=%q]`, text)), chromedp.NodeVisible))
}

// PressTwice double-clicks the main part's button with the text. The second click comes while
// the first request runs.
func (b *Browser) PressTwice(text string) {
	b.t.Helper()
	b.settle()
	at := b.middleOf(fmt.Sprintf(`[...document.querySelectorAll("main button")].find(b => b.innerText.trim() === %q)`, text))
	b.Do(chromedp.MouseClickXY(at[0], at[1]), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
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

// Download follows the main part's link with the text to a file, and returns the file's name
// and content.
func (b *Browser) Download(text string) (name string, content []byte) {
	b.t.Helper()
	directory := b.t.TempDir()
	_, err := chromedp.CallBrowser(b.Context, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(b.Context).BrowserContextID, DownloadPath: directory,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.settle()
	b.Do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//a[normalize-space(.)=%q]`, text)), chromedp.NodeVisible))
	b.await(func(context.Context) (missing string) {
		files, err := os.ReadDir(directory)
		if err != nil || len(files) != 1 || filepath.Ext(files[0].Name()) == ".crdownload" {
			return fmt.Sprintf("%q downloads no file (%v, %v)", text, files, err)
		}
		name = files[0].Name()
		return ""
	})
	if content, err = os.ReadFile(filepath.Join(directory, name)); err != nil {
		b.t.Fatal(err)
	}
	return name, content
}
