package webhook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxAddress = 2048
	// lookupTime bounds the DNS lookup when an address is saved.
	lookupTime = 5 * time.Second
)

// Rules restrict the addresses that CheckURL accepts. The zero value has production's rules,
// without a DNS lookup.
type Rules struct {
	// AllowNetworks allows networks outside the public internet. If there are any,
	// private names such as localhost are allowed too, and their IP addresses decide.
	AllowNetworks []netip.Prefix
	// AllowHTTP accepts http:// as well as https://.
	AllowHTTP bool
	// OwnHosts are the service's own hosts, which are rejected: "name" for all its
	// ports, "name:port" for one, as in the Host of a url.URL.
	OwnHosts []string
	// Resolver looks up host names; each IP address must be allowed. If it is nil,
	// only the name itself is checked.
	Resolver Resolver
}

// AddressError is the reason why a webhook address is rejected.
type AddressError struct {
	// Detail is for the person who entered the address: one or two sentences, without
	// the address's credentials, path and query.
	Detail string
}

func (e *AddressError) Error() string { return e.Detail }

// CheckURL returns nil if the rules allow webhooks to raw. A name can resolve to other
// IP addresses later, so Client checks again at each delivery. It returns *AddressError
// for a rejected address, or the context's error if that ended first. The lookup takes
// at most 5 seconds.
func CheckURL(ctx context.Context, raw string, rules Rules) error {
	at, err := parseAddress(raw, rules.AllowHTTP, len(rules.AllowNetworks) > 0)
	if err != nil {
		return err
	}
	if at.isOneOf(rules.OwnHosts) {
		return addressError("This address belongs to the service itself.")
	}
	guard := newGuard(rules.AllowNetworks)
	if at.ip.IsValid() {
		if !guard.allows(at.ip) {
			return &AddressError{Detail: (&blockedError{ip: at.ip}).Error()}
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
	blocked := slices.DeleteFunc(slices.Clone(ips), guard.allows)
	// localhost is accepted if one of its loopback addresses is allowed: only that is dialed.
	if len(blocked) == len(ips) || len(blocked) > 0 && !isLocalhost(at.host) {
		return &AddressError{Detail: (&blockedError{name: at.host, ip: blocked[0]}).Error()}
	}
	for _, ip := range ips {
		if (address{host: ip.String(), port: at.port}).isOneOf(rules.OwnHosts) {
			return addressError("This address belongs to the service itself.")
		}
	}
	return nil
}

// addressError returns an *AddressError with a sentence.
func addressError(format string, args ...any) error {
	return &AddressError{Detail: fmt.Sprintf(format, args...)}
}

// address is a parsed webhook address.
type address struct {
	url  *url.URL
	host string     // lower case, without brackets and port
	port uint16     // the scheme's default if the address has none
	ip   netip.Addr // valid if the host is an IP address
}

// parseAddress parses an address and checks all that its text shows. It returns
// *AddressError.
//
// It rejects what URL or IP parsers read differently, so that no later component sees
// another host.
func parseAddress(raw string, allowHTTP, allowPrivateNames bool) (address, error) {
	authority, err := rawAuthority(raw, allowHTTP)
	if err != nil {
		return address{}, err
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host != authority {
		return address{}, addressError("This is not a valid URL.")
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

// rawAuthority returns the text between scheme and path, and rejects what a URL parser
// might hide.
func rawAuthority(raw string, allowHTTP bool) (string, error) {
	if raw == "" {
		return "", addressError("Enter an address.")
	}
	if len(raw) > maxAddress {
		return "", addressError("The address is longer than %d characters.", maxAddress)
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c <= ' ' || c == 0x7f || c == '\\':
			return "", addressError("The address must not contain spaces, control characters or backslashes.")
		case c >= 0x80:
			return "", addressError("The address must be plain ASCII: write a host name with other letters in its xn-- form and percent-encode them elsewhere.")
		case c == '#':
			return "", addressError("The address must not contain a fragment (#).")
		}
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	isHTTP := strings.EqualFold(scheme, "http")
	if !ok || !strings.EqualFold(scheme, "https") && !(allowHTTP && isHTTP) {
		return "", addressError("The address must start with https://.")
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	switch {
	case authority == "":
		return "", addressError("The address has no host.")
	case strings.Contains(authority, "@"):
		return "", addressError("The address must not contain a user name or password.")
	case strings.Contains(authority, "%"):
		return "", addressError("The host must not be percent-encoded or carry an IPv6 zone.")
	}
	return authority, nil
}

func parsePort(u *url.URL) (uint16, error) {
	text := u.Port()
	switch {
	case text == "" && strings.HasSuffix(u.Host, ":"):
		return 0, addressError("The address has a colon after the host but no port.")
	case text == "" && u.Scheme == "http":
		return 80, nil
	case text == "":
		return 443, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, addressError("The port must be a number from 1 to 65535.")
	}
	return uint16(port), nil
}

// endsInNumber reports whether the last label is a decimal or hexadecimal number. Some
// parsers (WHATWG URL, inet_aton) read such a host as an IPv4 address, and no name on
// the internet ends so.
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
		return netip.Addr{}, addressError("Write an IPv4 address as four decimal numbers without leading zeros, an IPv6 address in brackets and not as a mapped IPv4 address.")
	}
	return ip, nil
}

// privateSuffixes are the names used only inside networks: RFC 6761, RFC 6762 (with
// appendix G), RFC 7686, RFC 8375, ICANN's reservation of .internal, and names used by home
// routers.
var privateSuffixes = []string{
	"localhost", "localdomain", "local", "internal", "intranet", "private",
	"corp", "home", "lan", "home.arpa", "onion", "invalid",
}

// checkName checks a host name. Underscores are allowed because some names have them.
func checkName(host string, allowPrivate bool) error {
	if strings.HasSuffix(host, ".") {
		return addressError("The host name must not end with a dot.")
	}
	if len(host) > 253 {
		return addressError("The host name is longer than 253 characters.")
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return addressError("The host is neither a valid host name nor an IP address.")
		}
	}
	if allowPrivate {
		return nil
	}
	if !strings.Contains(host, ".") && host != "localhost" {
		return addressError("The host name must be complete, such as hooks.example.com.")
	}
	for _, suffix := range privateSuffixes {
		if rest, ok := strings.CutSuffix(host, suffix); ok && (rest == "" || strings.HasSuffix(rest, ".")) {
			return addressError("Names ending in %s belong to private networks. Webhooks are sent to public internet addresses only.", suffix)
		}
	}
	return nil
}

// isOneOf reports whether the address's host is one of the hosts, which are "name" or
// "name:port".
func (at address) isOneOf(hosts []string) bool {
	port := strconv.Itoa(int(at.port))
	for _, own := range hosts {
		name, ownPort, err := net.SplitHostPort(own)
		if err != nil {
			name, ownPort = strings.Trim(own, "[]"), port
		}
		ip, _ := netip.ParseAddr(name)
		if (strings.EqualFold(strings.TrimSuffix(name, "."), at.host) || ip.IsValid() && ip == at.ip) && ownPort == port {
			return true
		}
	}
	return false
}
