package console_test

import (
	"net/http"
	"regexp"
	"testing"

	"millwright/console/consoletest"
)

var loaded = regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]+)"`)

// The first visit weighs at most 60 KiB in at most five requests, a later page at most 20
// KiB in one. Assets are kept forever.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	s := consoletest.NewSite(t)
	v := s.SignedIn("ann")
	weigh := func(path string) (int, consoletest.Page) {
		packed := v.Do(http.MethodGet, path, nil, "Accept-Encoding", "gzip").Want(http.StatusOK)
		if packed.Header.Get("Content-Encoding") != "gzip" && len(packed.Body) > 1024 {
			t.Errorf("%s is not compressed", path)
		}
		return len(packed.Body), packed
	}
	assets := map[string]bool{}
	for _, found := range loaded.FindAllStringSubmatch(v.Get("/console").Want(http.StatusOK).Body, -1) {
		assets[found[1]] = true
	}
	first, _ := weigh("/console")
	for path := range assets {
		size, page := weigh(path)
		first += size
		if page.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" || page.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %v", path, page.Header)
		}
	}
	if first > 60<<10 || len(assets)+1 > 5 {
		t.Errorf("the first visit takes %d bytes in %d requests", first, len(assets)+1)
	}
	t.Logf("the first visit: %d bytes in %d requests", first, len(assets)+1)
	for _, path := range []string{"/console/account", "/console/people", "/console/people/" + s.ID("bob"), "/console/log", "/console/notices"} {
		size, _ := weigh(path)
		if size > 20<<10 {
			t.Errorf("%s takes %d bytes", path, size)
		}
		t.Logf("%s: %d bytes", path, size)
	}
}
