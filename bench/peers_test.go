package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startPeer starts a webhook system that delivers each event to the sink's addresses.
// wrap makes a delivery of an event's body.
func startPeer(t *testing.T, sink *receiver, addresses int, wrap func(event []byte) (*http.Request, error)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		go func() {
			for n := range addresses {
				delivery, err := wrap(event)
				if err != nil {
					t.Error(err)
					return
				}
				delivery.URL.Host, delivery.URL.Path = sink.listener.Addr().String(), "/"+strconv.Itoa(n)
				response, err := http.DefaultClient.Do(delivery)
				if err != nil {
					return // the test has ended
				}
				response.Body.Close()
			}
		}()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func inEnvelope(event []byte) (*http.Request, error) {
	return http.NewRequest(http.MethodPost, "http://sink", bytes.NewReader([]byte(`{"type":"a","data":`+string(event)+`}`)))
}

// inHeader delivers only the event's id.
func inHeader(event []byte) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodPost, "http://sink", http.NoBody)
	request.Header.Set("X-Event-Id", textAfter(event, `"id":"`))
	return request, err
}

func TestPeersAreCompared(t *testing.T) {
	var sides [2]contender
	for n, wrap := range []func([]byte) (*http.Request, error){inEnvelope, inHeader} {
		sink, err := listenForDeliveries(t.Context(), "127.0.0.1:0", identifyPeerDelivery)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sink.close)
		o := peerOptions{body: `{"id":"{id}"}`, headers: headerFlags{"Authorization: Bearer key"}, addresses: 2}
		o.url = startPeer(t, sink, o.addresses, wrap)
		p, err := o.publisher(t.Context(), sink, func() usage { return usage{"bench": time.Second} })
		if err != nil {
			t.Fatal(err)
		}
		sides[n] = contender{[]string{"envelope", "header"}[n], p}
	}
	r := &report{}
	err := runPart(t.Context(), r, options{seconds: 0.1}, func(b *bench) { comparePublishers(b, sides, func() {}) })
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]figure{}
	for _, f := range r.Figures {
		found[f.Name] = f
	}
	const rate = ", 2 of its addresses: from first call to last delivery"
	if f := found["header"+rate]; f.Value <= 0 || f.Ratio <= 0 || f.To != "envelope"+rate || f.High < f.Low {
		t.Errorf("the rate is compared as %+v", f)
	}
	if f := found["envelope, 2 of its addresses: idle: response to receiver, p50"]; f.Unit != "ms" {
		t.Errorf("the latency is missing: %v", r.Figures)
	}
}

func TestPeerThatRejectsEvents(t *testing.T) {
	sink, err := listenForDeliveries(t.Context(), "127.0.0.1:0", identifyPeerDelivery)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sink.close)
	o := peerOptions{url: startPeer(t, sink, 1, inEnvelope), body: "{id}", addresses: 1}
	p, err := o.publisher(t.Context(), sink, func() usage { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt(func() { p.flood(time.Minute) }); err == nil || !strings.Contains(err.Error(), "returned 401") {
		t.Errorf("the error is %v", err)
	}
}

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
	o := peerOptions{headers: headerFlags{"Authorization: Bearer key"}}
	call := func(o peerOptions, method, id string) error {
		target, err := o.target(method, server.URL+"/records")
		if err != nil {
			t.Fatal(err)
		}
		c, err := dial(t.Context(), target.address, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		body := ""
		if method == http.MethodPost {
			body = `{"title":"{id}"}`
		}
		return target.call(c, body, id)
	}
	for _, err := range []error{call(o, http.MethodGet, ""), call(o, http.MethodPost, "a"), call(o, http.MethodPost, "b")} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{"GET /records ", `POST /records {"title":"a"}`, `POST /records {"title":"b"}`} {
		if !seen[want] {
			t.Errorf("%q was not called: %v", want, seen)
		}
	}
	if err := call(peerOptions{}, http.MethodGet, ""); err == nil || !strings.Contains(err.Error(), "returned 401") {
		t.Errorf("without the key: %v", err)
	}
}

func TestPeerOptions(t *testing.T) {
	good := peerOptions{url: "http://localhost:3333/events", body: `{"id":"{id}"}`, addresses: 1}
	for _, test := range []struct {
		name   string
		only   string
		change func(*peerOptions)
		want   string
	}{
		{"a peer", "peers", func(*peerOptions) {}, ""},
		{"no peer, other parts", "calls", func(o *peerOptions) { o.url = "" }, ""},
		{"no peer, all parts", "", func(o *peerOptions) { o.url = "" }, ""},
		{"no peer", "calls,peers", func(o *peerOptions) { o.url = "" }, "-only peers needs -peer, -peer-read or -peer-create URL"},
		{"reads alone", "peers", func(o *peerOptions) { o.url, o.body, o.read = "", "", "http://localhost:8090/records/1" }, ""},
		{"creations at a path alone", "peers", func(o *peerOptions) { o.create = "/records" }, "-peer-create must be an http:// URL"},
		{"https", "peers", func(o *peerOptions) { o.url = "https://localhost/events" }, "-peer must be an http:// URL"},
		{"a path alone", "peers", func(o *peerOptions) { o.url = "/events" }, "-peer must be an http:// URL"},
		{"events that cannot be told apart", "peers", func(o *peerOptions) { o.body = "{}" }, "-peer-body must contain {id}"},
		{"a missing file", "peers", func(o *peerOptions) { o.body = "@does-not-exist" }, "-peer-body: open does-not-exist: no such file or directory"},
		{"too many addresses", "peers", func(o *peerOptions) { o.addresses = 6 }, "-peer-addresses must be 1 to 5"},
	} {
		o := good
		test.change(&o)
		got := ""
		if err := o.check(test.only); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	var headers headerFlags
	for _, header := range []string{"no colon", ": no name", "A: b\r\nC: d"} {
		if headers.Set(header) == nil {
			t.Errorf("the header %q is accepted", header)
		}
	}
}

func TestPeerIDs(t *testing.T) {
	for text, want := range map[string]string{
		`{"data":{"id":"millwrightbenchAB12","n":1}}`: "millwrightbenchAB12",
		"millwrightbenchAB12":                         "millwrightbenchAB12",
		`{"id":"evt_1"}`:                              "",
		"":                                            "",
	} {
		if got := peerID([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
