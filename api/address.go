package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// networkBits is what of an IPv6 address tells one client from another: whoever
// has one address has its /64.
const networkBits = 64

// clientAddress is whom a call without a token is counted for: the nearest
// address that is not a trusted proxy's, an IPv6 address as its /64. Only
// X-Forwarded-For is read, from its end, and only as far as trusted proxies
// wrote it; what cannot be read there is nobody's word.
func clientAddress(r *http.Request, trusted []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "" // no network, so one client
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
	if at.Is4() {
		return at.String()
	}
	network, err := at.WithZone("").Prefix(networkBits)
	if err != nil {
		return at.String()
	}
	return network.String()
}

// readHop reads an address as proxies write it, some with a port.
func readHop(hop string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap(), true
	}
	at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return at.Unmap(), err == nil
}
