package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"millwright/api/apitest"
)

func TestDocsPageUsesOnlyThisServer(t *testing.T) {
	s := apitest.New(t)
	page := s.Send(http.MethodGet, "/docs", "").Want(http.StatusOK, "")
	if got := page.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("the page is %q", got)
	}
	policy := page.Header.Get("Content-Security-Policy")
	for directive := range strings.SplitSeq(policy, ";") {
		for _, source := range strings.Fields(directive)[1:] {
			if source != "'none'" && source != "'self'" && source != "data:" {
				t.Errorf("the policy allows %s in %q", source, directive)
			}
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(string(page.Body), -1)
	if len(links) < 4 {
		t.Fatalf("the page has %d links:\n%s", len(links), page.Body)
	}
	for _, link := range links {
		if strings.Contains(link[1], ":") || strings.HasPrefix(link[1], "/") {
			t.Errorf("%s leads elsewhere", link[1])
			continue
		}
		asset := s.Send(http.MethodGet, "/"+link[1], "").Want(http.StatusOK, "")
		if len(asset.Body) == 0 {
			t.Errorf("%s is empty", link[1])
		}
		if strings.HasPrefix(link[1], "docs/") {
			s.Send(http.MethodGet, "/"+link[1], "", "If-None-Match", asset.Header.Get("ETag")).Want(http.StatusNotModified, "")
		}
	}
	s.Send(http.MethodGet, "/docs/README.md", "").Want(http.StatusNotFound, "not_found")
}
