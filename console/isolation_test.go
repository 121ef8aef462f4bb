package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
)

// unknownOf returns an id of the same kind that nothing has.
func unknownOf(id string) string {
	if prefix, digits, found := strings.Cut(id, "_"); found { // of the same time: events of others expire
		return prefix + "_" + digits[:10] + "0000000000000000"
	}
	return "9007199254740993"
}

// takesNumber reports whether a parameter is the number of a notice.
func takesNumber(c routeCase, name string) bool {
	return strings.HasPrefix(c.path, "/console/notices") && (name != "path" || c.id == "{notice}")
}

// kindOfID returns the prefix of an id, the same for all nodes.
func kindOfID(id string) string {
	prefix, _, _ := strings.Cut(id, "_")
	if models.IsID(id, models.PrefixLocation, models.PrefixSystem, models.PrefixEquipment, models.PrefixSubEquipment) {
		return "node"
	}
	return prefix
}

// doneMessage is the message of the write before the page.
var doneMessage = regexp.MustCompile(`<div class="note good" role="status">.*?</div>`)

// nameless returns a page without the id that was sent, the keys of forms and the message of
// the write before it.
func nameless(page consoletest.Page, id string) string {
	text := doneMessage.ReplaceAllString(formKey.ReplaceAllString(page.Body, ""), "") + page.Location()
	if !strings.Contains(id, "_") { // a short number, which pages do not repeat
		return text
	}
	return strings.ReplaceAll(text, id, "")
}

// Another organization's records are the same as records that do not exist, on every route and
// in every parameter of a path, a query and a form. Nothing of them is shown or changed.
func TestTenantsAreIsolatedOnPages(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	v := s.SignedIn("ann")
	s.Exec(`DELETE FROM notices WHERE person_id = $1`, s.ID("ann"))
	before := s.contents()
	secrets := []string{"Their work order", "Their feedback", "Their comment", "Pia Frost", "pia@polar", "Dispatch", "Back office", "127.0.0.1:9/dispatch", "cli_dispatch"}
	nothing := map[string]consoletest.Page{} // by case, parameter and kind of the unknown id
	compare := func(c routeCase, where, id string, set func(value string) func(*string, url.Values, url.Values)) {
		// Customers know their service companies.
		company := id == s.Polar.OrganizationID && (where == "assignees" || where == "consultants" || c.path == "/console/teams" || strings.Contains(c.path, "/service-companies/"))
		if takesNumber(c, where) == strings.Contains(id, "_") || company {
			return
		}
		if (where == "identity" || where == "identity_id") && id == s.Polar.OrganizationID { // a service company, which its customers may assign
			return
		}
		unknown := unknownOf(id)
		same := c.String() + where
		if where != "path" { // there, unknown ids of all kinds are alike
			same += unknown
		}
		if _, tried := nothing[same]; !tried {
			page := s.try(v, c, "nothing", set(unknown))
			page.Body = nameless(page, unknown)
			nothing[same] = page
		}
		theirs, nothing := s.try(v, c, "theirs", set(id)), nothing[same]
		if theirs.Status != nothing.Status || nameless(theirs, id) != nothing.Body {
			t.Errorf("%s with %s in %s: %d, and %d for nothing: %s", c, id, where, theirs.Status, nothing.Status, firstDifference(nameless(theirs, id), nothing.Body))
		}
		if where == "path" && theirs.Status != http.StatusNotFound {
			t.Errorf("%s with %s: %d", c, id, theirs.Status)
		}
		for _, text := range secrets {
			if strings.Contains(theirs.Body, text) {
				t.Errorf("%s with %s in %s shows %q", c, id, where, text)
			}
		}
	}
	for _, c := range routeCases {
		if c.anyone {
			continue
		}
		// A path takes ids of a kind, of which the other organization may have none.
		kind := kindOfID(s.fill(c.id))
		alike := slices.DeleteFunc(slices.Clone(s.theirs), func(id string) bool { return kindOfID(id) != kind })
		if len(alike) == 0 {
			alike = s.theirs
		}
		for _, id := range s.theirs {
			if strings.Contains(c.path, ":id") && slices.Contains(alike, id) {
				compare(c, "path", id, func(value string) func(*string, url.Values, url.Values) {
					return func(path *string, _, _ url.Values) { *path = value }
				})
			}
			for _, name := range c.ids {
				compare(c, name, id, func(value string) func(*string, url.Values, url.Values) {
					return func(_ *string, query, form url.Values) {
						values := form
						if query.Has(name) {
							values = query
						}
						for _, other := range c.ids { // alone: the others would hide its effect
							query.Del(other)
						}
						values.Set(name, value)
					}
				})
			}
		}
	}
	s.wantUnchanged(t, before, "a request with another organization's ids")
}

// firstDifference returns the rest of both strings from where they differ.
func firstDifference(a, b string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%q and %q", a[i:min(i+150, len(a))], b[i:min(i+150, len(b))])
		}
	}
	return fmt.Sprintf("%d and %d bytes", len(a), len(b))
}
