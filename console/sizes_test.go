package console_test

import (
	"testing"

	"millwright/console/consoletest"
)

const (
	// pageHeight is the height of a page.
	pageHeight = `document.documentElement.scrollHeight`
	// rowsInView counts the rows of tables that are completely in the window.
	rowsInView = `[...document.querySelectorAll("main tbody tr")].filter(r => r.getBoundingClientRect().height > 0 && r.getBoundingClientRect().bottom <= innerHeight).length`
)

// On a telephone the pages of the day are short, and on a desk a list shows many rows.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	d := newDemo(t)
	open := func(person, path string) *consoletest.Browser {
		b := d.Browser(t)
		b.SignInAs(d.Email(person))
		b.Open(path)
		return b
	}
	for _, page := range []struct {
		person, path string
		most         float64
	}{
		{"margaret_ellison", "/console", 1500}, {"karin_ostlund", "/console", 1500}, {"priya_raghavan", "/console", 1500},
		{"margaret_ellison", "/console/deliveries", 5000}, {"margaret_ellison", "/console/work-orders", 5000},
	} {
		height := open(page.person, page.path).Measure(390, 844, pageHeight)
		t.Logf("%s of %s: %v px on a telephone", page.path, page.person, height)
		if height > page.most {
			t.Errorf("%s of %s is %v px high on a telephone, want at most %v", page.path, page.person, height, page.most)
		}
	}
	rows := open("margaret_ellison", "/console/work-orders").Measure(1280, 800, rowsInView)
	t.Logf("%v rows in view", rows)
	if rows < 14 {
		t.Errorf("%v work orders are in view, want 14", rows)
	}
}
