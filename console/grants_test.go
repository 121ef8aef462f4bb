package console_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millwright/console/consoletest"
	"millwright/models"
	"millwright/service/records"
	"millwright/service/store"
)

// allBut are all organization-wide permissions except one.
func allBut(grant models.OrganizationGrant) []string {
	return namesBut(models.AllOrganizationGrants, grant)
}

// namesBut are the names of all permissions except one.
func namesBut[G ~string](all []G, grant G) (names []string) {
	for _, g := range all {
		if g != grant {
			names = append(names, string(g))
		}
	}
	return names
}

// Without its permission, and with all others, no route shows or does anything; with it, it works.
func TestPagesRequirePermissions(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("bob"))
	for _, missing := range models.AllOrganizationGrants {
		v := s.signedInWith("bob", allBut(missing)...)
		before := s.contents()
		for _, c := range routeCases {
			if c.anyone || c.grant != missing {
				continue
			}
			s.try(v, c, "without", nil).Want(http.StatusForbidden, "permission")
		}
		s.wantUnchanged(t, before, "a form without "+string(missing))
	}
	v := s.signedInWith("bob", allBut("")...)
	// Assigning also takes an inventory manager of the node.
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("manager"), s.ID("bob"))
	for i, c := range routeCases {
		if c.grant == "" {
			continue
		}
		if page := s.try(v, c, fmt.Sprintf("with%d", i), nil); page.Status >= http.StatusBadRequest {
			t.Errorf("%s with every permission: %d\n%s", c, page.Status, page.Body)
		}
	}
}

// linksIn returns where the page's links lead, and what it loads later.
func linksIn(page string) []string { return valuesIn(page, `href="`, `hx-get="`) }

// actionsIn returns where the page's forms are sent.
func actionsIn(page string) []string { return valuesIn(page, `formaction="`, `method="post" action="`) }

// valuesIn returns the paths of the console that follow one of these beginnings.
func valuesIn(page string, beginnings ...string) []string {
	var values []string
	for _, beginning := range beginnings {
		for _, rest := range strings.Split(page, beginning+"/console")[1:] {
			value, _, _ := strings.Cut(rest, `"`)
			values = append(values, "/console"+html.UnescapeString(value))
		}
	}
	return values
}

var (
	recordPath = regexp.MustCompile(`^/console/[a-z-]+/[^/?]+$`)
	idInPath   = regexp.MustCompile(`_[0-9a-z]{26}`)
)

// kindOf returns the same for pages that differ in ids only. Records differ in their states too.
func kindOf(path string) string {
	if recordPath.MatchString(path) {
		return path
	}
	return idInPath.ReplaceAllString(path, "")
}

// everyPath is for crawl.
func everyPath(path string) string { return path }

// crawl opens every page that pages link to, one of each kind, and returns them by path.
func crawl(t *testing.T, v *consoletest.Visitor, kind func(path string) string) map[string]consoletest.Page {
	t.Helper()
	pages, seen := map[string]consoletest.Page{}, map[string]bool{}
	for next := []string{"/console"}; len(next) > 0 && len(pages) < 500; next = next[1:] {
		path, _, _ := strings.Cut(next[0], "#")
		if seen[kind(path)] || strings.HasPrefix(path, "/console/assets/") {
			continue
		}
		seen[kind(path)] = true
		pages[path] = v.Get(path)
		next = append(next, linksIn(pages[path].Body)...)
	}
	if len(pages) > 450 {
		t.Error("there are too many pages")
	}
	return pages
}

