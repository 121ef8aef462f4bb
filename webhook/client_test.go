package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// newTestClient returns a client that may reach servers on this machine.
func newTestClient(t *testing.T, options Options) *Client {
	t.Helper()
	if options.AllowNetworks == nil {
		options.AllowNetworks = loopback
	}
	options.AllowHTTP = true
	c := NewClient(options)
	t.Cleanup(c.Close)
	return c
}

// mustFail checks that err is an *AttemptError of the kind, that its detail is a
// sentence and that it contains no secret of the test's addresses.
func mustFail(t *testing.T, err error, kind Kind) *AttemptError {
	t.Helper()
	var failed *AttemptError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v, want *AttemptError", err)
	}
	if failed.Kind != kind {
		t.Errorf("kind %q (%s: %v), want %q", failed.Kind, failed.Detail, failed.Unwrap(), kind)
	}
	if !strings.HasSuffix(failed.Detail, ".") || strings.Contains(failed.Detail, "%!") {
		t.Errorf("the detail is not a sentence: %q", failed.Detail)
	}
	for e := error(failed); e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "hunter2") {
			t.Errorf("the error contains a secret: %q", e)
		}
	}
	return failed
}

// serve returns a server on loopback.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// countConnections counts the connections that the server accepts.
func countConnections(server *httptest.Server) *atomic.Int32 {
	var count atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			count.Add(1)
		}
	}
	return &count
}

func TestPostDelivers(t *testing.T) {
	var (
		got   http.Header
		event Event
	)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		var err error
		if event, err = VerifyRequest(r, newSecret, pingTime); err != nil {
			t.Errorf("verify: %v", err)
		}
		if r.Method != http.MethodPost || r.URL.String() != "/hook?a=b" || r.ContentLength != int64(len(pingBody)) {
			t.Errorf("%s %s with %d bytes", r.Method, r.URL, r.ContentLength)
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "thanks")
	})

	header := mustSigner(t, newSecret).Header("evt_01", "ping", pingTime, []byte(pingBody))
	before := len(header)
	response, err := newTestClient(t, Options{}).Post(t.Context(), server.URL+"/hook?a=b", header, []byte(pingBody))
	if err != nil {
		t.Fatal(err)
	}
	if response.Status != http.StatusAccepted || string(response.Body) != "thanks" {
		t.Errorf("status %d, body %q", response.Status, response.Body)
	}
	if response.RemoteIP != netip.MustParseAddr("127.0.0.1") || response.Latency <= 0 {
		t.Errorf("from %v after %v", response.RemoteIP, response.Latency)
	}
	if event.ID != "evt_01" {
		t.Errorf("received event %q", event.ID)
	}
	if got.Get("User-Agent") != "Millwright-Webhooks/1" || got.Get("Content-Type") != "application/json" {
		t.Errorf("User-Agent %q, Content-Type %q", got.Get("User-Agent"), got.Get("Content-Type"))
	}
	for _, name := range []string{"Idempotency-Key", "Accept-Encoding", "Referer", "Authorization", "Cookie"} {
		if values, sent := got[name]; sent {
			t.Errorf("%s: %v was sent", name, values)
		}
	}
	if len(header) != before {
		t.Errorf("the caller's header was changed to %v", header)
	}
}

// localhost is delivered to, at whichever loopback address the receiver listens.
func TestPostToLocalhost(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", listen)
		if err != nil {
			t.Logf("this machine has no %s: %v", listen, err)
			continue
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		for _, host := range []string{"localhost", "hooks.localhost"} {
			url := "http://" + host + ":" + port + "/"
			if err := CheckURL(t.Context(), url, Rules{AllowNetworks: loopback, AllowHTTP: true, Resolver: SystemResolver()}); err != nil {
				t.Errorf("%s at %s is rejected: %v", url, listen, err)
			}
			response, err := newTestClient(t, Options{}).Post(t.Context(), url, nil, nil)
			if err != nil || response.Status != http.StatusNoContent {
				t.Errorf("%s at %s: %d, %v", url, listen, response.Status, err)
			}
		}
		server.Close()
	}
}

func TestPostFollowsNoRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var requests atomic.Int32
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		response, err := newTestClient(t, Options{}).Post(t.Context(), server.URL, nil, nil)
		if n := requests.Load(); err != nil || response.Status != status || n != 1 {
			t.Errorf("status %d, want %d, after %d requests: %v", response.Status, status, n, err)
		}
	}
}

