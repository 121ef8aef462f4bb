package console_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"millwright/console/consoletest"
	"millwright/service/records"
	"millwright/service/store"
)

// grant gives a person of the fixture the organization-wide permissions.
func grant(s *consoletest.Site, key string, grants ...string) {
	if grants == nil {
		grants = []string{}
	}
	definition := "def_0000000000000000000000000" + key[:1]
	s.Exec(`INSERT INTO organization_permission_definitions (id, organization_id, name, grants)
		VALUES ($1, $2, 'Definition', $3) ON CONFLICT (id) DO UPDATE SET grants = excluded.grants`, definition, s.Acme.OrganizationID, grants)
	s.Exec(`UPDATE people SET organization_definition_id = $2 WHERE id = $1`, s.ID(key), definition)
}

// allowFeedback lets those who work at the fixture's headquarters read, give and resolve feedback.
func allowFeedback(s *consoletest.Site) {
	s.Exec(`UPDATE permission_definitions SET grants = grants || '{feedback.read,feedback.create,feedback.resolve}' WHERE id = $1`, s.ID("working"))
}

// newFeedback returns new feedback of the integration ERP on AHU 1.
func newFeedback(t *testing.T, s *consoletest.Site) string {
	t.Helper()
	description := "It rattles when it starts.\nSince Monday."
	return s.Must(s.Records.CreateFeedback(t.Context(), s.Actor("erp"), store.NoKey, records.NewFeedback{InventoryID: s.ID("ahu1"), Subject: "The fan rattles", Description: &description}))
}

var linkInPage = regexp.MustCompile(`<p class="secret">(http://[^<]+)</p>`)

// linkOf returns the path of the link that a page shows.
func linkOf(t *testing.T, s *consoletest.Site, page string) string {
	t.Helper()
	found := linkInPage.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page shows no link:\n%s", page)
	}
	return strings.TrimPrefix(found[1], s.URL)
}

// evaluated returns what the expression is in the browser.
func evaluated(t *testing.T, b *consoletest.Browser, expression string) string {
	t.Helper()
	value, err := chromedp.Run(b.Context, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// onBrowsers runs a journey in a browser with scripts and in one without.
func onBrowsers(t *testing.T, journey func(*testing.T, *consoletest.Site, *consoletest.Browser)) {
	t.Helper()
	for name, open := range map[string]func(*consoletest.Site, testing.TB) *consoletest.Browser{
		"with scripts": (*consoletest.Site).Browser, "without scripts": (*consoletest.Site).BrowserWithoutScripts,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := consoletest.NewSite(t)
			journey(t, s, open(s, t))
		})
	}
}
