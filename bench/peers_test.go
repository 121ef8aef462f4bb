package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A call of a peer has the headers and its own body, and fails unless the status is 2xx.
func TestPeerCalls(t *testing.T) {
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		seen[r.Method+" "+r.URL.Path+" "+string(body)] = true
	}))
	defer server.Close()
	o := peerOptions{headers: []string{"Authorization: Bearer key"}}
	call := func(o peerOptions, method, body string) error {
		address, op, err := o.operation("call", method, server.URL+"/records", body)
		if err != nil {
			t.Fatal(err)
		}
		c, err := dial(t.Context(), address, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		return op.call(nil, c)
	}
	const body = `{"title":"{id}"}`
	for _, err := range []error{call(o, http.MethodGet, ""), call(o, http.MethodPost, body), call(o, http.MethodPost, body)} {
		if err != nil {
			t.Error(err)
		}
	}
	created := 0
	for what := range seen {
		if title, found := strings.CutPrefix(what, `POST /records {"title":"`); found && strings.HasSuffix(title, `"}`) && !strings.Contains(title, "{id}") {
			created++
		}
	}
	if !seen["GET /records "] || created != 2 || len(seen) != 3 {
		t.Errorf("the calls are %v, want a GET and two POST with different titles", seen)
	}
	if err := call(peerOptions{}, http.MethodGet, ""); err == nil || !strings.Contains(err.Error(), "returned 401") {
		t.Errorf("without the key: %v", err)
	}
}

func TestPeerOptions(t *testing.T) {
	for _, test := range []struct {
		name    string
		only    string
		options peerOptions
		want    string
	}{
		{"reads", "peers", peerOptions{read: "http://localhost:8090/records/1"}, ""},
		{"reads and creations", "calls,peers", peerOptions{read: "http://localhost/records/1", create: "http://localhost/records"}, ""},
		{"no peer, other parts", "calls", peerOptions{}, ""},
		{"no peer, all parts", "", peerOptions{}, ""},
		{"no peer", "calls,peers", peerOptions{}, "-only peers needs -peer-read or -peer-create URL"},
		{"https", "peers", peerOptions{read: "https://localhost/records/1"}, "-peer-read must be an http:// URL"},
		{"a path alone", "peers", peerOptions{create: "/records"}, "-peer-create must be an http:// URL"},
		{"a missing file", "peers", peerOptions{create: "http://localhost/records", createBody: "@does-not-exist"}, "-peer-create-body: open does-not-exist: no such file or directory"},
	} {
		got := ""
		if err := test.options.check(test.only); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	var o peerOptions
	for _, header := range []string{"no colon", ": no name", "A: b\r\nC: d"} {
		if o.addHeader(header) == nil {
			t.Errorf("the header %q is accepted", header)
		}
	}
}
