package api_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millwright/api"
	"millwright/service/servicetest"
	"millwright/service/store"
)

// BenchmarkCalls measures the CPU time of calls from 32 clients, without connections and
// net/http: that of this process, and that of Postgres (docs/performance.md).
//
//	bin/devstack exec --no-temporal -- go test ./api -run '^$' -bench Calls -benchtime 5000x -count 3
func BenchmarkCalls(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as `millwright api` does
	s := newBenchServer(b)
	for _, call := range []struct {
		name    string
		status  int
		request func(n int) *http.Request
	}{
		{"read", http.StatusOK, func(n int) *http.Request { return s.request(http.MethodGet, "/work-orders/"+s.id(n), "") }},
		{"list", http.StatusOK, func(int) *http.Request { return s.request(http.MethodGet, "/work-orders?limit=50", "") }},
		{"change", http.StatusOK, func(n int) *http.Request {
			return s.request(http.MethodPatch, "/work-orders/"+s.id(n), fmt.Sprintf(`{"title":"Replace filter %d"}`, n))
		}},
		{"create", http.StatusCreated, func(int) *http.Request { return s.createWorkOrder() }},
	} {
		b.Run(call.name, func(b *testing.B) { s.measure(b, call.status, call.request) })
	}
}

// benchServer is an API without connections, with an organization like that of bench/.
type benchServer struct {
	*servicetest.Fixture
	handler     http.Handler
	token, node string
	workOrders  []string
}

const benchOrganization = `
organization: {key: bench, name: Bench, plan: {name: pro, api: true, manual_work_orders: true, calls_per_minute: 1000000000, integrations: 10}}
permission_definitions:
  - {key: manager, name: Manager, applies_below: true, inventory_manager: true, grants: [inventory.read, work_orders.read, work_orders.create, work_orders.update]}
inventory: [{key: top, kind: location, name: Top}]
assignments: [{node: top, identity: caller, definition: manager}]
integrations:
  - key: caller
    name: Caller
    scopes: ["work_orders:read", "work_orders:write", "forms:read"]
    client_id: bench
    client_secret: secret-of-bench-in-the-benchmark
    webhooks: [{key: hook, url: "http://127.0.0.1:1/", secret: "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", events: [work_order.created, work_order.updated]}]
`

func newBenchServer(b *testing.B) *benchServer {
	b.Helper()
	s := &benchServer{Fixture: servicetest.New(b, func(o *store.Options) { o.Now = time.Now })}
	imported, err := s.Imports.Run(b.Context(), []byte(benchOrganization))
	if err != nil {
		b.Fatal(err)
	}
	s.node = imported.IDs["top"]
	s.handler = api.New(s.Service, api.Options{
		PublicURL: servicetest.Issuer, Version: "bench", Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), //nolint:sloglint // formatting counts
	})
	token, err := s.Access.IssueToken(b.Context(), "bench", "secret-of-bench-in-the-benchmark", nil)
	if err != nil {
		b.Fatal(err)
	}
	s.token = token.AccessToken
	s.workOrders = make([]string, 1000)
	s.call(b, len(s.workOrders), http.StatusCreated, func(int) *http.Request { return s.createWorkOrder() }, func(n int, header http.Header) {
		s.workOrders[n] = strings.TrimPrefix(header.Get("Location"), "/v1/work-orders/")
	})
	s.Exec(`VACUUM ANALYZE`)
	return s
}

// id returns the n-th work order, in a scattered order.
func (s *benchServer) id(n int) string { return s.workOrders[n*619%len(s.workOrders)] }

func (s *benchServer) createWorkOrder() *http.Request {
	return s.request(http.MethodPost, "/work-orders", `{"inventory_id":"`+s.node+`","title":"Replace filter"}`)
}

func (s *benchServer) request(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, "/v1"+path, strings.NewReader(body))
	if err != nil {
		panic(err) // impossible: the path is valid
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	return r
}

// call makes n calls from 32 clients.
func (s *benchServer) call(b *testing.B, n, status int, request func(n int) *http.Request, done func(n int, header http.Header)) {
	var made atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for i := int(made.Add(1)) - 1; i < n; i = int(made.Add(1)) - 1 {
				w := &discarder{header: http.Header{}}
				s.handler.ServeHTTP(w, request(i))
				if w.status != status {
					b.Errorf("the status is %d, want %d", w.status, status)
				}
				done(i, w.header)
			}
		})
	}
	clients.Wait()
}

func (s *benchServer) measure(b *testing.B, status int, request func(n int) *http.Request) {
	discard := func(int, http.Header) {}
	s.call(b, 200, status, request, discard) // opens connections and makes plans
	b.ReportAllocs()
	ours, postgres := processTime(), s.postgresTime()
	b.ResetTimer()
	s.call(b, b.N, status, request, discard)
	b.ReportMetric(float64((processTime()-ours).Microseconds())/float64(b.N), "api-µs/op")
	b.ReportMetric(float64((s.postgresTime()-postgres).Microseconds())/float64(b.N), "postgres-µs/op")
}

// discarder is a response of which only status and header are kept.
type discarder struct {
	header http.Header
	status int
}

func (d *discarder) Header() http.Header             { return d.header }
func (d *discarder) WriteHeader(status int)          { d.status = status }
func (d *discarder) Write(body []byte) (int, error)  { return len(body), nil }
func (d *discarder) SetReadDeadline(time.Time) error { return nil }

// processTime returns the CPU time of this process.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// postgresTime returns the CPU time of the database's backends, if they run on
// this machine.
func (s *benchServer) postgresTime() time.Duration {
	pids := servicetest.Value[[]int](s.Fixture, `SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database()`)
	var ticks int
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), ") ")
		for _, field := range strings.Fields(after)[11:13] { // utime and stime
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	const tick = time.Second / 100 // USER_HZ
	return time.Duration(ticks) * tick
}
