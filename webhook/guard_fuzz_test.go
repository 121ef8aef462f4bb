package webhook

import (
	"net/netip"
	"testing"
)

// neverPublic are the ranges that no delivery may reach. The list does not come
// from the library that the guard uses (IANA special-purpose registries, RFC 6890).
var neverPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
	"::/3", "4000::/2", "8000::/1", // all but 2000::/3: loopback, mapped, NAT64, unique-local, link-local, multicast
	"2001::/32", "2001:db8::/32", "2002::/16", // Teredo, documentation, 6to4
)

func prefixes(addresses ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(addresses))
	for i, text := range addresses {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// The guard allows no address in a range that is not public, in any form. Opening
// a network allows that network and nothing else.
func FuzzGuard(f *testing.F) {
	for _, ip := range hostileIPs {
		f.Add(netip.MustParseAddr(ip).AsSlice(), "", ip+":443")
	}
	f.Add([]byte{93, 184, 216, 34}, "", "93.184.216.34:443")
	f.Add([]byte{0x26, 6, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, "eth0", "[2606:4700::1%eth0]:443")
	f.Add([]byte{127, 0, 0, 1}, "", "[::ffff:127.0.0.1]:80")
	closed, opened := newGuard(nil), newGuard(prefixes("10.1.0.0/16", "fd00::/8"))
	f.Fuzz(func(t *testing.T, bytes []byte, zone, socket string) {
		if ip, ok := netip.AddrFromSlice(bytes); ok {
			ip = ip.WithZone(zone)
			checkGuard(t, closed, opened, ip)
			if ip.Is4() {
				checkGuard(t, closed, opened, netip.AddrFrom16(ip.As16()))
			}
		}
		if closed.control("tcp", socket, nil) == nil {
			at, err := netip.ParseAddrPort(socket)
			if err != nil || !closed.allows(at.Addr()) {
				t.Errorf("a socket may connect to %q", socket)
			}
		}
	})
}

func checkGuard(t *testing.T, closed, opened *guard, ip netip.Addr) {
	t.Helper()
	private := ip.Zone() != "" || ip.Is4In6()
	for _, p := range neverPublic {
		private = private || p.Contains(ip.WithZone(""))
	}
	if private && closed.allows(ip) {
		t.Errorf("%s may be reached", ip)
	}
	inOpened := netip.MustParsePrefix("10.1.0.0/16").Contains(ip) || netip.MustParsePrefix("fd00::/8").Contains(ip) && ip.Zone() == ""
	if opened.allows(ip) != (closed.allows(ip) || inOpened) {
		t.Errorf("opening two networks changed whether %s is allowed", ip)
	}
}
