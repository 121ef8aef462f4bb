package api_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"millwright/api/apitest"
	"millwright/docs"
	"millwright/models"
)

var (
	docsLinks = regexp.MustCompile(`(?:src|href|action)="([^"]*)"`)
	docsIDs   = regexp.MustCompile(` id="([^"]*)"`)
	docsCode  = regexp.MustCompile(`(?s)<pre.*?</pre>`)
	// Handlers of events inside tags.
	docsHandlers = regexp.MustCompile(`<[^>]* on[a-z]+=`)
)

// docsPages returns the pages of the documentation by their paths.
func docsPages(s *apitest.Server) map[string]string {
	pages := map[string]string{"/docs": ""}
	for _, guide := range docs.Guides {
		pages["/docs/"+guide] = ""
	}
	for path := range pages {
		pages[path] = string(s.Send(http.MethodGet, path, "").Want(http.StatusOK, "").Body)
	}
	return pages
}

func TestDocsPagesUseOnlyThisServer(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	pages := docsPages(s)
	ids := map[string]map[string]bool{}
	for path, text := range pages {
		ids[path] = map[string]bool{}
		for _, id := range docsIDs.FindAllStringSubmatch(text, -1) {
			if ids[path][id[1]] {
				t.Errorf("%s has the id %q twice", path, id[1])
			}
			ids[path][id[1]] = true
		}
	}
	for path, text := range pages {
		header := s.Send(http.MethodGet, path, "").Header
		want(t, "the type of "+path, header.Get("Content-Type"), "text/html; charset=utf-8")
		policy := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") || strings.Contains(policy, ":") {
			t.Errorf("the policy of %s is %q", path, policy)
		}
		if strings.Contains(text, "<script") || strings.Contains(text, "style=") || docsHandlers.MatchString(text) {
			t.Errorf("%s has an inline script or style", path)
		}
		for _, link := range docsLinks.FindAllStringSubmatch(text, -1) {
			checkDocsLink(t, s, ids, path, html.UnescapeString(link[1]))
		}
	}
	s.Send(http.MethodGet, "/docs/page.html", "").Want(http.StatusNotFound, "not_found")
	s.Send(http.MethodGet, "/docs/running", "").Want(http.StatusNotFound, "not_found")
}

// checkDocsLink checks that the link of the page at path has a target on this server, relative
// to the page. Guides may name other sites for people to open.
func checkDocsLink(t *testing.T, s *apitest.Server, ids map[string]map[string]bool, path, link string) {
	t.Helper()
	if strings.HasPrefix(link, "https://") && path != "/docs" {
		return
	}
	base := url.URL{Path: path}
	target, err := base.Parse(link)
	switch {
	case err != nil || target.Host != "" || strings.HasPrefix(link, "/"):
		t.Errorf("%s: %s leads elsewhere", path, link)
	case target.Path == "/console": // not this server's
	case ids[target.Path] != nil:
		if target.Fragment != "" && !ids[target.Path][target.Fragment] {
			t.Errorf("%s: nothing is at %s", path, link)
		}
	default:
		asset := s.Send(http.MethodGet, target.Path, "").Want(http.StatusOK, "")
		if strings.HasPrefix(target.Path, "/docs/") {
			s.Send(http.MethodGet, target.Path, "", "If-None-Match", asset.Header.Get("ETag")).Want(http.StatusNotModified, "")
		}
	}
}

// The guides are shown whole, as HTML.
func TestDocsGuides(t *testing.T) {
	t.Parallel()
	for path, text := range docsPages(apitest.New(t)) {
		_, content, _ := strings.Cut(text, "<main")
		for _, left := range []string{"`", "**", "](", "<no value>", "## ", "|---", ".md\""} {
			if strings.Contains(docsCode.ReplaceAllString(content, ""), left) {
				t.Errorf("%s shows Markdown: %q", path, left)
			}
		}
		if source, err := docs.Files.ReadFile(strings.TrimPrefix(path, "/docs/") + ".md"); err == nil {
			if shown, want := strings.Count(content, "<pre"), strings.Count(string(source), "\n```")/2; shown < want {
				t.Errorf("%s shows %d blocks of code, want %d", path, shown, want)
			}
		}
	}
}

