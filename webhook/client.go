package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"sync"
	"time"
)

// UserAgent is the User-Agent header of every delivery.
const UserAgent = "Millwright-Webhooks/1"

// MaxKeptBody is how many bytes of a response Response.Body holds at most, 4 KiB.
const MaxKeptBody = 4 << 10

// DefaultTimeout is how long a receiver may take to respond if Options.Timeout is zero.
const DefaultTimeout = 10 * time.Second

const (
	// An answer's body may take this long after its headers. It is only for the
	// record, so a slow one costs the receiver nothing but its end.
	bodyTime = 2 * time.Second
	// What is read, beyond what is kept, to be able to use the connection again.
	maxDrained = 64 << 10
	// More headers than this no receiver needs.
	maxHeaderBytes = 32 << 10

	// The sender has 32 deliveries in flight per address. With thousands of
	// addresses an idle connection, some 40 KiB with TLS, is kept only through
	// a pause in the traffic.
	idlePerHost = 32
	idleTotal   = 2048
	idleTime    = 60 * time.Second
)

// Options of a Client. The zero value is the rule of production.
type Options struct {
	// AllowNetworks and AllowHTTP are as in Rules.
	AllowNetworks []netip.Prefix
	AllowHTTP     bool
	// Timeout bounds an attempt from the DNS lookup to the last byte of the
	// answer's headers. 0 means 10 seconds (spec section 6).
	Timeout time.Duration
	// RootCAs verify the receivers' certificates; nil means the system's.
	RootCAs *x509.CertPool
	// Resolver resolves host names; nil means SystemResolver.
	Resolver Resolver
	// Dial connects to an IP address and port that passed the check. It is for
	// tests: nil means a dialer that checks the address once more on its socket.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client posts deliveries to addresses that strangers chose. It reaches the
// public internet and AllowNetworks only, follows no redirects, uses no proxy
// and bounds what an answer may cost in time and memory. Safe for concurrent
// use; one is enough for a process.
type Client struct {
	transport         *http.Transport
	guard             *guard
	allowHTTP         bool
	allowPrivateNames bool
	timeout           time.Duration
}

// NewClient returns a client that is ready to use.
func NewClient(options Options) *Client {
	c := &Client{
		guard:             newGuard(options.AllowNetworks),
		allowHTTP:         options.AllowHTTP,
		allowPrivateNames: len(options.AllowNetworks) > 0,
		timeout:           options.Timeout,
	}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	dialer := &dialer{
		guard:    c.guard,
		resolver: options.Resolver,
		dial:     options.Dial,
		limit:    c.timeout + dialGrace,
		tls: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            options.RootCAs,
			NextProtos:         []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(idleTotal),
		},
	}
	if dialer.resolver == nil {
		dialer.resolver = SystemResolver()
	}
	if dialer.dial == nil {
		dialer.dial = guardedDial(c.guard)
	}
	c.transport = newTransport(dialer)
	return c
}

func newTransport(dialer *dialer) *http.Transport {
	// HTTP/2 would put all deliveries to a host on one connection, where one
	// that hangs holds up the rest; with HTTP/1.1 it holds up itself.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // also none from the environment: it would dial in our place
		DialContext:            dialer.dialPlain,
		DialTLSContext:         dialer.dialTLS,
		Protocols:              &protocols,
		DisableCompression:     true, // what is recorded is what was sent, and no small answer unpacks to a large one
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
	}
}

// Response is what came of an attempt.
type Response struct {
	// Status is the HTTP status, 0 when there was no answer. A redirect is its
	// status like any other.
	Status int
	// Body is the answer's first 4 KiB, as sent: any bytes at all. It is cut
	// short when the rest did not come within 2 seconds of the headers.
	Body []byte
	// RemoteIP is the address connected to; not valid when there was none.
	RemoteIP netip.Addr
	// Latency is the time from the call to the last byte of the headers, or to
	// the failure.
	Latency time.Duration
}

// Post sends body, which is JSON, to a webhook address with the given headers,
// which are not changed, and returns the receiver's answer, whatever its status.
// It takes at most Timeout and 2 seconds.
//
// The error is *AttemptError: no answer came, or the address may not be reached.
// The Response then still has Latency and, when a connection was made, RemoteIP.
//
// A delivery may reach the receiver twice: when a kept connection turns out to
// have been closed, the request is sent again on another, since the receiver
// that closes idle connections is the common case.
func (c *Client) Post(ctx context.Context, address string, header http.Header, body []byte) (Response, error) {
	start := time.Now()
	at, err := parseAddress(address, c.allowHTTP, c.allowPrivateNames)
	if err != nil {
		return Response{}, &AttemptError{Kind: KindBlockedAddress, Detail: err.Error()}
	}

	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.timeout, func() { cancel(errTimeUp) })
	defer timer.Stop()

	var out Response
	connected := false
	traced := httptrace.WithClientTrace(attempt, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			connected = true
			out.RemoteIP = remoteIP(info.Conn)
		},
	})
	// The transport itself, not an http.Client: that one follows redirects and
	// puts the URL into its errors.
	answer, err := c.transport.RoundTrip(newRequest(traced, at, header, body))
	out.Latency = time.Since(start)
	if err != nil {
		return out, c.failure(attempt, err, at.host, connected)
	}
	defer answer.Body.Close()
	timer.Reset(bodyTime)
	out.Status = answer.StatusCode
	out.Body = readStart(answer)
	return out, nil
}

// Close closes the connections that are idle now.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

var errTimeUp = errors.New("time limit reached")

func newRequest(ctx context.Context, at address, header http.Header, body []byte) *http.Request {
	headers := make(http.Header, len(header)+3)
	for name, values := range header {
		headers[name] = values
	}
	headers["Content-Type"] = []string{"application/json"}
	headers["User-Agent"] = []string{UserAgent}
	// An empty value is not sent. It tells the transport that the request may be
	// repeated on another connection: deliveries may arrive twice anyway.
	headers["Idempotency-Key"] = nil
	return (&http.Request{
		Method:        http.MethodPost,
		URL:           at.url,
		Host:          at.url.Host,
		Header:        headers,
		ContentLength: int64(len(body)),
		Body:          io.NopCloser(bytes.NewReader(body)),
		GetBody: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(body)), nil
		},
	}).WithContext(ctx)
}

func remoteIP(conn net.Conn) netip.Addr {
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

var bodyBuffers = sync.Pool{New: func() any { return new([MaxKeptBody]byte) }}

// readStart returns the first bytes of the answer's body and reads on for a
// while, so that the connection can be kept. Errors end it: the status counts.
func readStart(answer *http.Response) []byte {
	// Beyond a switch of protocols the body is the bare connection, which ends
	// with no context.
	if answer.StatusCode == http.StatusSwitchingProtocols || answer.Body == http.NoBody {
		return nil
	}
	buffer := bodyBuffers.Get().(*[MaxKeptBody]byte)
	defer bodyBuffers.Put(buffer)
	n, err := io.ReadFull(answer.Body, buffer[:])
	if err == nil && answer.ContentLength <= maxDrained {
		_, _ = io.CopyN(io.Discard, answer.Body, maxDrained-MaxKeptBody)
	}
	return append([]byte(nil), buffer[:n]...)
}
