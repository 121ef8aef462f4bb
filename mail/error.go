package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"syscall"
)

// Error is the reason why a message was not accepted, as far as is known.
type Error struct {
	// Permanent: the server permanently rejected this recipient or this message, or the
	// message is invalid. Sending it again does not help. Failures that an operator
	// could fix are not permanent.
	Permanent bool
	// AboutMessage: the server replied to this recipient or this message. Otherwise it would not accept
	// others either.
	AboutMessage bool
	// Code is the code of the server's reply, such as 550; 0 if there was none.
	Code int
	// Detail is a sentence for operators, without the recipient and the server's words.
	Detail string

	cause error
}

func (e *Error) Error() string { return e.Detail }

// Unwrap returns the error of the caller's context if that ended the session, otherwise
// nil: other errors contain servers' words, names and addresses.
func (e *Error) Unwrap() error { return e.cause }

var errTimeUp = errors.New("time limit reached")

// failure explains the error that ended the session.
func (s *session) failure(ctx context.Context, err error) *Error {
	var (
		own   *Error
		reply *textproto.Error
	)
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &reply):
		return replyError(s.at, reply)
	// If the context ended, err only shows the step that it interrupted.
	case errors.Is(context.Cause(ctx), errTimeUp):
		return &Error{Detail: s.timeSentence()}
	case ctx.Err() != nil:
		return &Error{Detail: "Sending was stopped before the mail server accepted the message.", cause: ctx.Err()}
	case s.at == securing && !isReset(err):
		return &Error{Detail: s.tlsSentence(err)}
	default:
		return &Error{Detail: networkSentence(s.at, err)}
	}
}

// enhanced matches a status code of RFC 3463 at the start of a reply's text.
var enhanced = regexp.MustCompile(`^([245])\.(\d{1,3})\.\d{1,3}\b`)

// replyError explains an unexpected reply. Only a permanent reply about the recipient or
// the message makes the error permanent.
func replyError(at step, reply *textproto.Error) *Error {
	code := strconv.Itoa(reply.Code)
	status := enhanced.FindStringSubmatch(reply.Msg)
	if status != nil {
		code += " " + status[0]
	}
	e := &Error{Code: reply.Code}
	switch at {
	case connecting, greeting:
		e.Detail = "The mail server rejected the connection (" + code + ")."
		return e
	case securing:
		e.Detail = "The mail server did not begin TLS (" + code + ")."
		return e
	case authenticating:
		e.Detail = "The mail server did not accept user and password (" + code + ")."
		return e
	case namingSender:
		e.Detail = "The mail server did not accept the sender (" + code + ")."
		return e
	case namingRecipient, sending, concluding:
	}

	subject := "message"
	if at == namingRecipient {
		subject = "recipient"
	}
	// Before the message, 5.7 is about policy: the server does not relay for us, or
	// rejects our IP address.
	policy := at != concluding && status != nil && status[2] == "7"
	// The server shuts down, commands are out of order, or authentication or encryption is missing.
	aboutConnection := slices.Contains([]int{421, 503, 530, 534, 535, 538}, reply.Code)
	e.AboutMessage = !(policy && reply.Code/100 == 5) && !aboutConnection
	if reply.Code/100 == 5 && !policy && !aboutConnection {
		e.Permanent = true
		e.Detail = "The mail server rejected the " + subject + " (" + code + ")."
	} else {
		e.Detail = "The mail server did not accept the " + subject + " for now (" + code + ")."
	}
	return e
}

const unknown = "; whether it accepted the message is not known."

func (s *session) timeSentence() string {
	limit := strconv.FormatFloat(s.client.timeout.Seconds(), 'f', -1, 64) + " seconds"
	switch s.at {
	case connecting:
		return "The mail server could not be reached within " + limit + "."
	case greeting:
		return "The mail server did not greet within " + limit + ". One that speaks TLS from the start needs smtps://."
	case concluding:
		return "The mail server did not respond within " + limit + unknown
	case securing, authenticating, namingSender, namingRecipient, sending:
	}
	return "The mail server did not accept the message within " + limit + "."
}

func networkSentence(at step, err error) string {
	var (
		lookup   *net.DNSError
		protocol textproto.ProtocolError
	)
	switch {
	case errors.As(err, &lookup):
		return "The name of the mail server could not be resolved."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The mail server refused the connection."
	case isReset(err) && at == concluding:
		return "The mail server closed the connection without a response" + unknown
	case isReset(err):
		return "The mail server closed the connection."
	case errors.As(err, &protocol):
		return "The mail server's response was not SMTP."
	case at == connecting:
		return "The mail server cannot be reached."
	default:
		return "The conversation with the mail server failed."
	}
}

func isReset(err error) bool {
	ends := []error{syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

func (s *session) tlsSentence(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return "The mail server's certificate is not signed by a known authority, or its chain is incomplete."
	case errors.As(err, &hostname):
		return "The mail server's certificate is not valid for its name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "The mail server's certificate has expired or is not valid yet."
	case errors.As(err, &record) && s.client.server.security == fromStart:
		return "The mail server does not speak TLS from the start on this port. One that offers STARTTLS needs smtp://."
	default:
		return "No TLS connection with the mail server could be agreed on; TLS 1.2 or later is needed."
	}
}