// Everything of the document is on the page and in its index, the prose after the operations.
func TestDocsPageIsComplete(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	text := string(s.Send(http.MethodGet, "/docs", "").Want(http.StatusOK, "").Body)
	document := map[string]any{}
	if err := json.Unmarshal(s.Send(http.MethodGet, "/v1/openapi.json", "").Want(http.StatusOK, "").Body, &document); err != nil {
		t.Fatal(err)
	}
	index, content, _ := strings.Cut(text, "<main")
	operations := 0
	for path, item := range document["paths"].(map[string]any) {
		for _, op := range item.(map[string]any) {
			operations++
			op := op.(map[string]any)
			anchor := "op-" + op["operationId"].(string)
			if !strings.Contains(index, `"#`+anchor+`"`) || !strings.Contains(content, `<h3 id="`+anchor+`"`) || !strings.Contains(content, path) {
				t.Errorf("%s of %s is missing", anchor, path)
			}
		}
	}
	for _, event := range models.AllEventTypes {
		if !strings.Contains(content, "<b>event</b> "+string(event)) {
			t.Errorf("the event %s is missing", event)
		}
	}
	for name := range document["components"].(map[string]any)["schemas"].(map[string]any) {
		if !strings.Contains(index, `"#schema-`+name+`"`) || !strings.Contains(content, `<h3 id="schema-`+name+`"`) {
			t.Errorf("the schema %s is missing", name)
		}
	}
	if last, prose := strings.LastIndex(content, `<h3 id="op-`), strings.Index(content, `id="conventions"`); last < 0 || prose < last {
		t.Error("the conventions are not after the operations")
	}
	t.Logf("%d operations, %d bytes", operations, len(text))
}

// The search needs no script: it is a form, and finds what has every word.
func TestDocsSearch(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	search := func(query string) string {
		t.Helper()
		return string(s.Send(http.MethodGet, "/docs?q="+url.QueryEscape(query), "").Want(http.StatusOK, "").Body)
	}
	for query, want := range map[string]string{
		"idempotency":           "docs#about-safe-retries",
		"cancel work order":     "docs#op-cancel-work-order",
		"ISSUE.RESOLVED":        "docs#op-on-issue-resolved",
		"sync_token":            "docs#about-syncing",
		"external_id feedback":  "docs#op-create-issue",
		"/work-orders/{id} GET": "docs#op-get-work-order",
		"check after a 410":     "docs/integrating#keep-a-copy",
		"hash_equals":           "docs/receiving-webhooks#check-the-signature",
		"last worker":           "docs/api#33-last-worker",
		"sunset":                "docs/versioning#how-something-ends",
	} {
		if found := search(query); !strings.Contains(found, `href="`+want+`"`) {
			t.Errorf("%q does not find %s", query, want)
		}
	}
	_, first, _ := strings.Cut(search("revoke"), `<ul class="found"><li>`)
	if !strings.HasPrefix(first, `<a href="docs#op-revoke-token"`) {
		t.Errorf("the first result is not the operation that is called so: %.80s", first)
	}
	hostile := search(`"><script>alert(1)</script> zzz`)
	if strings.Contains(hostile, "<script") || !strings.Contains(hostile, "Nothing here has all of these words") {
		t.Error("a search shows markup, or something is found")
	}
	if long := search(strings.Repeat("x", 5000)); strings.Contains(long, strings.Repeat("x", 101)) {
		t.Error("a long search is repeated whole")
	}
	text := search("idempotency")
	for _, link := range docsLinks.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(link[1], "#") && link[1] != "#content" {
			t.Errorf("%s has no target on the results page", link[1])
		}
	}
}
