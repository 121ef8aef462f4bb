package console_test

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"millwright/api"
	"millwright/console"
	"millwright/console/consoletest"
	"millwright/webhook"
	"millwright/worker"
)

// newSiteWithWorker is consoletest.NewSite with examples of events and a real worker, whose
// Temporal namespace no other test uses.
func newSiteWithWorker(t *testing.T) *consoletest.Site {
	t.Helper()
	address := os.Getenv("TEMPORAL_ADDRESS")
	if address == "" {
		t.Fatal("TEMPORAL_ADDRESS is not set: run the tests with `make test`, or under `bin/devstack exec --`")
	}
	namespace := "console-" + strings.ToLower(rand.Text())
	options := client.Options{HostPort: address, Namespace: namespace, Logger: quiet{}}
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		t.Fatal(err)
	}
	defer namespaces.Close()
	if err := namespaces.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	temporal, err := client.NewLazyClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Close)
	s := consoletest.NewSite(t, withExamples, func(o *console.Options) { o.Tester = worker.Tester{Client: temporal} })
	sender := webhook.NewClient(webhook.Options{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true, Timeout: 5 * time.Second})
	t.Cleanup(sender.Close)
	o := worker.Options{
		Client: temporal, Namespace: namespace, Service: s.Service, Waker: s.Wakes, Sender: sender, IdleTimeout: time.Second,
		SweepEvery: time.Hour, StopTimeout: 6 * time.Second, ResponseLimit: 5 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
	ready := false
	for began := time.Now(); !ready && time.Since(began) < 30*time.Second; { // until the namespace is known everywhere
		err = worker.Prepare(t.Context(), o)
		ready = err == nil
	}
	if !ready {
		t.Fatal(err)
	}
	w := worker.New(o)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return s
}

func withExamples(o *console.Options) { o.EventExamples = api.EventExamples() }

// quiet keeps the SDK's own log out of the tests' output.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// receiver is a customer's receiver, which answers with Status and Body.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
	status int
	body   string
}

func newReceiver(t *testing.T, status int, body string) *receiver {
	t.Helper()
	r := &receiver{status: status, body: body}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		sent, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		r.got, r.bodies = append(r.got, request), append(r.bodies, sent)
		r.mu.Unlock()
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.body)
	}))
	t.Cleanup(r.Close)
	return r
}

// requests returns how many requests came, and the last one with its body.
func (r *receiver) requests() (n int, last *http.Request, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n = len(r.got); n == 0 {
		return 0, nil, nil
	}
	return n, r.got[n-1], r.bodies[n-1]
}
