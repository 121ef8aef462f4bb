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
	// quitTime bounds QUIT, which no longer affects the message.
	quitTime = 2 * time.Second
)

// Options of a Client. URL and From are required.
type Options struct {
	// URL is the server: smtp://host:port, smtp://user:password@host:port or
	// smtps://host:port, which uses TLS from the start. With smtp://, STARTTLS is used
	// if the server offers it, and required with a password. ?starttls=required
	// requires it without a password too; ?starttls=never, only without a password,
	// does not use it. On loopback it is only used if required. Certificates are always
	// verified.
	URL string
	// From is the sender of every message. The domain of its address is used in
	// Message-IDs and in EHLO.
	From Address
	// Now returns the date of a message; nil means time.Now.
	Now func() time.Time
	// Dial connects to the server, for tests; nil means a net.Dialer's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RootCAs verify the server's certificate; nil means the system's.
	RootCAs *x509.CertPool
	// Timeout bounds Send, from the DNS lookup to the server's reply. 0 means 30 seconds.
	Timeout time.Duration
}

// Client sends messages, each over a separate connection. Safe for concurrent use.
type Client struct {
	server  server
	from    *netmail.Address
	domain  string
	now     func() time.Time
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	timeout time.Duration
}

// New returns a client. It does not connect yet. Errors name the invalid option
// and contain no values.
func New(options Options) (*Client, error) {
	server, err := parseServer(options.URL)
	if err != nil {
		return nil, err
	}
	from, ok := parseEmail(options.From.Email)
	if !ok || !isASCII(from.Address) {
		return nil, errors.New("the sender's address is not an e-mail address, or has non-ASCII characters")
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

// Send sends the message. It returns nil once the server has accepted it, otherwise
// *Error. It takes at most Timeout and returns soon after ctx ends.
func (c *Client) Send(ctx context.Context, m Message) error {
	composed, err := c.compose(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeUp)
	defer cancel()
	s := &session{client: c}
	if err := s.run(ctx, composed); err != nil {
		return s.failure(ctx, err)
	}
	return nil
}

// step is a step of a session.
type step int

const (
	connecting step = iota
	securing
	greeting
	authenticating
	namingSender
	namingRecipient
	sending    // until the end of the message
	concluding // until the reply to the message
)

// session is an SMTP session. It does not use go-mail's client, which sets its own
// deadlines, leaves a connection open if it fails before the first message, and returns
// the server's words in errors.
type session struct {
	client *Client
	conn   net.Conn
	smtp   *smtp.Client
	at     step
}

// run sends the message. It returns nil once the server has accepted it.
func (s *session) run(ctx context.Context, m composedMessage) error {
	conn, err := s.client.dial(ctx, "tcp", s.client.server.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The SMTP library takes no context: closing the connection ends the session.
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	s.conn = conn
	if err := s.open(ctx); err != nil {
		return err
	}
	defer s.quit()
	if err := s.authenticate(); err != nil {
		return err
	}
	return s.transfer(m)
}

// open greets the server and starts TLS if needed.
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
	// parseServer ensures this, unless localhost is another machine.
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

func (s *session) transfer(m composedMessage) error {
	s.at = namingSender
	if offered, _ := s.smtp.Extension("SMTPUTF8"); m.international && !offered {
		return &Error{Permanent: true, Detail: "The mail server accepts no addresses with non-ASCII letters."}
	}
	// The library would use SMTPUTF8 whenever it is offered. Then a relay that does not
	// offer it may reject a message that does not need it.
	s.smtp.SkipSMTPUTF8(!m.international)
	if err := s.smtp.Mail(m.from); err != nil {
		return err
	}
	s.at = namingRecipient
	if err := s.smtp.Rcpt(m.to); err != nil {
		return err
	}
	s.at = sending
	data, err := s.smtp.Data()
	if err != nil {
		return err
	}
	if _, err := data.Write(m.content); err != nil {
		return err
	}
	s.at = concluding
	return data.Close()
}

// quit ends the session. Errors do not matter.
func (s *session) quit() {
	_ = s.conn.SetDeadline(time.Now().Add(quitTime))
	_ = s.smtp.Quit()
}
