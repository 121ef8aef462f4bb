package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millwright/webhook"
)

func TestPercentile(t *testing.T) {
	hundred := waits{}
	for n := 100; n > 0; n-- { // calls do not end in the order of their times
		hundred = append(hundred, time.Duration(n))
	}
	for _, test := range []struct {
		name string
		of   waits
		p    float64
		want time.Duration
	}{
		{"half of a hundred", hundred, 50, 50},
		{"95 of a hundred", hundred, 95, 95},
		{"99 of a hundred", hundred, 99, 99},
		{"all of a hundred", hundred, 100, 100},
		{"the next greater if none fits", waits{1, 2, 3}, 50, 2},
		{"99 of three", waits{1, 2, 3}, 99, 3},
		{"the smallest", waits{7, 9}, 0, 7},
		{"of one", waits{7}, 99, 7},
		{"of none", nil, 99, 0},
	} {
		if got := test.of.percentile(test.p); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("a percentile changes the order of what was measured")
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		of   []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{5}, 5}} {
		if got := median(test.of); got != test.want {
			t.Errorf("the median of %v is %v, want %v", test.of, got, test.want)
		}
	}
}

func TestWaitingForACallerCounts(t *testing.T) {
	due := time.Unix(100, 0)
	late := due.Add(30 * time.Millisecond)
	if got := startOfCall(due, late, late); got != due {
		t.Error("a call that waited for a caller counts from when it was sent, want from when it was due")
	}
	woken := due.Add(time.Millisecond)
	if got := startOfCall(due, due.Add(-time.Second), woken); got != woken {
		t.Error("a call whose caller was free counts from when it was due, want from when it was sent")
	}
}

func TestBusyMakesEveryCallOnce(t *testing.T) {
	var made atomic.Int64
	count := operation{"count", func(*tenant, *caller) error {
		made.Add(1)
		return nil
	}}
	started := time.Now()
	if w := (&tenant{}).busy(count, 10_000, 50*time.Millisecond, 0); len(w) != 500 || made.Load() != 500 {
		t.Errorf("%d calls were made and %d timed, want the 500 that are due in 50 ms at 10,000/s", made.Load(), len(w))
	}
	if took := time.Since(started); took < 49*time.Millisecond {
		t.Errorf("calls of 50 ms were made in %s", took)
	}
}

func TestFailedCallsCountAsSlow(t *testing.T) {
	fails := operation{"fails", func(*tenant, *caller) error { return errors.New("a 503 comes fast") }}
	if got := (&tenant{}).busy(fails, 100, 100*time.Millisecond, quietLimit).percentile(0); got != quietLimit {
		t.Errorf("a failed call took %s, want %s", got, quietLimit)
	}
}

func TestRatios(t *testing.T) {
	r := &report{}
	r.add("baseline", 200, "/s")
	r.compare("ours", 130, "/s", "baseline")
	r.compare("lost", 1, "/s", "nothing")
	if f := r.figures[1]; f.ratio != 0.65 || f.to != "baseline" {
		t.Errorf("the ratio is %v to %q, want 0.65 to the baseline", f.ratio, f.to)
	}
	if f := r.figures[2]; f.ratio != 0 || f.to != "" {
		t.Errorf("the ratio to a missing figure is %v, want none", f.ratio)
	}
	var b bytes.Buffer
	r.print(&b)
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); !strings.HasSuffix(lines[len(lines)-2], "0.65   baseline") {
		t.Errorf("the table is\n%s", b.String())
	}
}

func TestRoundsAreComparedOneByOne(t *testing.T) {
	next := func(rates ...int) func() measured {
		return func() measured {
			rate := rates[0]
			rates = rates[1:]
			return measured{n: rate, took: time.Second}
		}
	}
	in := &installation{bench: &bench{report: &report{}}}
	// During the third round the machine was busy with something else.
	rate := in.alternate("ours", "baseline", next(60, 50, 5), next(100, 100, 10))
	of := in.figures[len(in.figures)-2]
	if rate != 50 || of.name != "ours" || of.value != 50 || of.ratio != 0.5 || of.to != "baseline" {
		t.Errorf("%v a second, of %+v; want 50 and the ratio 0.5", rate, of)
	}
}

