package api_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"millwright/api"
	"millwright/console/consoletest"
)

// The documentation is accessible and fits, in light and dark and at every width; without
// scripts its search works.
func TestDocsPageInABrowser(t *testing.T) {
	t.Parallel()
	site := consoletest.NewSite(t)
	a := api.New(site.Service, api.Options{PublicURL: "http://127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	site.URL = server.URL
	b := site.BrowserWithoutScripts(t)
	b.Open("/docs")
	b.WantText("Millwright", "Create a work order", "Conventions")
	b.Check("docs")
	b.Open("/docs?q=idempotency")
	b.WantText("Safe retries")
	b.Check("docs-search")
	b.Press("Safe retries")
	b.WantText("Send an Idempotency-Key with each POST")
	b.Open("/docs?q=cursor_expired check")
	b.Press("Keep a copy")
	b.WantText("No change is ever skipped")
	b.Check("docs-guide")
}
