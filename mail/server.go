package mail

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// security says when a connection is encrypted.
type security int

const (
	inClear     security = iota // not at all
	whenOffered                 // by STARTTLS, if the server offers it
	required                    // by STARTTLS, or no mail is sent
	fromStart                   // before the greeting
)

// server is a mail server and how to connect to it.
type server struct {
	host     string
	address  string // host:port
	security security
	user     string // "" for no authentication
	password string
}

// parseServer parses the URL of an SMTP server. Errors contain no part of it: in a
// malformed URL, the password can be anywhere.
func parseServer(raw string) (server, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return server{}, errors.New("the SMTP URL is malformed: it must be smtp:// or smtps://, then host:port or user:password@host:port, " +
			"with user and password percent-encoded")
	}
	if u.Scheme != "smtp" && u.Scheme != "smtps" {
		return server{}, errors.New("the SMTP URL does not start with smtp:// or smtps://")
	}
	if u.Hostname() == "" {
		return server{}, errors.New("the SMTP URL has no host")
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return server{}, errors.New("the SMTP URL has no port: it is usually 465 for smtps:// and 587 or 25 for smtp://")
	}
	if u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return server{}, errors.New("the SMTP URL has a path or fragment after its port; a / or # in a password must be percent-encoded")
	}

	s := server{host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), u.Port())}
	if u.User != nil {
		s.user = u.User.Username()
		s.password, _ = u.User.Password()
		if s.user == "" || s.password == "" {
			return server{}, errors.New("the SMTP URL has a user without a password, or a password without a user")
		}
		if strings.ContainsFunc(s.user+s.password, unicode.IsControl) {
			return server{}, errors.New("the SMTP URL has control characters in its user or password")
		}
	}
	s.security, err = chooseSecurity(u, s)
	return s, err
}

// chooseSecurity decides on TLS by the URL's scheme, its option starttls, the host and
// whether there is a password.
func chooseSecurity(u *url.URL, s server) (security, error) {
	query, err := url.ParseQuery(u.RawQuery)
	option, given := query["starttls"]
	if err != nil || len(query) > len(option) || len(option) > 1 {
		return 0, errors.New("the SMTP URL has an option other than one starttls; a ? in a password must be percent-encoded")
	}
	if u.Scheme == "smtps" {
		if given {
			return 0, errors.New("the SMTP URL has the option starttls, which smtps:// does not take")
		}
		return fromStart, nil
	}
	switch {
	case given && option[0] == "required":
		return required, nil
	case given && option[0] == "never" && s.user != "" && !isLoopback(s.host):
		return 0, errors.New("the SMTP URL has a password and starttls=never: the password would be sent unencrypted")
	case given && option[0] == "never":
		return inClear, nil
	case given:
		return 0, errors.New("the SMTP URL's option starttls is neither required nor never")
	case isLoopback(s.host):
		// Nothing crosses a network, and a certificate would be for another name.
		return inClear, nil
	case s.user != "":
		return required, nil
	default:
		return whenOffered, nil
	}
}

// isLoopback reports whether host is a loopback address or localhost.
func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
