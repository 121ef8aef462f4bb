package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"millwright/api"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// Server is an API over HTTP with its own fixture.
type Server struct {
	*servicetest.Fixture
	URL      string
	Document *Document
	t        testing.TB
	mu       sync.Mutex
	tokens   map[string]string
}

// New starts a server that ends with the test.
func New(t testing.TB, adjust ...func(*store.Options)) *Server {
	t.Helper()
	f := servicetest.New(t, adjust...)
	handler := api.New(f.Service, api.Options{
		PublicURL: servicetest.Issuer, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	document, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Server{Fixture: f, URL: server.URL, Document: document, t: t, tokens: map[string]string{}}
}

// parsed returns the document of all servers of a process. It is parsed once, because that
// takes longer than most tests.
var parsed = sync.OnceValues(func() (*Document, error) {
	text, err := api.Document()
	if err != nil {
		return nil, err
	}
	return ParseDocument(text)
})

// Response is the response to one call.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	t      testing.TB
}

// Field returns a field of the body by its path, nil if it is missing.
func (r Response) Field(path ...string) any {
	r.t.Helper()
	var value any
	if err := json.Unmarshal(r.Body, &value); err != nil {
		r.t.Fatalf("the body is not JSON: %v\n%s", err, r.Body)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// Text returns a string field of the body by its path, "" for other values.
func (r Response) Text(path ...string) string {
	r.t.Helper()
	text, _ := r.Field(path...).(string)
	return text
}

// Want fails the test unless the response has the status and the code; "" is any code.
func (r Response) Want(status int, code string) Response {
	r.t.Helper()
	if r.Status != status || code != "" && r.Text("code") != code {
		r.t.Fatalf("the response is %d, want %d %s\n%s", r.Status, status, code, r.Body)
	}
	return r
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
	response := s.Send(http.MethodPost, "/v1/oauth/token", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	s.tokens[key] = response.Want(http.StatusOK, "").Text("access_token")
	return s.tokens[key]
}

// ForgetTokens makes the next calls get new tokens.
func (s *Server) ForgetTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// As makes a call with the token of an integration of the fixture. body is nil, a
// string to send unchanged, or a value to encode as JSON. headers are pairs of name
// and value.
func (s *Server) As(key, method, path string, body any, headers ...string) Response {
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

// Send makes a call with no other headers and checks it against the document.
func (s *Server) Send(method, path, body string, headers ...string) Response {
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
	received, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.check(r, response, []byte(body), received)
	return Response{Status: response.StatusCode, Header: response.Header, Body: received, t: s.t}
}

// check checks the call against the document, and what every response must have.
func (s *Server) check(r *http.Request, response *http.Response, sent, received []byte) {
	s.t.Helper()
	path, versioned := strings.CutPrefix(r.URL.Path, "/v1")
	if !versioned {
		return
	}
	if err := s.Document.CheckResponse(r.Method, path, response, received); err != nil {
		s.t.Errorf("%v\n%s", err, received)
	}
	if response.StatusCode < 300 {
		if err := s.Document.CheckRequest(r, path, sent); err != nil {
			s.t.Error(err)
		}
	}
	if err := CheckLimits(response.Header); err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	if response.StatusCode >= 400 && !strings.HasPrefix(path, "/oauth/") {
		if !bytes.Contains(received, []byte(response.Header.Get("X-Request-Id"))) {
			s.t.Errorf("%s %s: the problem does not contain the request id", r.Method, r.URL.Path)
		}
	}
}

// CheckLimits returns an error unless a response has the headers of every response (api.md 4.12).
func CheckLimits(header http.Header) error {
	number := func(name string) int {
		n, err := strconv.Atoi(header.Get(name))
		if err != nil || len(header.Values(name)) != 1 {
			return -1
		}
		return n
	}
	limit, remaining, reset := number("X-RateLimit-Limit"), number("X-RateLimit-Remaining"), number("X-RateLimit-Reset")
	if limit < 1 || remaining < 0 || remaining > limit || reset < 1 || reset > 60 || len(header.Values("X-Request-Id")) != 1 {
		return fmt.Errorf("the headers are %v", header)
	}
	return nil
}
