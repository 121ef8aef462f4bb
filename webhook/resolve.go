package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
)

// Resolver looks up the IP addresses of a host name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// SystemResolver returns production's resolver: the system's name servers, without its
// search domains. With them "db.prod" could become a name inside the operator's network,
// and public names would take several queries. localhost and the names below it are loopback
// addresses without a query (RFC 6761).
func SystemResolver() Resolver {
	// Go's resolver stops when the context ends; a call into the C library would hold a
	// thread until it returns.
	return systemResolver{&net.Resolver{PreferGo: true}}
}

// systemResolver looks up fully qualified names only.
type systemResolver struct{ resolver Resolver }

func (r systemResolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if isLocalhost(host) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	if !strings.HasSuffix(host, ".") {
		host += "."
	}
	return r.resolver.LookupNetIP(ctx, network, host)
}

// isLocalhost reports whether the name means this host, whatever DNS has.
func isLocalhost(host string) bool {
	rest, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "localhost")
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}

var errNoAddress = errors.New("no address")

// resolve returns at least one address of host or an error. It unmaps IPv4 addresses,
// because net.Resolver may return them in their IPv6 form.
func resolve(ctx context.Context, resolver Resolver, host string) ([]netip.Addr, error) {
	ips, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(ips) == 0 {
		return nil, errNoAddress
	}
	unmapped := make([]netip.Addr, len(ips))
	for i, ip := range ips {
		unmapped[i] = ip.Unmap()
	}
	return unmapped, nil
}

// dnsSentence explains a failed lookup of host.
func dnsSentence(host string, err error) string {
	var dns *net.DNSError
	if errors.Is(err, errNoAddress) || errors.As(err, &dns) && dns.IsNotFound {
		return "The name " + host + " does not exist in DNS."
	}
	return "The name " + host + " could not be looked up in DNS just now."
}
