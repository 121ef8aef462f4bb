package console_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"millwright/console"
	"millwright/console/consoletest"
	"millwright/service/servicetest"
)

// lines is a log for tests.
type lines struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

var secretInPage = regexp.MustCompile(`<p class="secret">([^<]+)</p>`)

// A secret is in the response to the form that made it, and in no other page: not when the form is
// sent again, not where it leads, and not in the log.
func TestSecretsAreShownOnce(t *testing.T) {
	t.Parallel()
	log := &lines{}
	s := newGuardedSite(t, func(o *console.Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	v := s.signedInWith("bob", allBut("")...)
	s.Exec(`UPDATE integrations SET owners = ARRAY[$1]`, s.ID("bob"))
	makers := []string{
		"POST /console/people", "POST /console/people/:id/link", "POST /console/integrations", "POST /console/integrations/:id/secret",
		"POST /console/integrations/:id/webhooks", "POST /console/webhooks/:id/secret",
	}
	var secrets []string
	tried := 0
	for _, c := range routeCases {
		if c.method != http.MethodPost || c.anyone || c.grant == "" || strings.HasSuffix(c.path, "/delete") || strings.HasSuffix(c.path, "/off") {
			continue
		}
		page := s.try(v, c, "once"+url.QueryEscape(c.path)[:min(40, len(url.QueryEscape(c.path)))], nil)
		found := secretInPage.FindAllStringSubmatch(page.Body, -1)
		if want := slices.Contains(makers, c.String()); want != (len(found) > 0) {
			t.Errorf("%s shows %d secrets: %d\n%s", c, len(found), page.Status, page.Body)
		}
		if len(found) == 0 {
			continue
		}
		tried++
		if page.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached: %v", c, page.Header)
		}
		again := s.try(v, c, "once"+url.QueryEscape(c.path)[:min(40, len(url.QueryEscape(c.path)))], nil).Want(http.StatusOK, "This was shown once")
		for _, f := range found {
			if strings.HasPrefix(f[1], "cli_") { // the client id is no secret
				continue
			}
			secrets = append(secrets, f[1])
			if strings.Contains(again.Body, f[1]) {
				t.Errorf("%s shows its secret again", c)
			}
		}
	}
	if tried != len(makers) {
		t.Errorf("%d forms made secrets", tried)
	}
	for path, page := range crawl(t, v, everyPath) {
		for _, secret := range secrets {
			if strings.Contains(page.Body, secret) {
				t.Errorf("%s shows the secret %s", path, secret)
			}
		}
	}
	for _, secret := range secrets {
		_, token, _ := strings.Cut(secret, "/console/")
		if strings.Contains(log.String(), secret) || token != "" && strings.Contains(log.String(), token[strings.LastIndex(token, "/")+1:]) {
			t.Errorf("the log has the secret %s", secret)
		}
	}
}

// Every page has the headers that protect it, no cache keeps one, and no log line has a name, an e-mail address, a password or what was searched for.
func TestPagesAreNeitherCachedNorLogged(t *testing.T) {
	t.Parallel()
	log := &lines{}
	s := newGuardedSite(t, func(o *console.Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	grant(s.Site, "bob", allBut("")...)
	check := func(c routeCase, page consoletest.Page) {
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin",
		} {
			servicetest.Expect(t, c.String()+": "+name, page.Header.Get(name), want)
		}
	}
	v := s.SignedIn("bob")
	for i, c := range routeCases {
		check(c, s.try(s.NewVisitor(), c, "", nil))
		if c.path == "/console/sign-out" || strings.HasSuffix(c.path, "end-others") {
			continue
		}
		check(c, s.try(v, c, string(rune('a'+i%26))+strings.Repeat("k", 1+i/26), func(_ *string, query, form url.Values) {
			query.Set("q", "searched-text")
			for _, name := range []string{"name", "reason"} {
				if form.Has(name) {
					form.Set(name, "Entered Text")
				}
			}
		}))
	}
	s.Console.Wait()
	s.Exec(`DROP TABLE notices CASCADE`) // everything fails now, in a way that no one foresaw
	for _, c := range routeCases {
		s.try(v, c, "", nil)
	}
	s.Console.Wait()
	text := log.String()
	if !strings.Contains(text, "a page failed") || strings.Count(text, "msg=page ") < 2*len(routeCases) {
		t.Fatalf("the log has too little:\n%s", text)
	}
	for _, never := range []string{
		"example.com", "Bob", "Stone", "Ann", "Acme", "searched-text", "Entered", "wrong", "good+long", "good long", "another good", consoletest.Password, sessionOf(v), "127.0.0.1:9/other",
	} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, never) {
				t.Errorf("the log has %q: %s", never, line)
				break
			}
		}
	}
}
