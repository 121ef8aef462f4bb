package webhook

import "strings"

// hostileIPs must not be reached, either as literals or through a name that
// resolves to them.
var hostileIPs = []string{
	// This machine and its network, often by the first and the last address.
	"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "127.255.255.255",
	"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.17.0.1", "172.31.255.255", "192.168.1.1",
	"169.254.0.0", "100.64.0.0", "100.127.255.255", // link-local, shared
	// Metadata and credentials of clouds: most, AWS containers, Azure, Alibaba, Oracle.
	"169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192",
	// Protocol assignments, AS112, tunneling, 6to4 relays, benchmarking, documentation.
	"192.0.0.1", "192.31.196.1", "192.175.48.1", "192.52.193.1", "192.88.99.1", "198.18.0.0", "198.19.255.255",
	"192.0.2.1", "198.51.100.1", "203.0.113.1",
	// Multicast, reserved and broadcast.
	"224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.254", "255.255.255.255",

	// The same in IPv6, also as mapped, compatible and translated IPv4 addresses.
	"::", "::1", "0:0:0:0:0:0:0:1",
	"::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:0.0.0.0",
	"::127.0.0.1", "::10.0.0.1", "::ffff:0:127.0.0.1",
	// NAT64, 6to4 and Teredo.
	"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1",
	"2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:c0a8:101::1", "2001:0:7f00:1::80ff:fffe", "2001::1",
	// Benchmarking, ORCHID, documentation, AS112, discard, segment routing, not yet assigned.
	"2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "2620:4f:8000::1", "100::1", "5f00::1", "4000::1",
	// Unique local, one of them AWS's metadata, link-local, site-local and multicast.
	"fc00::1", "fd12:3456:789a::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1",
}

// hostileURLs must be rejected without a lookup.
var hostileURLs = []string{
	// Other schemes, or none.
	"", "hooks.example.com/x", "//hooks.example.com/x", "http://hooks.example.com/", "HTTP://hooks.example.com/",
	"ftp://hooks.example.com/", "file:///etc/passwd", "gopher://hooks.example.com:25/_HELO", "javascript:alert(1)",
	"https:hooks.example.com", "https:/hooks.example.com", "https:///hooks.example.com", "url:https://hooks.example.com/",
	// No host.
	"https://", "https://:443/", "https://?x",
	// User names and passwords, and other ways to hide the host.
	"https://user@hooks.example.com/", "https://user:hunter2@hooks.example.com/", "https://@hooks.example.com/",
	"https://user%3Ahunter2@hooks.example.com/", "https://hooks.example.com@127.0.0.1/",
	`https://hooks.example.com\@127.0.0.1/`, `https:\\127.0.0.1\`,
	"https://hooks.example.com/#x", "https://hooks.example.com/#", "https://hooks.example.com#@127.0.0.1/",
	// Spaces and control characters.
	" https://hooks.example.com/", "https://hooks.example.com/\n", "https://hooks.example.com/\r\nX-Admin: 1",
	"https://hooks.exa\tmple.com/", "https://hooks.example.com\x00.evil.example/",
	"https://hooks.example.com/" + strings.Repeat("x", 2048),
	// Ports; 65979 would wrap to 443.
	"https://hooks.example.com:0/", "https://hooks.example.com:65536/", "https://hooks.example.com:65979/",
	"https://hooks.example.com:https/", "https://hooks.example.com:-443/", "https://hooks.example.com:/",
	"https://hooks.example.com:443:22/",
	// Numbers that some parsers read as IPv4 addresses, mostly of loopback.
	"https://2130706433/", "https://017700000001/", "https://0x7f000001/", "https://0X7F000001/", "https://0177.0.0.1/",
	"https://0x7f.0x0.0x0.0x1/", "https://0x7f.0.0.1/", "https://0x7f.1/", "https://127.1/", "https://127.0.1/",
	"https://127.000.000.001/", "https://0/", "https://0x/", "https://4294967297/", "https://127.0.0.257/",
	"https://127.0.0.1.1/", "https://hooks.example.127/", "https://127.0.0.1./",
	// IPv6 and brackets.
	"https://[127.0.0.1]/", "https://::1/", "https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/",
	"https://[2606:4700::1%25eth0]/", "https://[::ffff:8.8.8.8]/", "https://[v1.fe80::a+en1]/", "https://[::1/",
	"https://[::1].example.com/",
	// Names inside networks, and incomplete ones.
	"https://localhost/", "https://LOCALHOST/", "https://localhost:8443/", "https://localhost./",
	"https://hooks.localhost/", "https://localhost.localdomain/", "https://printer.local/",
	"https://api.default.svc.cluster.local/", "https://metadata.google.internal/", "https://db.internal/",
	"https://nas.home.arpa/", "https://router.lan/", "https://wiki.corp/", "https://intranet/", "https://kubernetes/",
	// Hosts that are not names.
	"https://hooks.example.com./", "https://.hooks.example.com/", "https://hooks..example.com/",
	"https://-hooks.example.com/", "https://" + strings.Repeat("x", 64) + ".example.com/",
	"https://" + strings.Repeat("abcdefg.", 32) + "com/", "https://*.example.com/", "https://a.example.com,127.0.0.1/",
	// Escapes and other letters; the last but two lowercases to ASCII.
	"https://%31%32%37.0.0.1/", "https://169%2e254%2e169%2e254/", "https://hooks.example.com%2f@127.0.0.1/",
	"https://m%C3%BCnchen.example/", "https://１２７.0.0.1/", "https://①②⑦.⓪.⓪.①/", "https://127。0。0。1/",
	"https://local\u00adhost/", "https://127.0.0.1\u200b/", "https://\u212Aubernetes.example/",
	"https://münchen.example/", "https://hooks.example.com/ü",
}

var harmlessURLs = []string{
	"https://hooks.example.com/x", "https://hooks.example.com", "HTTPS://Hooks.Example.COM/x",
	"https://hooks.example.com?token=a@b", "https://hooks.example.com/x?a=b&c=%2F&d=[1]://@:",
	"https://hooks.example.com/@team/x", "https://hooks.example.com:9999/x", "https://hooks.example.com:65535/x",
	// Names that look like private ones or like addresses.
	"https://xn--mnchen-3ya.example/", "https://my_app.example.com/", "https://1.2.3.4.hooks2.example.com/",
	"https://0x7f.example.com/", "https://localhost.example.com/", "https://hooks.mylocal/",
	// Public addresses, one next to a private network.
	"https://93.184.215.14/", "https://172.32.0.1/", "https://[2606:4700::6810:84e5]/",
	"https://[2606:4700::6810:84e5]:8443/",
	// The longest.
	"https://hooks.example.com/" + strings.Repeat("x", 2048-len("https://hooks.example.com/")),
}
