package webhook

import (
	"fmt"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// platformPrefixes are public addresses behind which a hosting platform answers
// its own machines, as it does on 169.254.169.254.
var platformPrefixes = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's WireServer
}

// guard decides which IP addresses webhooks may reach: the public internet and
// the networks an operator opened. The ranges are those of the IANA
// special-purpose registries as package ssrf keeps them. Of IPv6 it admits
// nothing outside 2000::/3, which disposes of mapped, compatible, NAT64,
// unique-local, link-local and site-local forms, and refuses 6to4 and Teredo
// within.
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

// allows reports whether webhooks may reach ip. IPv4-mapped addresses are refused
// like all else outside 2000::/3; resolve has unmapped those that are honest.
func (g *guard) allows(ip netip.Addr) bool {
	// Package ssrf would take the zero Addr for an unlisted IPv4 address.
	if !ip.IsValid() || ip.Zone() != "" {
		return false
	}
	// An operator without IPv4 opens the NAT64 prefix to reach IPv4 at all. That
	// must not open what lies behind it.
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		bytes := ip.As16()
		if !g.allows(netip.AddrFrom4([4]byte(bytes[12:]))) {
			return false
		}
	}
	return g.ranges.SafeAddr(ip) == nil
}

// control is a net.Dialer's Control: the last word on the address a socket is
// about to connect to, however it was come by.
func (g *guard) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil || !g.allows(target.Addr()) {
		return &refusedError{ip: target.Addr()}
	}
	return nil
}

// refusedError says that the guard refused ip. Name is the host name that led to
// it, or empty when the address was written as an IP.
type refusedError struct {
	name string
	ip   netip.Addr
}

// Error does not tell what IP a name leads to: who may not reach a private
// network should not learn its addresses from its DNS either.
func (e *refusedError) Error() string {
	subject := e.ip.String()
	if e.name != "" {
		subject = e.name + " leads to an IP address that"
	}
	return fmt.Sprintf("%s is %s. Webhooks are sent to public internet addresses only.", subject, rangeName(e.ip))
}

// rangeName says in words where an address that is not public lies.
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
