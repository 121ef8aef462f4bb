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

// accepted is a blank field that counts as left empty; sameAsEmpty is that for a search, whose
// page does not differ.
const (
	accepted    = "accepted"
	sameAsEmpty = "the page without it"
)

// blankFields are what becomes of a blank field in each form of the console: accepted,
// sameAsEmpty, or a message of the page that rejects it.
var blankFields = map[string]string{
	"GET /console/deliveries record":                 sameAsEmpty,
	"GET /console/feedback external_id":              sameAsEmpty,
	"GET /console/feedback q":                        sameAsEmpty,
	"GET /console/forms q":                           sameAsEmpty,
	"GET /console/integrations/:id see":              sameAsEmpty,
	"GET /console/inventory q":                       sameAsEmpty,
	"GET /console/log record":                        sameAsEmpty,
	"GET /console/log who":                           sameAsEmpty,
	"GET /console/people q":                          sameAsEmpty,
	"GET /console/people/:id/deactivate q":           sameAsEmpty,
	"GET /console/search q":                          sameAsEmpty,
	"GET /console/teams q":                           sameAsEmpty,
	"GET /console/teams/:id q":                       sameAsEmpty,
	"GET /console/teams/:id/members q":               sameAsEmpty,
	"GET /console/webhooks/:id/deliveries record":    sameAsEmpty,
	"GET /console/work-orders assignee":              sameAsEmpty,
	"GET /console/work-orders by":                    sameAsEmpty,
	"GET /console/work-orders customer":              sameAsEmpty,
	"GET /console/work-orders external":              sameAsEmpty,
	"GET /console/work-orders node":                  sameAsEmpty,
	"GET /console/work-orders q":                     sameAsEmpty,
	"POST /console/account name":                     "Enter a name.",
	"POST /console/account/password username":        "password", // for password managers
	"POST /console/feedback description":             accepted,
	"POST /console/feedback node":                    "place",
	"POST /console/feedback subject":                 "visible character",
	"POST /console/feedback/:id/comments text":       "visible character",
	"POST /console/integrations name":                "Enter a name.",
	"POST /console/integrations/:id name":            "Enter a name.",
	"POST /console/integrations/:id/assign node":     "place",
	"POST /console/integrations/:id/webhooks url":    "Enter an address.",
	"POST /console/forms name":                       "Enter a name.",
	"POST /console/forms/:id/edit name":              "Enter a name.",
	"POST /console/forms/:id/question label":         "visible character",
	"POST /console/forms/:id/question options":       accepted,
	"POST /console/inventory description":            accepted,
	"POST /console/inventory external_id":            accepted,
	"POST /console/inventory name":                   "Enter a name.",
	"POST /console/inventory/:id/assign identity_id": "Enter the e-mail address",
	"POST /console/inventory/:id/edit description":   accepted,
	"POST /console/inventory/:id/edit external_id":   accepted,
	"POST /console/inventory/:id/edit name":          "Enter a name.",
	"POST /console/inventory/:id/several lines":      "at least one line",
	"POST /console/inventory/:id/move node":          "at the top of the inventory",
	"POST /console/people email":                     "Enter an e-mail address",
	"POST /console/people node":                      accepted,
	"POST /console/people/definitions/edit name":     "Enter a name.",
	"POST /console/people name":                      accepted,
	"POST /console/people/:id/email email":           "Enter an e-mail address",
	"POST /console/sign-in email":                    "is wrong",
	"POST /console/teams name":                       "Enter a name.",
	"POST /console/teams/:id name":                   "Enter a name.",
	"POST /console/webhooks/:id url":                 "Enter an address.",
	"POST /console/webhooks/:id/off reason":          accepted,
	"POST /console/work-orders description":          accepted,
	"POST /console/work-orders external_id":          accepted,
	"POST /console/work-orders title":                "visible character",
	"POST /console/work-orders/:id/answers {q_note}": accepted,
	"POST /console/work-orders/:id/assign find":      sameAsEmpty,
	"POST /console/work-orders/:id/cancel reason":    accepted,
	"POST /console/work-orders/:id/comments text":    "visible character",
	"POST /console/work-orders/:id/edit description": accepted,
	"POST /console/work-orders/:id/edit external_id": accepted,
	"POST /console/work-orders/:id/edit title":       "visible character",
	"POST /console/work-orders/:id/return reason":    "visible character",
	"POST /console/work-orders/:id/review comment":   "requires a comment",
	"POST /console/work-orders/assign find":          sameAsEmpty,
}

