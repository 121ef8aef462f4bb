package consoletest

import (
	"context"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"millwright/console"
	"millwright/service"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Password is the password of every person of a site.
const Password = "correct horse battery"

// passwordHash is a hash of Password with the memory that services of tests take.
const passwordHash = "$argon2id$v=19$m=64,t=2,p=1$c2FsdCBvZiB0aGUgdGVzdA$x+/bRk4Yx6n3+9MFdiy6bgHBJjm83pOFjrzJpBAcn8E"

// Site is a console with its own database.
type Site struct {
	*servicetest.Fixture
	// Console is what URL serves.
	Console *console.Console
	URL     string
	t       testing.TB
}

// NewSite serves a console until the test ends. adjust may change its options.
func NewSite(t testing.TB, adjust ...func(*console.Options)) *Site {
	t.Helper()
	return On(t, servicetest.New(t), adjust...)
}

// On is NewSite on a fixture of the test.
func On(t testing.TB, f *servicetest.Fixture, adjust ...func(*console.Options)) *Site {
	t.Helper()
	s := &Site{Fixture: f, t: t}
	s.Console, s.URL = s.Serve(s.Service, adjust...)
	s.Exec(`UPDATE people SET password_hash = $1, password_private = true`, passwordHash)
	return s
}

// Serve serves a console on the service, as another process would, and returns its URL.
func (s *Site) Serve(svc *service.Service, adjust ...func(*console.Options)) (served *console.Console, at string) {
	s.t.Helper()
	server := httptest.NewUnstartedServer(nil)
	options := console.Options{
		PublicURL: "http://" + server.Listener.Addr().String(), RequestTimeout: 25 * time.Second, Log: slog.New(slog.DiscardHandler), Now: s.Clock.Now,
	}
	for _, a := range adjust {
		a(&options)
	}
	c, err := console.New(svc, options)
	if err != nil {
		s.t.Fatal(err)
	}
	server.Config.Handler = c
	server.Start()
	s.t.Cleanup(server.Close)
	return c, server.URL
}

// Viewer returns a person of the fixture as an actor.
func (s *Site) Viewer(key string) store.Actor {
	s.t.Helper()
	actor, err := s.Access.PersonActor(s.t.Context(), s.ID(key))
	if err != nil {
		s.t.Fatal(err)
	}
	return actor
}

// Must fails the test if a write failed, and returns the id of its record.
func (s *Site) Must(result store.WriteResult, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("the write fails: %v", err)
	}
	return result.RecordID
}

// WantRows fails the test unless there are as many rows: a table and a condition.
func (s *Site) WantRows(want int, from string, args ...any) {
	s.t.Helper()
	if n := servicetest.Value[int](s.Fixture, `SELECT count(*) FROM `+from, args...); n != want {
		s.t.Errorf("%d rows of %s, want %d", n, from, want)
	}
}

// Visitor is a browser without scripts and pictures: an HTTP client with cookies.
type Visitor struct {
	*http.Client
	// URL is the console's.
	URL string
	t   testing.TB
}

// NewVisitor returns a visitor who is not signed in. It does not follow redirects.
func (s *Site) NewVisitor() *Visitor { s.t.Helper(); return Visit(s.t, s.URL) }

// Visit returns a visitor of the console at a URL, who is not signed in.
func Visit(t testing.TB, at string) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	// Compressing pages takes longer than sending them to the same machine.
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	return &Visitor{client, at, t}
}

// At returns the visitor with another console, by its URL: cookies do not name ports.
func (v *Visitor) At(at string) *Visitor {
	other := *v
	other.URL = at
	return &other
}

// SignedIn returns a visitor who is signed in as a person of the fixture.
func (s *Site) SignedIn(key string) *Visitor {
	s.t.Helper()
	v := s.NewVisitor()
	at, err := url.Parse(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	v.Jar.SetCookies(at, []*http.Cookie{{Name: sessionCookie, Value: servicetest.Session(s.Fixture, key)}})
	return v
}

// sessionCookie has the token of a session.
const sessionCookie = "session"

// Page is the response to a request.
type Page struct {
	Status int
	Header http.Header
	Body   string
	t      testing.TB
}

// Get requests a page.
func (v *Visitor) Get(path string) Page { return v.Do(http.MethodGet, path, nil) }

// Post sends a form, as the console's pages do.
func (v *Visitor) Post(path string, form url.Values) Page { return v.Do(http.MethodPost, path, form) }

// Do makes a request. headers are pairs of name and value.
func (v *Visitor) Do(method, path string, form url.Values, headers ...string) Page {
	v.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(v.t.Context()), method, v.URL+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := v.Client.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return Page{response.StatusCode, response.Header, string(text), v.t}
}

// Want fails the test unless the page has the status and contains all of the strings, as
// they are in HTML.
func (p Page) Want(status int, want ...string) Page {
	p.t.Helper()
	if p.Status != status {
		p.t.Fatalf("the status is %d, want %d\n%s", p.Status, status, p.Body)
	}
	for _, text := range want {
		if !strings.Contains(p.Body, text) {
			p.t.Fatalf("the page lacks %q:\n%s", text, p.Body)
		}
	}
	return p
}

// WantRedirect fails the test unless the response redirects to the URL with the status 303.
func (p Page) WantRedirect(to string) {
	p.t.Helper()
	if got := p.Want(http.StatusSeeOther).Location(); got != to {
		p.t.Errorf("it redirects to %s, want %s", got, to)
	}
}

// Location is where a redirect leads.
func (p Page) Location() string { return p.Header.Get("Location") }

// Done is the key of the message that the next page shows, "" if it shows no message.
func (p Page) Done() string {
	for _, set := range p.Header.Values("Set-Cookie") {
		if cookie, err := http.ParseSetCookie(set); err == nil && cookie.Name == "done" {
			return cookie.Value
		}
	}
	return ""
}

var hiddenInput = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`)

// Form returns the hidden fields of the page's last form with them, and the given pairs
// of name and value.
func (p Page) Form(pairs ...string) url.Values {
	p.t.Helper()
	form := url.Values{}
	for _, found := range hiddenInput.FindAllStringSubmatch(p.Body, -1) {
		form.Set(found[1], html.UnescapeString(found[2]))
	}
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return form
}
