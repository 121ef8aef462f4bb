package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxAddress = 2048
	// Saving an address waits this long for DNS, no more.
	lookupTime = 5 * time.Second
)

// Rules say which addresses CheckURL accepts. The zero value is the rule of
// production without a DNS lookup.
type Rules struct {
	// AllowNetworks opens networks that are not the public internet. When there
	// are any, names such as localhost, whose meaning is private, are allowed
	// too: where they lead decides.
	AllowNetworks []netip.Prefix
	// AllowHTTP accepts http:// beside https://.
	AllowHTTP bool
	// OwnHosts are the service's own hosts, refused: "name" for every port of
	// it, "name:port" for one. It is the Host of a parsed url.URL.
	OwnHosts []string
	// Resolver, when set, resolves a host name, and every answer must be
	// allowed. Without it names are judged by their spelling alone.
	Resolver Resolver
}

// AddressError says why a webhook address is refused.
type AddressError struct {
	// Detail is one or two sentences for the person who entered the address.
	// They never repeat its credentials, path or query.
	Detail string
}

func (e *AddressError) Error() string { return e.Detail }

// CheckURL returns nil when raw is an address webhooks may be sent to under the
// rules, as far as can be told now: where a name leads is checked again at every
// delivery, by Client. It returns *AddressError for an address that is refused,
// or the context's error when that ended first. A lookup takes 5 seconds at most.
func CheckURL(ctx context.Context, raw string, rules Rules) error {
	at, err := parseAddress(raw, rules.AllowHTTP, len(rules.AllowNetworks) > 0)
	if err != nil {
		return err
	}
	if at.isOneOf(rules.OwnHosts) {
		return refuse("This address belongs to the service itself.")
	}
	guard := newGuard(rules.AllowNetworks)
	if at.ip.IsValid() {
		if !guard.allows(at.ip) {
			return &AddressError{Detail: (&refusedError{ip: at.ip}).Error()}
		}
		return nil
	}
	if rules.Resolver == nil {
		return nil
	}

	lookup, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	ips, err := resolve(lookup, rules.Resolver, at.host)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &AddressError{Detail: dnsSentence(at.host, err)}
	}
	for _, ip := range ips {
		if !guard.allows(ip) {
			return &AddressError{Detail: (&refusedError{name: at.host, ip: ip}).Error()}
		}
		if (address{host: ip.String(), port: at.port}).isOneOf(rules.OwnHosts) {
			return refuse("This address belongs to the service itself.")
		}
	}
	return nil
}

func refuse(format string, args ...any) error {
	return &AddressError{Detail: fmt.Sprintf(format, args...)}
}

// address is a webhook address whose spelling is in order.
type address struct {
	url  *url.URL
	host string     // lower case, without brackets and port
	port uint16     // the scheme's own when none was written
	ip   netip.Addr // set when the host is an IP address
}

// parseAddress checks everything about an address that its text shows. It
// returns *AddressError.
//
// What another URL or address parser might read differently is refused rather
// than interpreted, so that no component behind this one sees another host.
func parseAddress(raw string, allowHTTP, allowPrivateNames bool) (address, error) {
	authority, err := rawAuthority(raw, allowHTTP)
	if err != nil {
		return address{}, err
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host != authority {
		return address{}, refuse("This is not a valid URL.")
	}

	at := address{url: u, host: strings.ToLower(u.Hostname())}
	if at.port, err = parsePort(u); err != nil {
		return address{}, err
	}
	if strings.HasPrefix(u.Host, "[") || endsInNumber(at.host) {
		at.ip, err = parseIP(at.host, strings.HasPrefix(u.Host, "["))
		return at, err
	}
	return at, checkName(at.host, allowPrivateNames)
}

// rawAuthority returns what stands between scheme and path, having refused what
// a URL parser might hide.
func rawAuthority(raw string, allowHTTP bool) (string, error) {
	if raw == "" {
		return "", refuse("Enter an address.")
	}
	if len(raw) > maxAddress {
		return "", refuse("The address is longer than %d characters.", maxAddress)
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= ' ' || c == 0x7f || c == '\\':
			return "", refuse("The address must not contain spaces, control characters or backslashes.")
		case c >= 0x80:
			return "", refuse("The address must be plain ASCII: write a host name with other letters in its xn-- form and percent-encode them elsewhere.")
		case c == '#':
			return "", refuse("The address must not contain a fragment (#).")
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	isHTTP := strings.EqualFold(scheme, "http")
	if !ok || !strings.EqualFold(scheme, "https") && !(allowHTTP && isHTTP) {
		return "", refuse("The address must start with https://.")
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	switch {
	case authority == "":
		return "", refuse("The address names no host.")
	case strings.Contains(authority, "@"):
		return "", refuse("The address must not contain a user name or password.")
	case strings.Contains(authority, "%"):
		return "", refuse("The host must not be percent-encoded or carry an IPv6 zone.")
	}
	return authority, nil
}

func parsePort(u *url.URL) (uint16, error) {
	text := u.Port()
	switch {
	case text == "" && strings.HasSuffix(u.Host, ":"):
		return 0, refuse("The address has a colon after the host but no port.")
	case text == "" && u.Scheme == "http":
		return 80, nil
	case text == "":
		return 443, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, refuse("The port must be a number from 1 to 65535.")
	}
	return uint16(port), nil
}

// endsInNumber reports whether the last label is a number, decimal or
// hexadecimal. Such a host is an IPv4 address to some parsers (WHATWG URL,
// inet_aton), and never a name on the internet.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

func parseIP(host string, bracketed bool) (netip.Addr, error) {
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Is4In6() || ip.Is6() != bracketed {
		return netip.Addr{}, refuse("Write an IPv4 address as four decimal numbers without leading zeros, an IPv6 address in brackets and not as a mapped IPv4 address.")
	}
	return ip, nil
}

// privateSuffixes are names that mean something only inside a network: RFC 6761,
// RFC 6762 (with its appendix G), RFC 7686, RFC 8375, ICANN's reservation of
// .internal, and what home routers use.
var privateSuffixes = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private",
	"corp", "home", "lan", "home.arpa", "onion", "invalid",
}

// checkName checks a host name. Underscores are allowed: they do occur.
func checkName(host string, allowPrivate bool) error {
	if strings.HasSuffix(host, ".") {
		return refuse("The host name must not end with a dot.")
	}
	if len(host) > 253 {
		return refuse("The host name is longer than 253 characters.")
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return refuse("The host is neither a valid host name nor an IP address.")
		}
	}
	if allowPrivate {
		return nil
	}
	if !strings.Contains(host, ".") && host != "localhost" {
		return refuse("The host name must be complete, such as hooks.example.com.")
	}
	for _, suffix := range privateSuffixes {
		if rest, ok := strings.CutSuffix(host, suffix); ok && (rest == "" || strings.HasSuffix(rest, ".")) {
			return refuse("Names ending in %s lead into private networks. Webhooks are sent to public internet addresses only.", suffix)
		}
	}
	return nil
}

// isOneOf reports whether the address is on one of the hosts, given as "name" or
// "name:port".
func (at address) isOneOf(hosts []string) bool {
	port := strconv.Itoa(int(at.port))
	for _, own := range hosts {
		name, ownPort, err := net.SplitHostPort(own)
		if err != nil {
			name, ownPort = strings.Trim(own, "[]"), port
		}
		if strings.EqualFold(strings.TrimSuffix(name, "."), at.host) && ownPort == port {
			return true
		}
	}
	return false
}
