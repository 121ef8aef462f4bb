package console_test

import (
	"testing"

	"millwright/console/consoletest"
)

// On a telephone a list begins high enough that its first rows are seen without scrolling, and its rows are two lines.
// Those who use a keyboard reach them soon.
func TestListsOnATelephone(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	fillTables(t, s)
	b := s.Browser(t)
	b.SignIn("ann", "/console")
	for path, height := range map[string]float64{
		"/console/work-orders": 64, "/console/deliveries": 64, "/console/notices": 64, "/console/log": 84,
		"/console/feedback": 64, "/console/people": 400, "/console/teams": 400, "/console/forms": 400, "/console/integrations": 400,
	} {
		b.Open(path)
		if top := b.Measure(390, 844, `document.querySelector("main tbody tr").getBoundingClientRect().top + scrollY`); top > 250 {
			t.Errorf("%s: the first row is at %.0f px", path, top)
		}
		if tallest := b.Measure(390, 844, `Math.max(...Array.from(document.querySelectorAll("main tbody tr"), row => row.getBoundingClientRect().height))`); tallest > height {
			t.Errorf("%s: a row has %.0f px", path, tallest)
		}
		if stops := b.StopsToRow(); stops > 12 { // from the beginning of the page
			t.Errorf("%s: %d stops of the keyboard", path, stops)
		}
	}
	// Two stops of the keyboard in each row of work orders: its box and its title.
	b.Open("/console/work-orders")
	if n := b.Measure(1280, 900, `Math.max(...Array.from(document.querySelectorAll("main tbody tr"), row => row.querySelectorAll("a:not([tabindex='-1']), input, [tabindex='0']").length))`); n > 2 {
		t.Errorf("a row has %.0f stops", n)
	}
}

// A picker shows who has the letters while they are entered.
func TestThePickerFiltersWhileOneTypes(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	b := s.Browser(t)
	b.SignIn("ann", "/console/work-orders/"+newRecord(t, s)+"/assign")
	b.WantText("Crew", "Bob Stone")
	b.Click("#find")
	b.Type("crE")
	b.WantNoText("Bob Stone")
	b.WantText("Crew")
}
