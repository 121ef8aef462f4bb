package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{5}, 5}, {nil, 0}} {
		if got := median(test.of); got != test.want {
			t.Errorf("the median of %v is %v, want %v", test.of, got, test.want)
		}
	}
}

func TestScheduleDoesNotWaitForResponses(t *testing.T) {
	plan := newPacer(400, 2500*time.Millisecond)
	if plan.calls != 1000 {
		t.Errorf("%d calls are due in 2.5 s, want 1000", plan.calls)
	}
	for n, want := range map[int64]time.Duration{0: 0, 1: 2500 * time.Microsecond, 400: time.Second, 1000: 2500 * time.Millisecond} {
		if got := plan.due(n).Sub(plan.first); got != want {
			t.Errorf("call %d is due after %s, want %s", n, got, want)
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

func TestRatios(t *testing.T) {
	r := &report{}
	r.add("baseline", 200, "/s")
	f := r.compare("ours", 130, "/s", "baseline")
	f.Aim = 0.6
	if f.Ratio != 0.65 {
		t.Errorf("the ratio is %v, want 0.65", f.Ratio)
	}
	if got, want := strings.Join(f.notes(), "; "), "aim 0.60: met"; got != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
	f.Aim = 0.7
	if got := f.notes()[0]; got != "aim 0.70: not met" {
		t.Errorf("for an aim of 0.70 the note is %q", got)
	}
	f.Limit = 0.65
	if got := f.notes()[1]; got != "at most 0.65: met" {
		t.Errorf("for a limit of 0.65 the note is %q", got)
	}
	f.Limit = 0.6
	if got := f.notes()[1]; got != "at most 0.60: not met" {
		t.Errorf("for a limit of 0.60 the note is %q", got)
	}
	if got := r.compare("lost", 1, "/s", "nothing").Ratio; got != 0 {
		t.Errorf("the ratio to a missing figure is %v, want 0", got)
	}
}

func TestRoundsAreComparedOneByOne(t *testing.T) {
	r := &report{}
	// During the third round the machine was busy with something else.
	f := r.compareRounds("ours", []float64{60, 50, 5}, []float64{100, 100, 10}, "/s", "baseline")
	if f.Value != 50 || f.Ratio != 0.5 || f.Low != 0.5 || f.High != 0.6 {
		t.Errorf("value %v, ratio %v from %v to %v; want 50, 0.5 from 0.5 to 0.6", f.Value, f.Ratio, f.Low, f.High)
	}
}

func TestGrowthIsComparedWithTheSmallest(t *testing.T) {
	r := &report{}
	r.grown("read", 10, 10, "things", 4, "ms")
	r.grown("read", 1000, 10, "things", 5, "ms")
	if f := r.Figures[1]; f.Name != "read, at 1000 things" || f.To != "read, at 10 things" || f.Ratio != 1.25 {
		t.Errorf("%q is %v of %q", f.Name, f.Ratio, f.To)
	}
}

func TestUsage(t *testing.T) {
	before := usage{"api": time.Second, "worker": 9 * time.Second, others: time.Second}
	now := usage{"api": 3 * time.Second, "worker": time.Second, others: 2 * time.Second}
	used := now.since(before) // the worker was restarted
	if used["api"] != 2*time.Second || used["worker"] != 0 {
		t.Errorf("used is %v", used)
	}
	if sum := used.plus(used); sum["api"] != 4*time.Second || sum[others] != 2*time.Second {
		t.Errorf("the sum is %v", sum)
	}
	r := &report{}
	if sum := used.report(r, "calls", 500); sum != 4 {
		t.Errorf("the sum without everything else is %v, want 4", sum)
	}
	want := map[string]float64{"calls: CPU of api": 4, "calls: CPU of all these": 4, "calls: CPU of everything else": 2}
	for _, f := range r.Figures {
		if want[f.Name] != f.Value {
			t.Errorf("%s is %v, want %v", f.Name, f.Value, want[f.Name])
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
}

func TestGauge(t *testing.T) {
	text := []byte("# HELP heap_x a\nheap_x_more 3\nheap_x 1.5e+06\n")
	if got := gauge(text, "heap_x"); got != 1.5e6 {
		t.Errorf("the gauge is %v, want 1500000", got)
	}
	if got := gauge(text, "absent"); got != 0 {
		t.Errorf("an absent gauge is %v, want 0", got)
	}
}

// answering returns a caller whose connection answers each request with the next
// text.
func answering(t *testing.T, answers ...string) *caller {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	go func() {
		request := make([]byte, 4096)
		for _, response := range answers {
			if _, err := theirs.Read(request); err != nil {
				return
			}
			io.WriteString(theirs, response)
		}
		theirs.Close()
	}()
	c := &caller{conn: ours, reader: newReader(ours), limit: time.Minute}
	c.use("host", "token")
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
		if body, err := c.get("/x"); err != nil || string(body) != want {
			t.Fatalf("the response is %q, %v, want %q", body, err, want)
		}
	}
	if _, err := c.get("/x"); err == nil || err.Error() != "GET /x returned 404: none" {
		t.Errorf("a 404 is reported as %v", err)
	}
	if _, err := c.get("/x"); err == nil {
		t.Error("a truncated response is accepted")
	}
}

func TestPacedMakesEveryCallOnce(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tenant := &tenant{Address: listener.Addr().String()}
	var made atomic.Int64
	err = tenant.paced(context.WithoutCancel(t.Context()), 10_000, 50*time.Millisecond, func(*caller) (func(from time.Time), error) {
		return func(time.Time) { made.Add(1) }, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if made.Load() != 500 {
		t.Errorf("%d calls were made, want the 500 that are due in 50 ms at 10,000/s", made.Load())
	}
}

func TestTableShowsComparisons(t *testing.T) {
	r := &report{}
	r.add("baseline", 200, "/s")
	r.compare("ours", 100, "/s", "baseline").Aim = 0.6
	var b bytes.Buffer
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); !strings.Contains(lines[2], "0.50") || !strings.HasSuffix(lines[2], "baseline; aim 0.60: not met") {
		t.Errorf("the table is\n%s", b.String())
	}
}

func TestFiguresAreShownAsTheyAreMeasured(t *testing.T) {
	var live bytes.Buffer
	r := &report{live: &live}
	r.add("aim", 50, "ms")
	r.compare("first page", 40, "ms", "aim").Limit = 1
	if got := live.String(); got != "  aim 50.00 ms\n" {
		t.Errorf("a figure that may change is shown: %q", got)
	}
	r.addFailure("second page", errors.New("GET /second returned 400"))
	r.showMeasured()
	want := "  aim 50.00 ms\n  first page 40.00 ms 0.80 aim; at most 1.00: met\n  second page failed GET /second returned 400\n"
	if got := live.String(); got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
	if r.failures != 1 {
		t.Errorf("%d rows failed, want 1", r.failures)
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	if got := table.String(); !strings.Contains(got, "failed") || !strings.Contains(got, "returned 400") {
		t.Errorf("the table is\n%s", got)
	}
}
