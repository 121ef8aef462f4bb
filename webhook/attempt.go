package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Kind is the machine-readable reason why an attempt got no response.
type Kind string

// The kinds of failed attempts.
const (
	KindTimeout           Kind = "timeout"            // no complete headers within the limit
	KindConnectionRefused Kind = "connection_refused" // nothing listens on the port
	KindUnreachable       Kind = "unreachable"        // no route to the host or its network
	KindDNS               Kind = "dns"                // the name could not be resolved
	KindTLS               Kind = "tls"                // no trustworthy TLS connection
	KindBlockedAddress    Kind = "blocked_address"    // the address is not allowed, or its text is not valid
	KindReset             Kind = "reset"              // the connection ended before the response's headers did
	KindBadResponse       Kind = "bad_response"       // the response was not HTTP, or its headers were too large
	KindCanceled          Kind = "canceled"           // the caller's context ended; the receiver may be healthy
	KindOther             Kind = "other"
)

// AttemptError is the reason why an attempt got no response.
type AttemptError struct {
	Kind Kind
	// Detail is a sentence for the people who run the receiver. It contains no more of
	// the address than its host.
	Detail string

	cause error
}

func (e *AttemptError) Error() string { return e.Detail }

// Unwrap returns the cause, or nil, for errors.Is and an operator's log. Its text may
// contain IP addresses of this machine and is not for display.
func (e *AttemptError) Unwrap() error { return e.cause }

// explain explains the error of a round trip to host.
func (c *Client) explain(attempt context.Context, err error, host string, connected bool) (Kind, string) {
	// First the end of the attempt itself: err only shows the step that it interrupted.
	if cause := context.Cause(attempt); cause != nil && !errors.Is(cause, errTimeUp) {
		return KindCanceled, "The attempt was stopped before a response came."
	} else if cause != nil && connected {
		return KindTimeout, "No response came within " + seconds(c.timeout) + "."
	} else if cause != nil {
		return KindTimeout, "No connection could be made within " + seconds(c.timeout) + "."
	}

	var (
		blocked   *blockedError
		lookup    *lookupError
		handshake *handshakeError
	)
	switch {
	case errors.As(err, &blocked):
		if blocked.name == "" && blocked.ip.String() != host {
			blocked = &blockedError{name: host, ip: blocked.ip}
		}
		return KindBlockedAddress, blocked.Error()
	case errors.As(err, &lookup):
		return KindDNS, dnsSentence(host, lookup.err)
	case isTimeout(err):
		// One IP address of several timed out, or the system's own limit was reached.
		return KindTimeout, host + " did not respond in time."
	case errors.Is(err, syscall.ECONNREFUSED):
		return KindConnectionRefused, host + " refused the connection."
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return KindUnreachable, host + " cannot be reached."
	case isReset(err):
		return KindReset, host + " closed the connection before responding."
	case errors.As(err, &handshake):
		return KindTLS, tlsSentence(host, handshake.err)
	case connected:
		return KindBadResponse, fmt.Sprintf("The response was not valid HTTP, or its headers were larger than %d KiB.", maxHeaderBytes>>10)
	default:
		return KindOther, "The request could not be sent."
	}
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " seconds"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isReset(err error) bool {
	ends := []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

func tlsSentence(host string, err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "The certificate of " + host + " is not signed by a known authority, or its chain is incomplete."
	case errors.As(err, &hostname):
		return "The certificate is not valid for " + host + "."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The certificate of " + host + " has expired or is not valid yet."
	case errors.As(err, &record):
		return host + " does not speak TLS on this port."
	default:
		return "No TLS connection with " + host + " could be agreed on; TLS 1.2 or later is needed."
	}
}
