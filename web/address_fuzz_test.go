package web

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"
)

// A call counts against its peer, or against the address that a trusted proxy
// reports, never against one that an untrusted peer wrote.
func FuzzClientAddress(f *testing.F) {
	f.Add("10.0.0.1:9", "192.0.2.66", "192.0.2.1, 10.0.0.2")
	f.Add("[2001:db8::1%eth0]:9", "", "192.0.2.1")
	f.Add("10.0.0.1:9", "::ffff:192.0.2.1", "[2001:DB8::1]:443")
	f.Add("@", ",,,", "unknown")
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {first, second}, "X-Real-Ip": {"192.0.2.99"}}}
		got := ClientAddress(r, trusted)
		if alone := ClientAddress(&http.Request{RemoteAddr: peer}, nil); ClientAddress(r, nil) != alone {
			t.Errorf("without trusted proxies %q counts against %q", peer, ClientAddress(r, nil))
		}
		at, err := netip.ParseAddrPort(peer)
		if err != nil {
			if got != "" {
				t.Errorf("the peer %q counts against %q", peer, got)
			}
			return
		}
		if ip := at.Addr().Unmap(); !trusted[0].Contains(ip) && !slices.Contains([]string{ip.String(), networkOf(ip)}, got) {
			t.Errorf("the untrusted peer %q counts against %q", peer, got)
		}
		if counted, err := netip.ParsePrefix(got); err == nil && (counted.Bits() != networkBits || counted != counted.Masked()) {
			t.Errorf("counted against the network %s", got)
		}
		// Anything that a client writes before the proxy's entry is ignored.
		r.Header["X-Forwarded-For"] = []string{first, second, "192.0.2.1"}
		if got := ClientAddress(r, trusted); trusted[0].Contains(at.Addr().Unmap()) && got != "192.0.2.1" {
			t.Errorf("the proxy's entry is read as %q, want 192.0.2.1", got)
		}
	})
}

func networkOf(ip netip.Addr) string {
	network, err := ip.WithZone("").Prefix(networkBits)
	if err != nil {
		return ""
	}
	return network.String()
}