func TestUsage(t *testing.T) {
	before := usage{"api": 1, "worker": 9}
	used := usage{"api": 3, "worker": 1}.since(before) // the worker was restarted
	if used["api"] != 2 || used["worker"] != 0 {
		t.Errorf("used is %v", used)
	}
	r := &report{}
	r.addCPU("calls", measured{n: 500, used: used}, measured{n: 500, used: used})
	if f := r.figures[0]; len(r.figures) != 2 || f.name != "calls: CPU of api" || f.value != 4 || r.figures[1].value != 4 {
		t.Errorf("the figures are %v", r.figures)
	}
}

// answering returns a caller whose connection answers each request with the next
// text.
func answering(t *testing.T, answers ...string) *caller {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request := make([]byte, 4096)
		for _, response := range answers {
			if _, err := conn.Read(request); err != nil {
				return
			}
			io.WriteString(conn, response)
		}
	}()
	c := newCaller(&tenant{Address: listener.Addr().String(), Token: "token"})
	t.Cleanup(c.close)
	return c
}

func TestCallerReadsResponses(t *testing.T) {
	c := answering(t,
		"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nETag: x\r\n\r\nfirst",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3\r\nond\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthird",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
		"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort")
	for _, want := range []string{"first", "second", "third"} {
		if err := c.get("/x"); err != nil || c.body.String() != want {
			t.Fatalf("the response is %q, %v, want %q", c.body.String(), err, want)
		}
	}
	if err := c.get("/x"); err == nil || err.Error() != "GET /v1/x returned 404: none" {
		t.Errorf("a 404 is reported as %v", err)
	}
	if err := c.get("/x"); err == nil {
		t.Error("a truncated response is accepted")
	}
	if c.conn != nil {
		t.Error("the broken connection is kept")
	}
}

// A call of a peer has its own body, and fails unless the status is 2xx.
func TestPeerCalls(t *testing.T) {
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/nothing" {
			w.WriteHeader(http.StatusNotFound)
		}
		body, _ := io.ReadAll(r.Body)
		seen[r.Method+" "+string(body)] = true
	}))
	defer server.Close()
	c := newCaller(&tenant{Address: strings.TrimPrefix(server.URL, "http://")})
	defer c.close()
	for range 2 {
		if err := peerCall(http.MethodPost, "/records", `{"title":"{id}"}`)(nil, c); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 2 || seen[`POST {"title":"{id}"}`] {
		t.Errorf("the server got %v, want two with other titles", seen)
	}
	if err := peerCall(http.MethodGet, "/nothing", "")(nil, c); err == nil {
		t.Error("a 404 is no error")
	}
}

func TestDeliveriesAreCountedOnce(t *testing.T) {
	r := listenForDeliveries()
	defer r.server.Close()
	made := change{"wo_1", "2026-01-01T00:00:00Z"}
	deliver := func(path string) {
		body := `{"created_at":"` + made.at + `","work_order":{"id":"` + made.workOrder + `"}}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(webhook.HeaderEventID, "evt_1")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNoContent {
			t.Errorf("the response is %s", response.Status)
		}
	}
	responded := time.Now()
	deliver("/1")
	deliver("/2")
	deliver("/2")
	if len(r.seen) != 2 {
		t.Errorf("%d deliveries arrived, want 2", len(r.seen))
	}
	if w := r.waits(map[change]time.Time{made: responded}); len(w) != 1 || w[0] <= 0 || w[0] > time.Minute {
		t.Errorf("the delivery took %v", w)
	}
}

func TestConsolePages(t *testing.T) {
	found := map[string]any{}
	for _, name := range []string{"integration", "webhook", "delivered", "failed", "changed", "person", "work_order", "feedback"} {
		found[name] = "some_" + name
	}
	pages := consolePages(found, time.Now())
	persons := map[string]int{}
	for _, page := range pages {
		persons[page.person]++
		if _, known := pageAims[page.kind]; !known && page.kind != "file" || strings.Contains(page.path, "{{") || !strings.HasPrefix(page.path, "/console") {
			t.Errorf("the page is %+v", page)
		}
	}
	if persons["few"] != persons["one"] || persons["few"] == 0 || persons["admin"] <= persons["few"] || persons["member"] == 0 {
		t.Errorf("the numbers of pages by person are %v", persons)
	}
}
