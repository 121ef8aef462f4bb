package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	// maxTries bounds the addresses of a name that are tried, to fit into the time limit.
	maxTries = 4
	// minTry is the least time for a try, which otherwise gets an equal share.
	minTry = 2 * time.Second
	// dialGrace lets a dial end after its attempt, so that the error is the attempt's
	// timeout.
	dialGrace = 100 * time.Millisecond
)

// dialer opens connections to checked IP addresses only.
type dialer struct {
	guard    *guard
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	tls      *tls.Config
	// limit bounds a dial with its lookup and handshake. The attempt's limit does not,
	// because http.Transport continues dials for later requests.
	limit time.Duration
}

// guardedDial returns production's dial function, which checks the address its socket
// connects to.
func guardedDial(guard *guard) func(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Control: guard.control}).DialContext
}

// dialPlain is http.Transport's DialContext.
func (d *dialer) dialPlain(ctx context.Context, _, hostPort string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	return d.connect(ctx, hostPort)
}

// dialTLS is http.Transport's DialTLSContext. It does the handshake itself, to mark its
// errors.
func (d *dialer) dialTLS(ctx context.Context, _, hostPort string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	conn, err := d.connect(ctx, hostPort)
	if err != nil {
		return nil, err
	}
	config := d.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(hostPort)
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &handshakeError{err}
	}
	return secure, nil
}

// handshakeError marks a failed TLS handshake.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return fmt.Sprintf("tls handshake: %v", e.err) }
func (e *handshakeError) Unwrap() error { return e.err }

// connect tries the host's allowed addresses in the resolver's order and returns
// the first connection, or the first error.
func (d *dialer) connect(ctx context.Context, hostPort string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	ips, err := d.allowed(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for i, ip := range ips[:min(len(ips), maxTries)] {
		conn, err := d.try(ctx, ip, port, min(len(ips), maxTries)-i)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// allowed returns the addresses of host that webhooks may reach, or *blockedError if
// no address is allowed.
func (d *dialer) allowed(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		if !d.guard.allows(ip) {
			return nil, &blockedError{ip: ip}
		}
		return []netip.Addr{ip}, nil
	}
	ips, err := resolve(ctx, d.resolver, host)
	if err != nil {
		return nil, &lookupError{err}
	}
	first := ips[0]
	ips = slices.DeleteFunc(ips, func(ip netip.Addr) bool { return !d.guard.allows(ip) })
	if len(ips) == 0 {
		return nil, &blockedError{name: host, ip: first}
	}
	return ips, nil
}

// lookupError marks a failed DNS lookup.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return fmt.Sprintf("lookup: %v", e.err) }
func (e *lookupError) Unwrap() error { return e.err }

// try connects to one address and leaves time for the remaining tries.
func (d *dialer) try(ctx context.Context, ip netip.Addr, port string, triesLeft int) (net.Conn, error) {
	deadline, _ := ctx.Deadline() // every dial has one
	ctx, cancel := context.WithTimeout(ctx, max(time.Until(deadline)/time.Duration(triesLeft), minTry))
	defer cancel()
	return d.dial(ctx, "tcp", net.JoinHostPort(ip.String(), port))
}
