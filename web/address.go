package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// networkBits is the part of an IPv6 address that identifies a client: a client
// usually has a whole /64.
const networkBits = 64

// ClientAddress returns the address that a call without a token is counted
// against: the nearest one that is not a trusted proxy's, for IPv6 its /64.
// X-Forwarded-For is read from its end, and only as far as trusted proxies wrote
// it; anything before that can be forged.
func ClientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "" // not a network connection: all such calls are one client
	}
	at := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, ok := readHop(strings.TrimSpace(hop))
		if !ok || !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(at) }) {
			break
		}
		at = next
	}
	return ClientNetwork(at)
}

// ClientNetwork returns what identifies the client of an address: an IPv4 address, or
// the /64 of an IPv6 address.
func ClientNetwork(at netip.Addr) string {
	if at.Is4() {
		return at.String()
	}
	network, err := at.WithZone("").Prefix(networkBits)
	if err != nil {
		return at.String()
	}
	return network.String()
}

// readHop parses an address of X-Forwarded-For, with or without a port.
func readHop(hop string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap(), true
	}
	at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return at.Unmap(), err == nil
}
