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
)

// raw sends bytes as they are and returns the answer's status and body.
func raw(t *testing.T, url, request string) (status int, body string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

func TestSlowAndOddBodies(t *testing.T) {
	s := apitest.New(t)
	handler, err := api.New(s.Service, api.Options{
		PublicURL: servicetest.Issuer, BodyTimeout: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	head := "POST /v1/work-orders HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + s.Token("erp") + "\r\n"
	for name, test := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"a body that never comes":           {head + "Content-Length: 10\r\n\r\n", 408, "request_timeout"},
		"a body that stops halfway":         {head + "Content-Length: 1000\r\n\r\n{\"title\":", 408, "request_timeout"},
		"a chunked body that stops":         {head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"tit\r\n", 408, "request_timeout"},
		"a chunk of no length":              {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "invalid_request"},
		"a large body that was announced":   {head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", 2<<20, strings.Repeat(" ", 1<<20+1)), 413, "body_too_large"},
		"a number beyond all bounds":        {head + "Content-Length: 19\r\n\r\n{\"title\":1e9999999}", 400, "beyond all bounds"},
		"a complete but almost empty body":  {head + "Content-Length: 2\r\n\r\n{}", 422, "validation_failed"},
		"HEAD instead of GET, without body": {strings.Replace(head, "POST /v1/work-orders", "HEAD /v1/me", 1) + "Connection: close\r\n\r\n", 200, ""},
	} {
		status, body := raw(t, server.URL, test.request)
		if status != test.status || !strings.Contains(body, test.code) {
			t.Errorf("%s is answered %d, want %d %s\n%s", name, status, test.status, test.code, body)
		}
	}
}
