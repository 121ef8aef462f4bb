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
)

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
		for _, key := range []string{"ann", "bob", "cat", "dan", "eve"} {
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