func TestPostKeepsFourKiB(t *testing.T) {
	tests := []struct {
		name           string
		size           int
		declared       bool
		kept           int
		connections    int32 // for two deliveries
		connectionsWhy string
	}{
		{"empty", 0, true, 0, 1, "nothing to read"},
		{"a little", 10, true, 10, 1, "read completely"},
		{"exactly 4 KiB", 4096, true, 4096, 1, "read completely"},
		{"a byte more", 4097, true, 4096, 1, "the rest is drained"},
		{"32 KiB in chunks", 32 << 10, false, 4096, 1, "the rest is drained"},
		{"1 MiB declared", 1 << 20, true, 4096, 2, "too much to drain"},
		{"1 MiB in chunks", 1 << 20, false, 4096, 2, "too much to drain"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tt.declared {
					w.Header().Set("Content-Length", strconv.Itoa(tt.size))
				} else {
					w.(http.Flusher).Flush()
				}
				w.Write(bytes.Repeat([]byte("x"), tt.size))
			}))
			connections := countConnections(server)
			server.Start()
			defer server.Close()
			client := newTestClient(t, Options{})
			for range 2 {
				response, err := client.Post(t.Context(), server.URL, nil, []byte("{}"))
				if err != nil || response.Status != http.StatusOK {
					t.Fatalf("status %d, error %v", response.Status, err)
				}
				if string(response.Body) != strings.Repeat("x", tt.kept) {
					t.Errorf("%d bytes kept, want %d", len(response.Body), tt.kept)
				}
			}
			if n := connections.Load(); n != tt.connections {
				t.Errorf("%d connections, want %d: %s", n, tt.connections, tt.connectionsWhy)
			}
		})
	}
}

func TestPostDoesNotDecompressBodies(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, "not gzip at all")
	})
	response, err := newTestClient(t, Options{}).Post(t.Context(), server.URL, nil, nil)
	if err != nil || string(response.Body) != "not gzip at all" {
		t.Errorf("body %q, error %v", response.Body, err)
	}
}

func TestPostBoundsHeaders(t *testing.T) {
	for _, header := range []struct{ count, size int }{{1, 64 << 10}, {4096, 4}} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			for i := range header.count {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", header.size))
			}
		})
		response, err := newTestClient(t, Options{}).Post(t.Context(), server.URL+"/?token=hunter2", nil, nil)
		mustFail(t, err, KindBadResponse)
		if response.Status != 0 || !response.RemoteIP.IsLoopback() {
			t.Errorf("status %d from %v", response.Status, response.RemoteIP)
		}
	}
}

