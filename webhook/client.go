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

// MaxKeptBody is the maximum size of Response.Body, 4 KiB.
const MaxKeptBody = 4 << 10

// DefaultTimeout limits the time until a receiver responds if Options.Timeout is zero.
const DefaultTimeout = 10 * time.Second

const (
	// bodyTime bounds the response's body after its headers. The body is only kept for
	// display, so the rest of a slow one is dropped.
	bodyTime = 2 * time.Second
	// maxDrained bounds how much of a body is read so that the connection can be reused.
	maxDrained = 64 << 10
	// maxHeaderBytes bounds the response's headers.
	maxHeaderBytes = 32 << 10

	// The dispatcher has at most 32 requests in flight per address. An idle connection
	// takes some 40 KiB with TLS, so it is closed after a pause in the traffic.
	idlePerHost = 32
	idleTotal   = 2048
	idleTime    = 60 * time.Second
)

// Options of a Client. The zero value is for production.
type Options struct {
	// AllowNetworks and AllowHTTP are as in Rules.
	AllowNetworks []netip.Prefix
	AllowHTTP     bool
	// Timeout bounds an attempt, from the DNS lookup to the last byte of the response's
	// headers. 0 means DefaultTimeout (api.md 6.7).
	Timeout time.Duration
	// RootCAs verify the receivers' certificates; nil means the system's.
	RootCAs *x509.CertPool
	// Resolver resolves host names; nil means SystemResolver.
	Resolver Resolver
	// Dial connects to a checked IP address and port, for tests. nil means a dialer that
	// checks the address again on its socket.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client posts deliveries to addresses that integrations chose. It reaches only the
// public internet and AllowNetworks, follows no redirects, uses no proxy and bounds the
// time and memory that a response takes. Safe for concurrent use; a process needs one.
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
	// HTTP/2 would send all deliveries to a host over one connection, where one that
	// hangs holds up the others.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // not even the environment's: a proxy would dial unchecked addresses
		DialContext:            dialer.dialPlain,
		DialTLSContext:         dialer.dialTLS,
		Protocols:              &protocols,
		DisableCompression:     true, // the body is kept as sent, and no small response unpacks to a large one
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           idleTotal,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
	}
}

// Response is the result of an attempt.
type Response struct {
	// Status is the HTTP status, 0 if there was no response. Redirects are not followed.
	Status int
	// Body is the start of the response's body as sent, up to MaxKeptBody: less if the
	// rest did not come within 2 seconds of the headers.
	Body []byte
	// RemoteIP is the address connected to; invalid if there was no connection.
	RemoteIP netip.Addr
	// Latency is the time from the call to the last byte of the headers, or to the failure.
	Latency time.Duration
}

// Post sends body, which is JSON, with the headers to a webhook address and returns the
// receiver's response, whatever its status. It takes at most Timeout and 2 seconds and
// does not change header.
//
// The error is *AttemptError: there was no response, or the address is not allowed. The
// Response then still has Latency and, if there was a connection, RemoteIP.
//
// A delivery may reach the receiver twice: if an idle connection turns out to be closed,
// the request is sent again over another. Most receivers close idle connections.
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
	// Not http.Client, which follows redirects and puts the URL into errors.
	response, err := c.transport.RoundTrip(newRequest(traced, at, header, body))
	out.Latency = time.Since(start)
	if err != nil {
		kind, detail := c.explain(attempt, err, at.host, connected)
		return out, &AttemptError{Kind: kind, Detail: detail, cause: err}
	}
	defer response.Body.Close()
	timer.Reset(bodyTime)
	out.Status = response.StatusCode
	out.Body = readStart(response)
	return out, nil
}

// Close closes the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

var errTimeUp = errors.New("time limit reached")

func newRequest(ctx context.Context, at address, header http.Header, body []byte) *http.Request {
	headers := make(http.Header, len(header)+3)
	for name, values := range header {
		headers[name] = values
	}
	headers["Content-Type"] = []string{"application/json"}
	headers["User-Agent"] = []string{UserAgent}
	// An empty value is not sent, but it lets the transport repeat the request on another
	// connection: deliveries may arrive twice anyway.
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

// readStart returns the start of the response's body and drains up to maxDrained, so
// that the connection can be reused. It ignores errors, since the status decides.
func readStart(response *http.Response) []byte {
	// After 101 Switching Protocols the body is the bare connection, which no context ends.
	if response.StatusCode == http.StatusSwitchingProtocols || response.Body == http.NoBody {
		return nil
	}
	buffer := bodyBuffers.Get().(*[MaxKeptBody]byte)
	defer bodyBuffers.Put(buffer)
	n, err := io.ReadFull(response.Body, buffer[:])
	if err == nil && response.ContentLength <= maxDrained {
		_, _ = io.CopyN(io.Discard, response.Body, maxDrained-MaxKeptBody)
	}
	return append([]byte(nil), buffer[:n]...)
}
