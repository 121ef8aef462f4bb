package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// hiddenFields are fields for text that no page of routeCases has.
var hiddenFields = []string{
	"POST /console/work-orders/:id/answers {q_note}", "POST /console/work-orders/:id/cancel reason", "POST /console/work-orders/:id/return reason", "POST /console/work-orders/:id/review comment",
}

// Invisible text is the same as an empty field in every form: required fields are rejected, and a search lists everything. It
// is never stored. What else is invisible is a matter of models.
func TestBlankTextInEveryForm(t *testing.T) { //nolint:tparallel // the cases share a site
	t.Parallel()
	s := newGuardedSite(t)
	v := s.SignedIn("ann")
	s.things["returnable"] = incoming(t, s.Site)
	fields := textFields(t, s, v)
	for _, name := range hiddenFields {
		fields[name] = false
	}
	for name, required := range fields {
		t.Run(name, func(t *testing.T) {
			empty := sendText(t, s, v, name, "")
			if required && empty.Status < http.StatusBadRequest {
				t.Errorf("without the required field: %d", empty.Status)
			}
			page := sendText(t, s, v, name, " \u200b\u3164")
			if page.Status != empty.Status || page.Body != empty.Body {
				t.Errorf("%d, and %d without it: %s", page.Status, empty.Status, firstDifference(page.Body, empty.Body))
			}
		})
	}
	for _, mark := range []string{"\u200b", "\u3164"} {
		for _, table := range servicetest.Value[[]string](s.Fixture, `SELECT array_agg(relname::text) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`) {
			if servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM "`+table+`" t WHERE strpos(t::text, $1) > 0)`, mark) {
				t.Errorf("%+q is stored in %s", mark, table)
			}
		}
	}
}

// sendText sends text in a field. The body of a search is its page, that of a form its problems.
func sendText(t *testing.T, s *guardedSite, v *consoletest.Visitor, name, text string) consoletest.Page {
	t.Helper()
	method, rest, _ := strings.Cut(name, " ")
	path, field, _ := strings.Cut(rest, " ")
	field = s.fill(field)
	c := caseOf(t, method, path)
	if method == http.MethodGet || field == "find" {
		at := s.pathOf(c, func(_ *string, query, _ url.Values) { clear(query) })
		page := v.Get(at + "?" + url.Values{field: {text}}.Encode())
		page.Body = strings.ReplaceAll(nameless(page, ""), strings.ReplaceAll(url.QueryEscape(text), "+", "&#43;"), "") // in the page's own URL
		return page
	}
	s.Exec(`DELETE FROM rate_counters`) // few links are made in an hour
	page := s.try(v, c, "", func(id *string, _, form url.Values) {
		switch {
		case strings.HasSuffix(path, "/return"):
			*id = s.things["returnable"]
		case strings.HasSuffix(path, "/review"):
			*id = inReview(t, s.Site, "ann")
			form.Set("decision", "send_back")
		case strings.HasSuffix(path, "/cancel"):
			*id = newRecord(t, s.Site)
		}
		form.Set(field, text)
	})
	page.Body = strings.Join(problemInPage.FindAllString(page.Body, -1), " ")
	return page
}

var (
	formInPage  = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	actionOf    = regexp.MustCompile(`^<form[^>]* action="([^"]*)"`)
	textInForm  = regexp.MustCompile(`<(?:textarea|input)[^>]*>`)
	nameOfInput = regexp.MustCompile(` name="([^"]*)"`)
	typeOfInput = regexp.MustCompile(` type="([^"]*)"`)

	problemInPage = regexp.MustCompile(`class="problem">[^<]*`)
)

// textFields returns the fields for text in the forms of all pages, and whether they are required.
func textFields(t *testing.T, s *guardedSite, v *consoletest.Visitor) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, c := range routeCases {
		if c.method != http.MethodGet {
			continue
		}
		path := s.pathOf(c, nil)
		for _, form := range formInPage.FindAllString(v.Get(path).Body, -1) {
			opening, fields, _ := strings.Cut(form, ">")
			method, action := http.MethodGet, path
			if strings.Contains(opening, `method="post"`) {
				method = http.MethodPost
			}
			if to := actionOf.FindStringSubmatch(form); to != nil {
				action = to[1]
			}
			for _, input := range textInForm.FindAllString(fields, -1) {
				name, kind := nameOfInput.FindStringSubmatch(input), typeOfInput.FindStringSubmatch(input)
				if name != nil && (len(kind) == 0 || slices.Contains([]string{"text", "search", "email", "url", "tel"}, kind[1])) {
					found[caseOf(t, method, action).String()+" "+name[1]] = strings.Contains(input, " required")
				}
			}
		}
	}
	if len(found) < 40 {
		t.Errorf("the pages have only the fields %v", slices.Sorted(maps.Keys(found)))
	}
	return found
}