// Invisible text is blank in every form: required fields are rejected, others are left empty, and a
// search lists everything. It is never stored.
func TestBlankTextInEveryForm(t *testing.T) { //nolint:tparallel // the cases share a site
	t.Parallel()
	s := newGuardedSite(t)
	v := s.SignedIn("ann")
	s.things["returnable"] = incoming(t, s.Site)
	for name := range textFields(t, s, v) {
		if _, listed := blankFields[name]; !listed {
			t.Errorf("%s is not in blankFields", name)
		}
	}
	for name, want := range blankFields {
		for kind, blank := range servicetest.Invisible {
			t.Run(name+" of "+kind, func(t *testing.T) {
				s.Exec(`DELETE FROM rate_counters`) // few links are made in an hour
				tryBlank(t, s, v, name, blank, want)
			})
		}
	}
	for _, mark := range []string{"\u200b", "\u3164", "\u2800", "\u034f"} {
		for _, table := range servicetest.Value[[]string](s.Fixture, `SELECT array_agg(relname::text) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`) {
			if servicetest.Value[bool](s.Fixture, `SELECT EXISTS (SELECT FROM "`+table+`" t WHERE strpos(t::text, $1) > 0)`, mark) {
				t.Errorf("%+q is stored in %s", mark, table)
			}
		}
	}
}

func tryBlank(t *testing.T, s *guardedSite, v *consoletest.Visitor, name, blank, want string) {
	t.Helper()
	method, rest, _ := strings.Cut(name, " ")
	path, field, _ := strings.Cut(rest, " ")
	field = s.fill(field)
	if want == sameAsEmpty {
		at := s.pathOf(caseOf(t, method, path), func(_ *string, query, _ url.Values) { clear(query) })
		empty, filled := v.Get(at+"?"+field+"="), v.Get(at+"?"+url.Values{field: {blank}}.Encode())
		filled.Body = strings.ReplaceAll(filled.Body, strings.ReplaceAll(url.QueryEscape(blank), "+", "&#43;"), "") // in the page's own URL
		if filled.Status != empty.Status || nameless(filled, "") != nameless(empty, "") {
			t.Errorf("%d, and %d without it: %s", filled.Status, empty.Status, firstDifference(nameless(filled, ""), nameless(empty, "")))
		}
		return
	}
	page := s.try(v, caseOf(t, method, path), "", func(id *string, _, form url.Values) {
		switch {
		case strings.HasSuffix(path, "/return"):
			*id = s.things["returnable"]
		case strings.HasSuffix(path, "/review"):
			*id = inReview(t, s.Site, "ann")
			form.Set("decision", "send_back")
		case strings.HasSuffix(path, "/cancel"):
			*id = newRecord(t, s.Site)
		}
		form.Set(field, blank)
	})
	switch {
	case want == accepted && page.Status >= http.StatusBadRequest, want != accepted && (page.Status < http.StatusBadRequest || !strings.Contains(page.Body, want)):
		t.Errorf("%d, want %s; problems: %q", page.Status, want, regexp.MustCompile(`class="problem">[^<]*`).FindAllString(page.Body, -1))
	}
}

var (
	formInPage  = regexp.MustCompile(`(?s)<form[^>]*>.*?</form>`)
	actionOf    = regexp.MustCompile(`^<form[^>]* action="([^"]*)"`)
	textInForm  = regexp.MustCompile(`<(?:textarea|input)[^>]*>`)
	nameOfInput = regexp.MustCompile(` name="([^"]*)"`)
	typeOfInput = regexp.MustCompile(` type="([^"]*)"`)
)

// textFields returns the fields for text in the forms of all pages.
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
					found[caseOf(t, method, action).String()+" "+name[1]] = true
				}
			}
		}
	}
	if len(found) < 40 {
		t.Errorf("the pages have only the fields %v", slices.Sorted(maps.Keys(found)))
	}
	return found
}
