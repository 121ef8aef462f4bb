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
	"millwright/models"
)

var (
	docsLinks = regexp.MustCompile(`(?:src|href|action)="([^"]*)"`)
	docsIDs   = regexp.MustCompile(` id="([^"]*)"`)
)

func TestDocsPageUsesOnlyThisServer(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	page := s.Send(http.MethodGet, "/docs", "").Want(http.StatusOK, "")
	if got := page.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("the page is %q", got)
	}
	policy := page.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script") || strings.Contains(policy, "unsafe") || strings.Contains(policy, ":") {
		t.Errorf("the policy is %q", policy)
	}
	text := string(page.Body)
	if strings.Contains(text, "<script") || strings.Contains(text, "style=") || regexp.MustCompile(` on[a-z]+=`).MatchString(text) {
		t.Error("the page has an inline script or style")
	}
	ids := map[string]int{}
	for _, id := range docsIDs.FindAllStringSubmatch(text, -1) {
		ids[id[1]]++
		if ids[id[1]] > 1 {
			t.Errorf("the id %q is there twice", id[1])
		}
	}
	for _, link := range docsLinks.FindAllStringSubmatch(text, -1) {
		path, fragment, _ := strings.Cut(html.UnescapeString(link[1]), "#")
		switch {
		case path == "" && ids[fragment] == 0:
			t.Errorf("nothing is at #%s", fragment)
		case strings.Contains(path, ":") || strings.HasPrefix(path, "/"):
			t.Errorf("%s leads elsewhere", path)
		case strings.HasPrefix(path, "docs/"):
			asset := s.Send(http.MethodGet, "/"+path, "").Want(http.StatusOK, "")
			s.Send(http.MethodGet, "/"+path, "", "If-None-Match", asset.Header.Get("ETag")).Want(http.StatusNotModified, "")
		}
	}
	s.Send(http.MethodGet, "/docs/page.html", "").Want(http.StatusNotFound, "not_found")
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
	for _, left := range []string{"`", "**", "](", "<no value>", "## "} {
		if strings.Contains(regexp.MustCompile(`(?s)<pre.*?</pre>`).ReplaceAllString(content, ""), left) {
			t.Errorf("the page shows Markdown: %q", left)
		}
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
