package api_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millwright/api"
	"millwright/api/apitest"
	"millwright/service/servicetest"
	"millwright/service/storetest"
)

// raw sends bytes unchanged and returns the response's status, header and body.
func raw(t *testing.T, url, request string) (status int, header http.Header, body string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(conn, request) }() // a server may respond before it has read everything
	method, _, _ := strings.Cut(request, " ")
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no response: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(read)
}

func TestSlowAndOddBodies(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	// Only bodies that never end are sent to the impatient server.
	handler := api.New(s.Service, api.Options{
		PublicURL: servicetest.Issuer, BodyTimeout: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	impatient := httptest.NewServer(handler)
	t.Cleanup(impatient.Close)
	head := "POST /v1/work-orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + s.Token("erp") + "\r\n"
	for name, test := range map[string]struct {
		request string
		status  int
		text    string // in the body
	}{
		"a body that never arrives":      {head + "Content-Length: 10\r\n\r\n", 408, "request_timeout"},
		"a body that stops halfway":      {head + "Content-Length: 1000\r\n\r\n{\"title\":", 408, "request_timeout"},
		"a chunked body that stops":      {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"tit\r\n", 408, "request_timeout"},
		"a chunk with an invalid length": {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "invalid_request"},
		"a body with a large length":     {head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 2<<20, strings.Repeat(" ", 1<<20+1)), 413, "body_too_large"},
		"a number that is too large":     {head + "Content-Length: 19\r\n\r\n{\"title\":1e9999999}", 422, "too large or too long"},
		"a complete but empty object":    {head + "Content-Length: 2\r\n\r\n{}", 422, "validation_failed"},
		// Two parsers might see the ends of these in different places.
		"two lengths":                       {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400, ""},
		"an unknown encoding":               {head + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501, ""},
		"a length with a sign":              {head + "Content-Length: +2\r\n\r\n{}", 400, ""},
		"a space before the colon":          {head + "Content-Length : 2\r\n\r\n{}", 400, ""},
		"two hosts":                         {strings.Replace(head, "Host: x", "Host: x\r\nHost: y", 1) + "Content-Length: 2\r\n\r\n{}", 400, ""},
		"headers without an end":            {head + "X-A: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", 431, ""},
		"HEAD instead of GET, without body": {strings.Replace(head, "POST /v1/work-orders", "HEAD /v1/me", 1) + "Connection: close\r\n\r\n", 200, ""},
	} {
		url := s.URL
		if test.status == http.StatusRequestTimeout {
			url = impatient.URL
		}
		status, header, body := raw(t, url, test.request)
		if status != test.status || !strings.Contains(body, test.text) {
			t.Errorf("%s: the response is %d, want %d %s\n%s", name, status, test.status, test.text, body)
		}
		if err := apitest.CheckLimits(header); err != nil && test.text != "" { // net/http responds to some itself
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bodies that arrive slowly take no places among the calls of their organization, regardless of
// their number: its other calls, even of the same integration, do not wait.
func TestSlowBodiesTakeNoPlace(t *testing.T) {
	t.Parallel()
	s := apitest.New(t)
	head := "POST /v1/work-orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + s.Token("erp") + "\r\nContent-Length: 100\r\n\r\n{"
	const slow, places = 70, 64
	for range slow {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
	}
	servicetest.Await(t, "the bodies are being received, and those over the limit wait", func() bool { return s.Store.Receiving.Waiting() == slow-places })
	for _, integration := range []string{"erp", "reader"} {
		began := time.Now()
		want(t, "a call of "+integration, s.Send(http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+s.Token(integration)).Status, http.StatusOK)
		t.Logf("%s took %s", integration, time.Since(began))
		want(t, "calls that wait for a place", storetest.CallsWaiting(s.Store), 0)
	}
}
