package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	defaultTimeout = 30 * time.Second
	// Once the server has answered for the message, a goodbye is politeness.
	quitTime = 2 * time.Second
)

// Options of a Client. URL and From are needed.
type Options struct {
	// URL is the server, as smtp://host:port, smtp://user:password@host:port or
	// smtps://host:port, which speaks TLS from the start. With smtp://, STARTTLS
	// is used if the server offers it; with a password it must be offered.
	// ?starttls=required demands it without a password too. On this machine's
	// own loopback it is not used unless it is required; ?starttls=never forgoes
	// it elsewhere, without a password. Certificates are always verified.
	URL string
	// From is the sender of every message; the domain of its address stands in
	// every Message-ID and is what the server is greeted with.
	From Address
	// Now dates the messages; nil means time.Now.
	Now func() time.Time
	// Dial connects to the server. It is for tests: nil means a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RootCAs verify the server's certificate; nil means the system's.
	RootCAs *x509.CertPool
	// Timeout bounds a message from the DNS lookup to the server's acceptance.
	// 0 means 30 seconds.
	Timeout time.Duration
}

// Client sends messages, each over a connection of its own. Safe for concurrent
// use.
type Client struct {
	server  server
	from    *netmail.Address
	domain  string
	now     func() time.Time
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	timeout time.Duration
}

// New returns a client that is ready to use; it connects to nothing yet. Errors
// say what is wrong with the options and show none of them.
func New(options Options) (*Client, error) {
	server, err := parseServer(options.URL)
	if err != nil {
		return nil, err
	}
	from, ok := parseEmail(options.From.Email)
	if !ok || !isASCII(from.Address) {
		return nil, errors.New("the sender's address is not an e-mail address, or has characters beyond ASCII")
	}
	from.Name = oneLine(options.From.Name, maxName)
	c := &Client{
		server:  server,
		from:    from,
		domain:  from.Address[strings.LastIndexByte(from.Address, '@')+1:],
		now:     options.Now,
		dial:    options.Dial,
		tls:     &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server.host, RootCAs: options.RootCAs},
		timeout: options.Timeout,
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.dial == nil {
		c.dial = (&net.Dialer{}).DialContext
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	return c, nil
}

// Send hands the message to the server. It returns nil when the server accepted
// it, whatever happened to the connection afterwards, and otherwise *Error.
// It takes at most Timeout, and returns soon after ctx ends.
func (c *Client) Send(ctx context.Context, m Message) error {
	letter, err := c.compose(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeUp)
	defer cancel()
	s := &session{client: c}
	if err := s.run(ctx, letter); err != nil {
		return s.failure(ctx, err)
	}
	return nil
}

// step is what a session is at.
type step int

const (
	connecting step = iota
	securing
	greeting
	authenticating
	namingSender
	namingRecipient
	sending    // up to the end of the message
	concluding // from there to the answer
)

// session is one conversation with the server. The library's own client is not
// used: it sets deadlines of its own, leaves a connection open that failed
// before the first message, and tells what failed in the server's words.
type session struct {
	client *Client
	conn   net.Conn
	smtp   *smtp.Client
	at     step
}

// run returns nil when the server accepted the letter.
func (s *session) run(ctx context.Context, l letter) error {
	conn, err := s.client.dial(ctx, "tcp", s.client.server.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The conversation knows no context. It ends with its connection.
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	s.conn = conn
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.quit()
	if err := s.authenticate(); err != nil {
		return err
	}
	return s.transfer(l)
}

// open brings the session to where mail can be sent, but for authentication.
func (s *session) open(ctx context.Context) error {
	conn, server := s.conn, s.client.server
	if server.security == fromStart {
		s.at = securing
		secured := tls.Client(conn, s.client.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = secured
	}
	s.at = greeting
	client, err := smtp.NewClient(conn, server.host)
	if err != nil {
		return err
	}
	s.smtp = client
	if err := client.Hello(s.client.domain); err != nil {
		return err
	}
	if server.security != required && server.security != whenOffered {
		return nil
	}
	s.at = securing
	if offered, _ := client.Extension("STARTTLS"); offered {
		return client.StartTLS(s.client.tls)
	}
	if server.security == required {
		return &Error{Detail: "The mail server does not offer STARTTLS, which is required."}
	}
	return nil
}

func (s *session) authenticate() error {
	server := s.client.server
	if server.user == "" {
		return nil
	}
	s.at = authenticating
	// parseServer has seen to it already, but for a localhost that is elsewhere.
	if _, encrypted := s.smtp.TLSConnectionState(); !encrypted && !endsHere(s.conn) {
		return &Error{Detail: "The password was not sent, since the connection to the mail server is not encrypted."}
	}
	_, offered := s.smtp.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		return s.smtp.Auth(smtp.PlainAuth("", server.user, server.password, server.host, true))
	case slices.Contains(mechanisms, "LOGIN"):
		return s.smtp.Auth(smtp.LoginAuth(server.user, server.password, server.host, true))
	default:
		return &Error{Detail: "The mail server offers neither AUTH PLAIN nor AUTH LOGIN."}
	}
}

// endsHere reports whether the other end of conn is on this machine.
func endsHere(conn net.Conn) bool {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func (s *session) transfer(l letter) error {
	s.at = namingSender
	if offered, _ := s.smtp.Extension("SMTPUTF8"); l.international && !offered {
		return &Error{Permanent: true, Detail: "The mail server takes no addresses with letters beyond ASCII."}
	}
	// The library would ask for SMTPUTF8 whenever it is offered. Then a server
	// behind this one that does not offer it may refuse what it could have taken.
	s.smtp.SkipSMTPUTF8(!l.international)
	if err := s.smtp.Mail(l.from); err != nil {
		return err
	}
	s.at = namingRecipient
	if err := s.smtp.Rcpt(l.to); err != nil {
		return err
	}
	s.at = sending
	data, err := s.smtp.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(l.content); err != nil {
		return err
	}
	s.at = concluding
	return data.Close()
}

// quit takes leave without much waiting. Its error changes nothing any more.
func (s *session) quit() {
	_ = s.conn.SetDeadline(time.Now().Add(quitTime))
	_ = s.smtp.Quit()
}
