// Package apitest calls the API as a client does and holds every request and
// every answer against the OpenAPI document.
package apitest

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"millwright/api"
	"millwright/service"
	"millwright/service/servicetest"
)

// Server is an API over HTTP on a fixture of its own.
type Server struct {
	*servicetest.Fixture
	URL      string
	Document *Document
	t        testing.TB
	mu       sync.Mutex
	tokens   map[string]string
}

// New starts a server that ends with the test.
func New(t testing.TB, adjust ...func(*service.Options)) *Server {
	t.Helper()
	f := servicetest.New(t, adjust...)
	handler, err := api.New(f.Service, api.Options{
		PublicURL: servicetest.Issuer, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := handler.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	document, err := ReadDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Server{Fixture: f, URL: server.URL, Document: document, t: t, tokens: map[string]string{}}
}

// Answer is what a call was answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	t      testing.TB
}

// Field returns a field of the body by its path, nil where there is none.
func (a Answer) Field(path ...string) any {
	a.t.Helper()
	var value any
	if err := json.Unmarshal(a.Body, &value); err != nil {
		a.t.Fatalf("the body is not JSON: %v\n%s", err, a.Body)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// Text returns a field that is a string, "" for any other.
func (a Answer) Text(path ...string) string {
	a.t.Helper()
	text, _ := a.Field(path...).(string)
	return text
}

// Want fails the test unless the answer has the status and, where given, the code.
func (a Answer) Want(status int, code string) Answer {
	a.t.Helper()
	if a.Status != status || code != "" && a.Text("code") != code {
		a.t.Fatalf("the answer is %d, want %d %s\n%s", a.Status, status, code, a.Body)
	}
	return a
}

// Token returns an access token of an integration of the fixture.
func (s *Server) Token(key string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if token, ok := s.tokens[key]; ok {
		return token
	}
	integration, ok := s.Acme.Integrations[key]
	if !ok {
		integration = s.Polar.Integrations[key]
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {integration.ClientID}, "client_secret": {integration.ClientSecret}}
	answer := s.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	s.tokens[key] = answer.Want(http.StatusOK, "").Text("access_token")
	return s.tokens[key]
}

// Forget throws the tokens away, so that the next calls get new ones.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// As makes a call with the token of an integration of the fixture. body is nil,
// a string sent as it is, or anything that is encoded as JSON. Headers are name,
// value, name, value.
func (s *Server) As(key, method, path string, body any, headers ...string) Answer {
	s.t.Helper()
	text := ""
	switch b := body.(type) {
	case nil:
	case string:
		text = b
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		text = string(encoded)
	}
	headers = append([]string{"Authorization", "Bearer " + s.Token(key)}, headers...)
	if text != "" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	return s.Send(method, "/v1"+path, text, headers...)
}

// Send makes a call just as given and checks it against the document.
func (s *Server) Send(method, path, body string, headers ...string) Answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.check(r, response, []byte(body), read)
	return Answer{Status: response.StatusCode, Header: response.Header, Body: read, t: s.t}
}

// check holds the call against the document and against what is true of every answer.
func (s *Server) check(r *http.Request, response *http.Response, sent, read []byte) {
	s.t.Helper()
	path, versioned := strings.CutPrefix(r.URL.Path, "/v1")
	if !versioned {
		return
	}
	if err := s.Document.CheckAnswer(r.Method, path, response, read); err != nil {
		s.t.Errorf("%v\n%s", err, read)
	}
	if response.StatusCode < 300 {
		if err := s.Document.CheckRequest(r, path, sent); err != nil {
			s.t.Error(err)
		}
	}
	for _, name := range []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if response.Header.Get(name) == "" {
			s.t.Errorf("%s %s: the answer has no %s", r.Method, r.URL.Path, name)
		}
	}
	if response.StatusCode >= 400 && !strings.HasPrefix(path, "/oauth/") {
		if !bytes.Contains(read, []byte(response.Header.Get("X-Request-Id"))) {
			s.t.Errorf("%s %s: the problem does not name the request's id", r.Method, r.URL.Path)
		}
	}
}