// No page offers a link or a button that the person's permissions do not allow, and with all
// of them every page can be reached.
func TestPagesOfferOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("bob"))
	// Assigning takes an inventory manager of the node.
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("manager"), s.ID("bob"))
	incoming(t, s.Site) // a customer's work order, which a page offers to return
	// Everything else that a page may offer: bob's team has every permission on nodes, and there
	// are work orders on hold, in review and with a form, and what can be turned on again.
	s.Exec(`UPDATE assignments SET definition_id = $1 WHERE identity_id = $2`, s.ID("full"), s.ID("crew"))
	s.Exec(`UPDATE people SET deactivated_at = now() WHERE id = $1`, s.ID("dan"))
	s.Exec(`UPDATE webhooks SET enabled = false, off_at = now(), off_reason = 'moving' WHERE id = $1`, s.ID("reader_hook"))
	s.Exec(`UPDATE integrations SET enabled = false WHERE id = $1`, s.ID("roofer"))
	s.Exec(`UPDATE inventory_nodes SET retired_at = now() WHERE id = $1`, s.ID("fan1"))
	form := s.ID("inspection")
	for status, people := range map[string]struct{ workers, consultants []string }{
		"open": {workers: []string{s.ID("bob"), s.ID("crew")}}, "on_hold": {workers: []string{s.ID("bob")}},
		"sent_to_inspection": {[]string{s.ID("cat")}, []string{s.ID("bob")}},
	} {
		order := s.Must(s.Records.CreateWorkOrder(t.Context(), s.Actor("erp"), store.NoKey, records.NewWorkOrder{
			InventoryID: s.ID("ahu1"), Title: status, FormID: &form, Assignees: people.workers, Consultants: people.consultants,
		}))
		s.Exec(`UPDATE work_orders SET status = $1 WHERE id = $2`, status, order)
	}
	for _, missing := range slices.Concat([]models.OrganizationGrant{""}, models.AllOrganizationGrants) {
		v := s.signedInWith("bob", allBut(missing)...)
		offered, kind := map[string]bool{}, kindOf
		if missing == "" {
			kind = everyPath
		}
		for path, page := range crawl(t, v, kind) {
			if page.Status != http.StatusOK {
				t.Errorf("without %q a page links to %s: %d", missing, path, page.Status)
			}
			offered[caseOf(t, http.MethodGet, path).String()] = true
			wantKeys(t, path, page)
			for _, action := range actionsIn(page.Body) {
				c := caseOf(t, http.MethodPost, action)
				if c.grant != "" && c.grant == missing {
					t.Errorf("without %q the page %s has a form of %s", missing, path, c)
				}
				offered[c.String()] = true
			}
		}
		for _, c := range routeCases {
			if missing == "" && !c.anyone && !c.unoffered && !offered[c.String()] {
				t.Errorf("no page links to %s", c)
			}
		}
	}
}

// People who are not signed in neither see nor change data, on any route.
func TestVisitorsSeeNothing(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("bob"))
	before := s.contents()
	for _, c := range routeCases {
		page := s.try(s.NewVisitor(), c, "visitor", nil)
		if !c.anyone && (page.Status != http.StatusSeeOther || !strings.HasPrefix(page.Location(), "/console/sign-in") || page.Body != "" && c.method != http.MethodGet) {
			t.Errorf("%s: %d %s", c, page.Status, page.Body)
		}
	}
	s.wantUnchanged(t, before, "a visitor")
}

// GET requests do not change data.
func TestGetsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newGuardedSite(t)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("bob"))
	v := s.SignedIn("bob")
	grant(s.Site, "bob", allBut("")...)
	before := s.contents()
	for _, c := range routeCases {
		if c.method == http.MethodGet {
			s.try(v, c, "", nil)
		}
	}
	s.wantUnchanged(t, before, "a GET")
}

// kindOfPath is a path with the names of its parameters.
func kindOfPath(path string) string {
	u, _ := url.Parse(path)
	return u.Path + " " + strings.Join(slices.Sorted(maps.Keys(u.Query())), " ")
}

// forms are paths of forms that cannot be sent by some people or in some states.
var forms = regexp.MustCompile(`/(new|answers|edit|assign)(\?|$)`)

// impossible are pages on which their person can do nothing.
var impossible = regexp.MustCompile(`You may not give feedback on any node|no work orders can be created|does not include work orders that people create|You may create work orders on no node|<div class="note warn"><svg[^>]*><use href="#icon-warn"></use></svg><p>(A work order with|Only an assigned)`)

// No page offers what its person may not do: neither to people with few permissions, nor in an
// organization that is read-only.
func TestNothingIsOfferedThatIsRejected(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"allowed": `SELECT 1`, "read-only": `UPDATE organizations SET read_only = true`,
		"small plan": `UPDATE plans SET manual_work_orders = false, api = false`,
	} {
		s := consoletest.NewSite(t)
		id, _ := planned(t, s)
		answer(t, s, id)
		inReview(t, s, "cat")
		plannedWorkOrder(t, s)
		newFeedback(t, s)
		incoming(t, s)
		s.Exec(statement)
		people := []string{"ann", "bob"}
		if name == "allowed" {
			people = append(people, "cat", "dan", "eve")
		}
		for _, key := range people {
			for path, page := range crawl(t, s.SignedIn(key), kindOfPath) {
				found := ""
				if forms.MatchString(path) {
					found = impossible.FindString(page.Body)
				}
				if page.Status >= http.StatusBadRequest || found != "" {
					t.Errorf("%s: %s is offered %s: %d %s", name, key, path, page.Status, found)
				}
			}
		}
	}
}
