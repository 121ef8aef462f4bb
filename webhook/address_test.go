package webhook

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// resolvesTo is a Resolver that resolves every name to these addresses.
type resolvesTo []string

func (r resolvesTo) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	var ips []netip.Addr
	for _, text := range r {
		ips = append(ips, netip.MustParseAddr(text))
	}
	return ips, nil
}

// noLookups is a Resolver that fails the test if it is used.
type noLookups struct{ t *testing.T }

func (n noLookups) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.t.Errorf("%s was looked up", host)
	return nil, errors.New("no lookups here")
}

func literalURL(ip string) string { return "https://" + net.JoinHostPort(ip, "443") + "/hook" }

// mustReject checks that err is an *AddressError whose detail is a sentence.
func mustReject(t *testing.T, err error) {
	t.Helper()
	var blocked *AddressError
	if !errors.As(err, &blocked) {
		t.Fatalf("error %v, want *AddressError", err)
	}
	if !strings.HasSuffix(blocked.Detail, ".") || strings.Contains(blocked.Detail, "hunter2") || strings.Contains(blocked.Detail, "%!") {
		t.Errorf("the detail is not a sentence: %q", blocked.Detail)
	}
}

func TestCheckURLRejectsHostileIPs(t *testing.T) {
	for _, ip := range hostileIPs {
		t.Run(ip, func(t *testing.T) {
			mustReject(t, CheckURL(t.Context(), literalURL(ip), Rules{Resolver: noLookups{t}}))
			// By a name that resolves to it alone, or to a public address first.
			mustReject(t, CheckURL(t.Context(), "https://hooks.example.com/", Rules{Resolver: resolvesTo{ip}}))
			err := CheckURL(t.Context(), "https://hooks.example.com/", Rules{Resolver: resolvesTo{"93.184.215.14", ip}})
			mustReject(t, err)
			if strings.Contains(err.Error(), netip.MustParseAddr(ip).String()) {
				t.Errorf("the error about a name contains its IP address: %v", err)
			}
		})
	}
}

// An address is checked when it is saved, and its text again before each attempt.
func TestHostileSpellingsAreRejected(t *testing.T) {
	for _, address := range hostileURLs {
		t.Run(address, func(t *testing.T) {
			mustReject(t, CheckURL(t.Context(), address, Rules{Resolver: noLookups{t}}))
			client := NewClient(Options{Resolver: noLookups{t}, Dial: noDials(t)})
			_, err := client.Post(t.Context(), address, nil, nil)
			mustFail(t, err, KindBlockedAddress)
		})
	}
}

func TestCheckURLAcceptsHarmless(t *testing.T) {
	for _, address := range harmlessURLs {
		for _, resolver := range []Resolver{nil, resolvesTo{"93.184.215.14", "2606:4700::1"}} {
			if err := CheckURL(t.Context(), address, Rules{Resolver: resolver}); err != nil {
				t.Errorf("%s, resolved by %v: %v", address, resolver, err)
			}
		}
	}
}

