package webhook

import (
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// platformPrefixes are public addresses on which a hosting platform serves its own
// machines, as on 169.254.169.254.
var platformPrefixes = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's WireServer
}

// guard decides which IP addresses webhooks may reach: the public internet and the
// networks an operator allowed. Package ssrf has the ranges of the IANA special-purpose
// registries. Of IPv6 it allows only 2000::/3, which excludes mapped, compatible, NAT64,
// unique-local, link-local and site-local addresses, without 6to4 and Teredo.
type guard struct {
	ranges *ssrf.Guardian
}

func newGuard(allow []netip.Prefix) *guard {
	var v4, v6 []netip.Prefix
	for _, prefix := range allow {
		if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
		}
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return &guard{ranges: ssrf.New(
		ssrf.WithAnyPort(),
		ssrf.WithAllowedV4Prefixes(v4...),
		ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(platformPrefixes...),
	)}
}

// allows reports whether webhooks may reach ip. IPv4-mapped addresses are not allowed;
// resolve unmaps those that a resolver returns for ordinary ones.
func (g *guard) allows(ip netip.Addr) bool {
	// Package ssrf takes the zero Addr for a public IPv4 address.
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	// Without IPv4, an operator allows the NAT64 prefix to reach IPv4 at all. That must
	// not allow the private IPv4 addresses within it.
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		bytes := ip.As16()
		if !g.allows(netip.AddrFrom4([4]byte(bytes[12:]))) {
			return false
		}
	}
	return g.ranges.SafeAddr(ip) == nil
}

// control is a net.Dialer's Control: it checks the address a socket is about to connect
// to.
func (g *guard) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !g.allows(target.Addr()) {
		return &blockedError{ip: target.Addr()}
	}
	return nil
}

// blockedError is returned if the guard does not allow ip. name is the host name that
// resolved to it, "" if the address has the IP itself.
type blockedError struct {
	name string
	ip   netip.Addr
}

// Error does not reveal the IP address of a name: it might be one of a private network.
func (e *blockedError) Error() string {
	subject := e.ip.String()
	if e.name != "" {
		subject = e.name + " resolves to an IP address that"
	}
	return fmt.Sprintf("%s is %s. Webhooks are sent to public internet addresses only.", subject, rangeName(e.ip))
}

// rangeName describes the range of an address that is not public.
func rangeName(ip netip.Addr) string {
	switch {
	case ip.IsLoopback():
		return "a loopback address"
	case ip.IsPrivate():
		return "in a private network"
	case ip.IsLinkLocalUnicast():
		return "a link-local address"
	case ip.IsMulticast():
		return "a multicast address"
	default:
		return "in a reserved range"
	}
}