// net/http reads the proxy variables once per process, so a separate process
// runs this test with them set.
func TestPostIgnoresProxiesFromTheEnvironment(t *testing.T) {
	const inside = "WEBHOOK_TEST_BEHIND_PROXY"
	if os.Getenv(inside) == "" {
		var proxied atomic.Bool
		proxy := serve(t, func(http.ResponseWriter, *http.Request) { proxied.Store(true) })
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		command.Env = append(os.Environ(), inside+"=1", "NO_PROXY=", "no_proxy=", "REQUEST_METHOD=",
			"HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL)
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
		if proxied.Load() {
			t.Error("the request went to the proxy")
		}
		return
	}

	server := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	// A public name, because requests to loopback are never proxied.
	client := newTestClient(t, Options{Resolver: resolvesTo{"127.0.0.1"}})
	response, err := client.Post(t.Context(), "http://hooks.example.com:"+portOf(server)+"/", nil, nil)
	if err != nil || response.Status != http.StatusNoContent {
		t.Errorf("status %d, error %v", response.Status, err)
	}
}

func TestPostReusesConnectionsOfABusyAddress(t *testing.T) {
	const inFlight = 32
	var arrived sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Done()
		arrived.Wait() // until all are in flight
	}))
	connections := countConnections(server)
	server.Start()
	defer server.Close()
	client := newTestClient(t, Options{})
	for range 3 {
		arrived.Add(inFlight)
		var group sync.WaitGroup
		for range inFlight {
			group.Go(func() {
				if _, err := client.Post(t.Context(), server.URL, nil, []byte("{}")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	if n := connections.Load(); n != inFlight {
		t.Errorf("%d connections for three times %d concurrent requests", n, inFlight)
	}
}

// A receiver may close an idle connection just as a delivery is sent on it. The
// delivery must not count as failed.
func TestPostRetriesIfAnIdleConnectionWasClosed(t *testing.T) {
	received := make(chan string, 4)
	server := rawServer(t, func(connection int, conn net.Conn) {
		// Each connection responds to one request and is closed after the next.
		for request := range 2 {
			r, body, err := readRequest(conn)
			if err != nil {
				return
			}
			received <- strconv.Itoa(connection) + " " + r.Header.Get(HeaderEventID) + " " + body
			if request == 0 {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})

	client := newTestClient(t, Options{})
	for _, id := range []string{"evt_01", "evt_02"} {
		response, err := client.Post(t.Context(), "http://"+server, http.Header{HeaderEventID: {id}}, []byte("body of "+id))
		if err != nil || response.Status != http.StatusOK {
			t.Errorf("%s: status %d, error %v", id, response.Status, err)
		}
	}
	for _, want := range []string{"0 evt_01 body of evt_01", "0 evt_02 body of evt_02", "1 evt_02 body of evt_02"} {
		if got := <-received; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
}

func TestPostClassifiesFailures(t *testing.T) {
	closeWith := func(linger int) func(*testing.T) string {
		return func(t *testing.T) string {
			return rawServer(t, func(_ int, conn net.Conn) {
				readRequest(conn)
				_ = conn.(*net.TCPConn).SetLinger(linger)
			})
		}
	}
	respond := func(response string) func(*testing.T) string {
		return func(t *testing.T) string {
			return rawServer(t, func(_ int, conn net.Conn) {
				readRequest(conn)
				io.WriteString(conn, response)
			})
		}
	}
	tests := []struct {
		name   string
		server func(*testing.T) string // its host and port
		kind   Kind
		detail string
	}{
		{"nothing listens", func(t *testing.T) string {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			listener.Close()
			return listener.Addr().String()
		}, KindConnectionRefused, "127.0.0.1 refused the connection."},
		{"closed without a response", closeWith(-1), KindReset, "127.0.0.1 closed the connection before responding."},
		{"reset without a response", closeWith(0), KindReset, "127.0.0.1 closed the connection before responding."},
		{"closed in the middle of the headers", respond("HTTP/1.1 200 OK\r\nX-Cut: 1\r\n"), KindReset, ""},
		{"not HTTP", respond("220 mail.example.com ESMTP hunter3\r\n"), KindBadResponse, ""},
		{"HTTP with a broken header", respond("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), KindBadResponse, ""},
		{"HTTP with a broken length", respond("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"), KindBadResponse, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newTestClient(t, Options{}).Post(t.Context(), "http://"+tt.server(t)+"/hunter2?token=hunter2", nil, []byte("{}"))
			failed := mustFail(t, err, tt.kind)
			if tt.detail != "" && failed.Detail != tt.detail {
				t.Errorf("detail %q, want %q", failed.Detail, tt.detail)
			}
			if strings.Contains(failed.Detail, "hunter3") {
				t.Errorf("the detail quotes the response: %q", failed.Detail)
			}
		})
	}
}

func TestPostClassifiesLookupFailures(t *testing.T) {
	const missing, failing = "The name hooks.example.com does not exist in DNS.", "The name hooks.example.com could not be looked up in DNS just now."
	for _, tt := range []struct {
		resolver Resolver
		detail   string
	}{
		{lookupFails(&net.DNSError{Name: "hooks.example.com", Server: "10.0.0.53:53", IsNotFound: true}), missing},
		{lookupFails(&net.DNSError{Name: "hooks.example.com", Server: "10.0.0.53:53", IsTimeout: true}), failing},
		{resolvesTo{}, missing},
	} {
		_, err := newTestClient(t, Options{Resolver: tt.resolver}).Post(t.Context(), "https://hooks.example.com/", nil, nil)
		if failed := mustFail(t, err, KindDNS); failed.Detail != tt.detail {
			t.Errorf("detail %q, want %q", failed.Detail, tt.detail)
		}
	}
}

func TestPostClassifiesDialFailures(t *testing.T) {
	tests := []struct {
		name   string
		err    error
		kind   Kind
		detail string
	}{
		{"no route to the network", syscall.ENETUNREACH, KindUnreachable, "hooks.example.com cannot be reached."},
		{"no route to the host", syscall.EHOSTUNREACH, KindUnreachable, "hooks.example.com cannot be reached."},
		{"the system's time limit", syscall.ETIMEDOUT, KindTimeout, "hooks.example.com did not respond in time."},
		{"anything else", syscall.EMFILE, KindOther, "The request could not be sent."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := NewClient(Options{Resolver: resolvesTo{"1.1.1.1"}, Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: tt.err}
			}})
			_, err := client.Post(t.Context(), "https://hooks.example.com/hunter2", nil, nil)
			failed := mustFail(t, err, tt.kind)
			if failed.Detail != tt.detail || !errors.Is(failed, tt.err) {
				t.Errorf("detail %q, cause %v, want %q", failed.Detail, failed.Unwrap(), tt.detail)
			}
		})
	}
}

func TestPostSendsNoInjectedHeader(t *testing.T) {
	client := NewClient(Options{Resolver: noLookups{t}, Dial: noDials(t)})
	_, err := client.Post(t.Context(), "https://hooks.example.com/", http.Header{HeaderEventID: {"evt_01\r\nX-Admin: 1"}}, nil)
	mustFail(t, err, KindOther)
}

func TestPostDistinguishesCancellationFromATimeout(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		{"cancelled", context.WithCancel, context.Canceled},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now().Add(-time.Second))
		}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := tt.end(t.Context())
			defer cancel()
			release := make(chan struct{})
			server := serve(t, func(http.ResponseWriter, *http.Request) {
				cancel() // in the middle of an attempt
				<-release
			})
			defer close(release)
			_, err := newTestClient(t, Options{}).Post(ctx, server.URL, nil, nil)
			if failed := mustFail(t, err, KindCanceled); !errors.Is(failed, tt.want) {
				t.Errorf("error does not wrap %v: %v", tt.want, failed.Unwrap())
			}
		})
	}
}

// rawServer serves each connection with serve and returns its host and port.
func rawServer(t *testing.T, serve func(connection int, conn net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for i := 0; ; i++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(i, conn)
			}()
		}
	}()
	return listener.Addr().String()
}