func TestCheckURLRules(t *testing.T) {
	tests := []struct {
		name  string
		url   string
		rules Rules
		ok    bool
	}{
		{"http allowed", "http://hooks.example.com/", Rules{AllowHTTP: true}, true},
		{"http allowed, https too", "https://hooks.example.com/", Rules{AllowHTTP: true}, true},
		{"http allowed, ftp is not", "ftp://hooks.example.com/", Rules{AllowHTTP: true}, false},
		{"http allowed, private is not", "http://127.0.0.1/", Rules{AllowHTTP: true}, false},

		{"opened network", "https://127.0.0.1:9999/", Rules{AllowNetworks: loopback}, true},
		{"opened network, IPv6", "https://[::1]:9999/", Rules{AllowNetworks: loopback}, true},
		{"opened network, another is not", "https://10.0.0.1/", Rules{AllowNetworks: loopback}, false},
		{"opened network, IPv6 form of another is not", "https://[::7f00:1]/", Rules{AllowNetworks: loopback}, false},
		{"opened network, odd spelling is not", "https://0x7f.1/", Rules{AllowNetworks: loopback}, false},
		{"opened network written as mapped", "https://127.0.0.1/", Rules{AllowNetworks: prefixes("::ffff:127.0.0.0/104")}, true},
		{"opened network written as mapped, another is not", "https://10.0.0.1/", Rules{AllowNetworks: prefixes("::ffff:127.0.0.0/104")}, false},
		{"opened network, private names by spelling", "https://localhost:9999/", Rules{AllowNetworks: loopback}, true},
		{"opened network, private name that resolves into it", "https://receiver/", Rules{AllowNetworks: loopback, Resolver: resolvesTo{"127.0.0.1"}}, true},
		{"opened network, private name that resolves elsewhere", "https://receiver/", Rules{AllowNetworks: loopback, Resolver: resolvesTo{"10.0.0.1"}}, false},
		{"opened NAT64, public address", "https://[64:ff9b::8.8.8.8]/", Rules{AllowNetworks: prefixes("64:ff9b::/96")}, true},
		{"opened NAT64, private address inside", "https://[64:ff9b::10.0.0.1]/", Rules{AllowNetworks: prefixes("64:ff9b::/96")}, false},
		{"opened NAT64, loopback inside", "https://hooks.example.com/", Rules{AllowNetworks: prefixes("64:ff9b::/96"), Resolver: resolvesTo{"64:ff9b::7f00:1"}}, false},

		{"own host", "https://app.example.com/x", Rules{OwnHosts: []string{"app.example.com"}}, false},
		{"own host in capitals", "https://APP.example.com/", Rules{OwnHosts: []string{"app.Example.com"}}, false},
		{"own host on another port", "https://app.example.com:8443/", Rules{OwnHosts: []string{"app.example.com"}}, false},
		{"a subdomain of an own host", "https://hooks.app.example.com/", Rules{OwnHosts: []string{"app.example.com"}}, true},
		{"own host with port", "https://127.0.0.1:8080/", Rules{AllowNetworks: loopback, OwnHosts: []string{"127.0.0.1:8080"}}, false},
		{"own host with port, another port", "https://127.0.0.1:9999/", Rules{AllowNetworks: loopback, OwnHosts: []string{"127.0.0.1:8080"}}, true},
		{"own host with the scheme's port", "https://app.example.com/", Rules{OwnHosts: []string{"app.example.com:443"}}, false},
		{"own IPv6 host", "https://[::1]/", Rules{AllowNetworks: loopback, OwnHosts: []string{"[::1]"}}, false},
		{"own IPv6 host, spelled out", "https://[0:0:0:0:0:0:0:1]/", Rules{AllowNetworks: loopback, OwnHosts: []string{"[::1]"}}, false},
		{"opened network, localhost", "https://localhost:9999/", Rules{AllowNetworks: loopback, Resolver: SystemResolver()}, true},
		{"opened network, localhost in capitals", "https://LOCALHOST:9999/", Rules{AllowNetworks: loopback, Resolver: SystemResolver()}, true},
		{"opened network, below localhost", "https://hooks.localhost/", Rules{AllowNetworks: loopback, Resolver: SystemResolver()}, true},
		{"opened network and http, localhost", "http://localhost:9090/hooks", Rules{AllowHTTP: true, AllowNetworks: loopback, Resolver: SystemResolver()}, true},
		{"opened IPv4 loopback, localhost", "https://localhost/", Rules{AllowNetworks: prefixes("127.0.0.0/8"), Resolver: SystemResolver()}, true},
		{"opened IPv6 loopback, localhost", "https://localhost/", Rules{AllowNetworks: prefixes("::1/128"), Resolver: SystemResolver()}, true},
		{"opened network, localhost is in another", "https://localhost/", Rules{AllowNetworks: prefixes("10.0.0.0/8"), Resolver: SystemResolver()}, false},
		{"opened network, another name that is partly in it", "https://receiver/", Rules{AllowNetworks: prefixes("127.0.0.0/8"), Resolver: resolvesTo{"127.0.0.1", "::1"}}, false},
		{"own port of localhost", "https://localhost:8080/", Rules{AllowNetworks: loopback, OwnHosts: []string{"127.0.0.1:8080"}, Resolver: SystemResolver()}, false},
		{"own IP by another name", "https://localhost:8080/", Rules{AllowNetworks: loopback, OwnHosts: []string{"127.0.0.1:8080"}, Resolver: resolvesTo{"127.0.0.1"}}, false},

		{"name without addresses", "https://hooks.example.com/", Rules{Resolver: resolvesTo{}}, false},
		{"name that resolves to a mapped public address", "https://hooks.example.com/", Rules{Resolver: resolvesTo{"::ffff:93.184.215.14"}}, true},
		{"name that contains a private address", "https://127.0.0.1.nip.example.com/", Rules{Resolver: resolvesTo{"127.0.0.1"}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckURL(t.Context(), tt.url, tt.rules)
			if !tt.ok {
				mustReject(t, err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// Each error names the first reason, even if a later check would fail too.
func TestCheckURLSentences(t *testing.T) {
	const odd = "Write an IPv4 address as four decimal numbers without leading zeros, an IPv6 address in brackets and not as a mapped IPv4 address."
	tests := []struct{ name, url, want string }{
		{"empty", "", "Enter an address."},
		{"http", "http://hooks.example.com/", "The address must start with https://."},
		{"credentials", "https://user:hunter2@hooks.example.com/", "The address must not contain a user name or password."},
		{"space", "https://hooks.example.com/a b", "The address must not contain spaces, control characters or backslashes."},
		{"fragment", "https://hooks.example.com/#x", "The address must not contain a fragment (#)."},
		{"other letters", "https://münchen.example/", "The address must be plain ASCII: write a host name with other letters in its xn-- form and percent-encode them elsewhere."},
		{"zone", "https://[fe80::1%25eth0]/", "The host must not be percent-encoded or carry an IPv6 zone."},
		{"no host", "https:///x", "The address has no host."},
		{"bad escape in the path", "https://hooks.example.com/%zz", "This is not a valid URL."},
		{"port", "https://hooks.example.com:0/", "The port must be a number from 1 to 65535."},
		{"colon", "https://hooks.example.com:/", "The address has a colon after the host but no port."},
		{"trailing dot", "https://hooks.example.com./", "The host name must not end with a dot."},
		{"one label", "https://hooks/", "The host name must be complete, such as hooks.example.com."},
		{"not a name", "https://*.example.com/", "The host is neither a valid host name nor an IP address."},
		{"hexadecimal address", "https://0x7f.1/", odd},
		{"mapped address", "https://[::ffff:8.8.8.8]/", odd},
		{"private name", "https://db.internal/", "Names ending in internal belong to private networks. Webhooks are sent to public internet addresses only."},
		{"localhost", "https://localhost:8443/", "Names ending in localhost belong to private networks. Webhooks are sent to public internet addresses only."},
		{"loopback", "https://127.0.0.1/", "127.0.0.1 is a loopback address. Webhooks are sent to public internet addresses only."},
		{"private", "https://[fd00::1]/", "fd00::1 is in a private network. Webhooks are sent to public internet addresses only."},
		{"link-local", "https://169.254.169.254/", "169.254.169.254 is a link-local address. Webhooks are sent to public internet addresses only."},
		{"multicast", "https://224.0.0.1/", "224.0.0.1 is a multicast address. Webhooks are sent to public internet addresses only."},
		{"reserved", "https://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1 is in a reserved range. Webhooks are sent to public internet addresses only."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckURL(t.Context(), tt.url, Rules{})
			mustReject(t, err)
			if err.Error() != tt.want {
				t.Errorf("error %q, want %q", err, tt.want)
			}
		})
	}
}

// The sentences about what a name resolves to, or does not.
func TestCheckURLExplainsLookups(t *testing.T) {
	for _, tt := range []struct {
		host     string
		resolver Resolver
		want     string
	}{
		{"localhost", SystemResolver(), "localhost resolves to an IP address that is a loopback address. Webhooks are sent to public internet addresses only."},
		{"hooks.example.com", resolvesTo{"10.0.0.1"}, "hooks.example.com resolves to an IP address that is in a private network. Webhooks are sent to public internet addresses only."},
		{"hooks.example.com", lookupFails(&net.DNSError{IsNotFound: true, Server: "10.0.0.53"}), "The name hooks.example.com does not exist in DNS."},
		{"hooks.example.com", lookupFails(&net.DNSError{IsTemporary: true, Server: "10.0.0.53"}), "The name hooks.example.com could not be looked up in DNS just now."},
	} {
		err := CheckURL(t.Context(), "https://"+tt.host+"/", Rules{AllowNetworks: prefixes("192.168.0.0/16"), Resolver: tt.resolver})
		mustReject(t, err)
		if err.Error() != tt.want {
			t.Errorf("error %q, want %q", err, tt.want)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := CheckURL(ctx, "https://hooks.example.com/", Rules{Resolver: lookupFails(ctx.Err())})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller cancelled: %v", err)
	}
}

type lookupFunc func(ctx context.Context, network, host string) ([]netip.Addr, error)

func (f lookupFunc) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return f(ctx, network, host)
}

// lookupFails is a Resolver whose lookups end with the error.
func lookupFails(err error) Resolver {
	return lookupFunc(func(context.Context, string, string) ([]netip.Addr, error) { return nil, err })
}

func TestGuardRejectsZonesAndTheZeroAddr(t *testing.T) {
	open := newGuard(prefixes("0.0.0.0/0", "::/0"))
	if open.allows(netip.Addr{}) {
		t.Error("no address is allowed with every network open")
	}
	for _, ip := range []string{"fe80::1%eth0", "2606:4700::1%eth0", "::1%lo"} {
		if open.allows(netip.MustParseAddr(ip)) {
			t.Errorf("%s is allowed with every network open", ip)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, address := range slices.Concat(hostileURLs, harmlessURLs) {
		f.Add(address)
	}
	for _, ip := range hostileIPs {
		f.Add(literalURL(ip))
	}
	guard := newGuard(nil)
	f.Fuzz(func(t *testing.T, raw string) {
		err := CheckURL(t.Context(), raw, Rules{})
		if err != nil {
			var blocked *AddressError
			if !errors.As(err, &blocked) || blocked.Detail == "" {
				t.Errorf("rejected without a sentence: %v", err)
			}
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || len(raw) > 2048 {
			t.Fatalf("accepted %q", raw)
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if !guard.allows(ip) || ip.Is4In6() {
				t.Errorf("accepted the address %s", ip)
			}
		} else if readsAsIPv4(host) {
			t.Errorf("accepted %q, an IPv4 address to the C library", host)
		}
	})
}

// readsAsIPv4 reports whether the C library's inet_aton would take host for an
// IPv4 address: one to four decimal, octal or hexadecimal numbers.
func readsAsIPv4(host string) bool {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return false
	}
	for _, part := range parts {
		// ParseUint also accepts prefixes that C does not, and underscores.
		if strings.ContainsAny(part, "_oO") || len(part) > 1 && strings.ContainsAny(part[1:2], "bB") {
			return false
		}
		if _, err := strconv.ParseUint(part, 0, 64); err != nil {
			return false
		}
	}
	return true
}
