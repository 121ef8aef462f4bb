package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"millwright/mail/mailtest"
)

const (
	testUser     = "relay+user"
	testPassword = "hunter2/§:@"
)

var (
	testTime = time.Date(2026, 3, 1, 9, 30, 0, 0, time.FixedZone("", 2*60*60))
	testFrom = Address{Name: "Millwright", Email: "notices@millwright.example"}
)

func testMessage() Message {
	return Message{
		ID:      "note_01.ann",
		To:      Address{Name: "Ann Field", Email: "ann.field@example.com"},
		Subject: "Work order 12 is done",
		Text:    "Hello Ann,\n\nit is done.\n",
		HTML:    "<p>Hello Ann,</p><p>it is done.</p>\n",
	}
}

// newTestClient returns a client of the server that trusts its certificate.
func newTestClient(t *testing.T, server *mailtest.Server, adjust ...func(*Options)) *Client {
	t.Helper()
	return newDialingClient(t, nil, append([]func(*Options){func(o *Options) {
		o.URL, o.Now, o.RootCAs = server.URL(), func() time.Time { return testTime }, server.RootCAs()
	}}, adjust...)...)
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// newDialingClient returns a client of smtp://mail.example.com:25 whose connections dial makes.
func newDialingClient(t *testing.T, dial dialer, adjust ...func(*Options)) *Client {
	t.Helper()
	options := Options{URL: "smtp://mail.example.com:25", From: testFrom, Dial: dial}
	for _, change := range adjust {
		change(&options)
	}
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// mustFail checks that err is an *Error with the detail and without secrets, and
// returns it.
func mustFail(t *testing.T, err error, detail string) *Error {
	t.Helper()
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v (%T), want *Error", err, err)
	}
	if failed.Detail != detail || failed.Error() != detail {
		t.Errorf("detail %q, want %q", failed.Detail, detail)
	}
	noSecrets(t, err)
	return failed
}

func noSecrets(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		shown := strings.ToLower(fmt.Sprintf("%v %+v %#v", err, err, err))
		for _, secret := range []string{"ann.field", "ann field", "example", testUser, "hunter2", "§", "127.0.0.1", "localhost", "aHVudGVyMi", "recipient rejected"} {
			if strings.Contains(shown, strings.ToLower(secret)) {
				t.Errorf("the error contains %q: %s", secret, shown)
			}
		}
	}
}

// oneMessage returns the only message that the server accepted.
func oneMessage(t *testing.T, server *mailtest.Server) mailtest.Message {
	t.Helper()
	messages := server.Messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages were accepted, want 1", len(messages))
	}
	return messages[0]
}

func TestSend(t *testing.T) {
	server := mailtest.NewServer(t, mailtest.Options{SMTPUTF8: true})
	client := newTestClient(t, server)
	if err := client.Send(t.Context(), testMessage()); err != nil {
		t.Fatal(err)
	}
	m, want := oneMessage(t, server), testMessage()
	if m.Sender != testFrom.Email || m.Recipient != want.To.Email {
		t.Errorf("envelope from %q to %q", m.Sender, m.Recipient)
	}
	if m.From.Name != testFrom.Name || m.From.Address != testFrom.Email || m.To.Name != want.To.Name || m.To.Address != want.To.Email {
		t.Errorf("headers from %v to %v", m.From, m.To)
	}
	if m.Subject != want.Subject || m.Text != want.Text || m.HTML != want.HTML {
		t.Errorf("subject %q, text %q, HTML %q", m.Subject, m.Text, m.HTML)
	}
	if m.MessageID != "<note_01.ann@millwright.example>" {
		t.Errorf("Message-ID %q", m.MessageID)
	}
	for name, want := range map[string]string{
		"Date": "Sun, 01 Mar 2026 07:30:00 +0000", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0",
		"User-Agent": "", "X-Mailer": "",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	commands := strings.Join(server.Commands(), "\n")
	const wanted = "EHLO millwright.example\nMAIL FROM:<notices@millwright.example> BODY=8BITMIME\nRCPT TO:<ann.field@example.com>\nDATA\nQUIT"
	if commands != wanted {
		t.Errorf("commands\n%s\nwant\n%s", commands, wanted)
	}
}

func TestInternationalAddress(t *testing.T) {
	message := testMessage()
	message.To.Email = "grå@exämple.com"
	t.Run("offered", func(t *testing.T) {
		server := mailtest.NewServer(t, mailtest.Options{SMTPUTF8: true})
		if err := newTestClient(t, server).Send(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		if m := oneMessage(t, server); m.Recipient != message.To.Email || m.To.Address != message.To.Email {
			t.Errorf("recipient %q, to %v", m.Recipient, m.To)
		}
	})
	t.Run("not offered", func(t *testing.T) {
		server := mailtest.NewServer(t, mailtest.Options{})
		err := newTestClient(t, server).Send(t.Context(), message)
		if failed := mustFail(t, err, "The mail server accepts no addresses with non-ASCII letters."); !failed.Permanent {
			t.Error("the error is not permanent")
		}
		if server.Seen(mailtest.Sender) > 0 || server.Seen(mailtest.Quit) != 1 {
			t.Errorf("commands %q", server.Commands())
		}
	})
}

// What the server replies or does not reply, by the step of the session. Afterwards other messages are sent.
func TestFailures(t *testing.T) {
	const closed = "The mail server closed the connection."
	reply := func(code int, text string) mailtest.Behavior {
		return mailtest.Reply(code, text+" ann.field@example.com Ann Field "+testPassword)
	}
	type failure struct {
		name     string
		at       mailtest.Step
		behavior mailtest.Behavior
		want     Error
	}
	tests := []failure{
		{"busy", mailtest.Connect, reply(421, "4.3.2"), Error{Code: 421, Detail: "The mail server rejected the connection (421 4.3.2)."}},
		{"no status", mailtest.Hello, reply(550, ""), Error{Code: 550, Detail: "The mail server rejected the connection (550)."}},
		{"no TLS now", mailtest.Encrypt, reply(454, "4.7.0"), Error{Code: 454, Detail: "The mail server did not begin TLS (454 4.7.0)."}},
		{"temporary", mailtest.Auth, reply(454, "4.7.0"), Error{Code: 454, Detail: "The mail server did not accept user and password (454 4.7.0)."}},
		{"unexpected code", mailtest.Auth, mailtest.Reply(334, "???"), Error{Detail: "The conversation with the mail server failed."}},
		{"permanent", mailtest.Sender, reply(553, "5.1.8"), Error{Code: 553, Detail: "The mail server did not accept the sender (553 5.1.8)."}},
		{"unknown", mailtest.Recipient, reply(550, "5.1.1"), Error{Permanent: true, AboutMessage: true, Code: 550, Detail: "The mail server rejected the recipient (550 5.1.1)."}},
		{"without status", mailtest.Recipient, reply(550, "no such user"), Error{Permanent: true, AboutMessage: true, Code: 550, Detail: "The mail server rejected the recipient (550)."}},
		{"temporary", mailtest.Recipient, reply(451, "4.1.1"), Error{AboutMessage: true, Code: 451, Detail: "The mail server did not accept the recipient for now (451 4.1.1)."}},
		{"greylisted", mailtest.Recipient, reply(450, "4.7.1"), Error{AboutMessage: true, Code: 450, Detail: "The mail server did not accept the recipient for now (450 4.7.1)."}},
		{"shutting down", mailtest.Recipient, reply(421, "4.3.2"), Error{Code: 421, Detail: "The mail server did not accept the recipient for now (421 4.3.2)."}},
		{"no relay", mailtest.Recipient, reply(554, "5.7.1"), Error{Code: 554, Detail: "The mail server did not accept the recipient for now (554 5.7.1)."}},
		{"login required", mailtest.Recipient, reply(530, ""), Error{Code: 530, Detail: "The mail server did not accept the recipient for now (530)."}},
		{"unexpected code", mailtest.Recipient, reply(354, "5.1.1"), Error{AboutMessage: true, Code: 354, Detail: "The mail server did not accept the recipient for now (354 5.1.1)."}},
		{"permanent", mailtest.Data, reply(554, "5.5.1"), Error{Permanent: true, AboutMessage: true, Code: 554, Detail: "The mail server rejected the message (554 5.5.1)."}},
		{"policy", mailtest.Data, reply(554, "5.7.1"), Error{Code: 554, Detail: "The mail server did not accept the message for now (554 5.7.1)."}},
		{"policy", mailtest.Accept, reply(550, "5.7.1"), Error{Permanent: true, AboutMessage: true, Code: 550, Detail: "The mail server rejected the message (550 5.7.1)."}},
		{"temporary", mailtest.Accept, reply(452, "4.3.1"), Error{AboutMessage: true, Code: 452, Detail: "The mail server did not accept the message for now (452 4.3.1)."}},
		{"several lines", mailtest.Accept, mailtest.Reply(554, "5.6.0 no\n5.6.0 really not"), Error{Permanent: true, AboutMessage: true, Code: 554, Detail: "The mail server rejected the message (554 5.6.0)."}},
		{"dropped", mailtest.Accept, mailtest.Drop(), Error{Detail: "The mail server closed the connection without a response; whether it accepted the message is not known."}},
	}
	for _, step := range []mailtest.Step{mailtest.Connect, mailtest.Hello, mailtest.Encrypt, mailtest.Auth, mailtest.Sender, mailtest.Recipient, mailtest.Data} {
		tests = append(tests, failure{"dropped", step, mailtest.Drop(), Error{Detail: closed}})
	}
	for _, tt := range tests {
		t.Run(string(tt.at)+", "+tt.name, func(t *testing.T) {
			server := mailtest.NewServer(t, mailtest.Options{Security: mailtest.StartTLS, User: testUser, Password: testPassword})
			var connection closeCounter
			client := newTestClient(t, server, connection.count)
			server.At(tt.at, tt.behavior)
			if failed := mustFail(t, client.Send(t.Context(), testMessage()), tt.want.Detail); *failed != tt.want {
				t.Errorf("the error is %+v, want %+v", *failed, tt.want)
			}
			if connection.times == 0 { // the library leaves it open
				t.Error("the connection is still open")
			}
			if n := len(server.Messages()); n > 0 && tt.behavior != mailtest.Drop() {
				t.Errorf("%d messages were accepted", n)
			}
			if server.Seen(mailtest.Sender) > 0 && server.Seen(mailtest.Quit) != 1 && tt.behavior != mailtest.Drop() {
				t.Errorf("commands %q", server.Commands())
			}

			server.BehaveWell()
			if err := client.Send(t.Context(), testMessage()); err != nil {
				t.Errorf("after BehaveWell: %v", err)
			}
		})
	}
}

func TestReadErrorsOfALostConnection(t *testing.T) {
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		client := newDialingClient(t, func(context.Context, string, string) (net.Conn, error) {
			conn, _ := net.Pipe()
			return brokenConn{conn, &net.OpError{Op: "read", Net: "tcp", Err: err}}, nil
		})
		mustFail(t, client.Send(t.Context(), testMessage()), "The mail server closed the connection.")
	}
}

type brokenConn struct {
	net.Conn
	err error
}

func (c brokenConn) Read([]byte) (int, error) { return 0, c.err }

func TestErrorsAfterAcceptanceAreIgnored(t *testing.T) {
	for _, behavior := range []mailtest.Behavior{mailtest.Drop(), mailtest.Reply(500, "5.5.1 what?"), mailtest.Reply(421, "4.3.2 bye")} {
		server := mailtest.NewServer(t, mailtest.Options{})
		server.At(mailtest.Quit, behavior)
		var connection closeCounter
		if err := newTestClient(t, server, connection.count).Send(t.Context(), testMessage()); err != nil || connection.times == 0 {
			t.Errorf("%+v: %v, closed %d times", behavior, err, connection.times)
		}
		oneMessage(t, server)
	}
}

func TestUnreachable(t *testing.T) {
	server := mailtest.NewServer(t, mailtest.Options{})
	client := newTestClient(t, server)
	failing := func(err error) *Client {
		return newDialingClient(t, func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		})
	}
	for _, tt := range []struct {
		name    string
		arrange func()
		client  *Client
		detail  string // of the failure, or empty
	}{
		{"down", server.Down, client, "The mail server closed the connection."},
		{"up again", server.Up, client, ""},
		{"nothing listens", server.Close, client, "The mail server refused the connection."},
		{"no such name", func() {}, failing(&net.DNSError{Err: "no such host", Name: "mail.example.com", IsNotFound: true}),
			"The name of the mail server could not be resolved."},
		{"other", func() {}, failing(errors.New("no route to mail.example.com")), "The mail server cannot be reached."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.arrange()
			err := tt.client.Send(t.Context(), testMessage())
			if tt.detail != "" && mustFail(t, err, tt.detail).Permanent || tt.detail == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// named makes the client call the server mail.example.com, which is not loopback.
func named(server *mailtest.Server, query string) func(*Options) {
	return func(o *Options) {
		before, _, _ := strings.Cut(o.URL, "?")
		o.URL = strings.Replace(before, "127.0.0.1", "mail.example.com", 1) + query
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Addr())
		}
	}
}

// remoteConn is a connection whose other end seems to be on another machine.
type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25} }

func TestTLS(t *testing.T) {
	inClear := mailtest.Options{}
	startTLS := mailtest.Options{Security: mailtest.StartTLS}
	implicit := mailtest.Options{Security: mailtest.ImplicitTLS}
	untrusted := func(_ *mailtest.Server, o *Options) { o.RootCAs = x509.NewCertPool() }
	call := func(query string) func(*mailtest.Server, *Options) {
		return func(s *mailtest.Server, o *Options) { named(s, query)(o) }
	}
	misnamed := func(s *mailtest.Server, o *Options) {
		named(s, "?starttls=required")(o)
		o.URL = strings.Replace(o.URL, "example.com", "example.net", 1)
	}
	scheme := func(from, to string) func(*mailtest.Server, *Options) {
		return func(_ *mailtest.Server, o *Options) { o.URL = strings.Replace(o.URL, from, to, 1) }
	}
	const (
		noOffer    = "The mail server does not offer STARTTLS, which is required."
		unknownOne = "The mail server's certificate is not signed by a known authority, or its chain is incomplete."
	)
	tests := []struct {
		name      string
		server    mailtest.Options
		adjust    func(*mailtest.Server, *Options)
		encrypted bool
		detail    string // of the failure, or empty
	}{
		{"loopback, nothing offered", inClear, nil, false, ""},
		{"loopback, offered", startTLS, scheme("?starttls=required", ""), false, ""},
		{"loopback, required", startTLS, nil, true, ""},
		{"required, not offered", inClear, call("?starttls=required"), false, noOffer},
		{"name, nothing offered", inClear, call(""), false, ""},
		{"name, offered", startTLS, call(""), true, ""},
		{"name, offered, not used", startTLS, call("?starttls=never"), false, ""},
		{"name, required", startTLS, call("?starttls=required"), true, ""},
		{"offered, unknown authority", startTLS, func(s *mailtest.Server, o *Options) { call("")(s, o); untrusted(s, o) }, false, unknownOne},
		{"required, unknown authority", startTLS, untrusted, false, unknownOne},
		{"another name", startTLS, misnamed, false, "The mail server's certificate is not valid for its name."},
		{"from the start", implicit, nil, true, ""},
		{"from the start, by name", implicit, call(""), true, ""},
		{"from the start, unknown authority", implicit, untrusted, false, unknownOne},
		{"from the start, not supported", inClear, scheme("smtp:", "smtps:"), false,
			"The mail server does not speak TLS from the start on this port. One that offers STARTTLS needs smtp://."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := mailtest.NewServer(t, tt.server)
			client := newTestClient(t, server, func(o *Options) {
				if tt.adjust != nil {
					tt.adjust(server, o)
				}
			})
			err := client.Send(t.Context(), testMessage())
			if tt.detail != "" {
				if mustFail(t, err, tt.detail).Permanent {
					t.Error("the error is permanent")
				}
				if server.Seen(mailtest.Sender) > 0 {
					t.Errorf("commands %q", server.Commands())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := oneMessage(t, server); m.Encrypted != tt.encrypted {
				t.Errorf("encrypted %v", m.Encrypted)
			}
		})
	}

	t.Run("an expired certificate", func(t *testing.T) {
		err := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "of mail.example.com"}}
		s := &session{client: newTestClient(t, mailtest.NewServer(t, startTLS)), at: securing}
		mustFail(t, s.failure(t.Context(), err), "The mail server's certificate has expired or is not valid yet.")
	})
}

func TestResponsesThatAreNeitherTLSNorSMTP(t *testing.T) {
	const noTLS = "No TLS connection with the mail server could be agreed on; TLS 1.2 or later is needed."
	untilTLS := []string{"220 hello\r\n", "250-hello\r\n250 STARTTLS\r\n", "220 go ahead\r\n"}
	for name, tt := range map[string]struct {
		replies []string
		detail  string
	}{
		"an old TLS version":        {append(slices.Clone(untilTLS), "\x15\x03\x01\x00\x02\x02\x46"), noTLS},
		"clear text after STARTTLS": {append(slices.Clone(untilTLS), "250-hello\r\n250 8BITMIME\r\n"), noTLS},
		"not SMTP":                  {[]string{"HTTP/1.1 400 Bad Request\r\n\r\n"}, "The mail server's response was not SMTP."},
	} {
		t.Run(name, func(t *testing.T) {
			client := newDialingClient(t, dialTo(func(conn net.Conn) {
				for _, reply := range tt.replies {
					io.WriteString(conn, reply)
					_, _ = conn.Read(make([]byte, 4096))
				}
			}))
			mustFail(t, client.Send(t.Context(), testMessage()), tt.detail)
		})
	}
}

func TestAuthentication(t *testing.T) {
	with := func(security mailtest.Security, mechanisms ...string) mailtest.Options {
		return mailtest.Options{Security: security, User: testUser, Password: testPassword, Mechanisms: mechanisms}
	}
	tests := []struct {
		name    string
		server  mailtest.Options
		command string // AUTH's, or empty
		detail  string // of the failure, or empty
	}{
		{"loopback, in clear", with(mailtest.InClear), "AUTH PLAIN", ""},
		{"STARTTLS", with(mailtest.StartTLS), "AUTH PLAIN", ""},
		{"TLS from the start", with(mailtest.ImplicitTLS), "AUTH PLAIN", ""},
		{"only LOGIN", with(mailtest.StartTLS, "LOGIN", "XOAUTH2"), "AUTH LOGIN", ""},
		{"PLAIN in lower case", with(mailtest.StartTLS, "login", "plain"), "AUTH PLAIN", ""},
		{"neither PLAIN nor LOGIN", with(mailtest.StartTLS, "XOAUTH2", "PLAIN-CLIENTTOKEN"), "", "The mail server offers neither AUTH PLAIN nor AUTH LOGIN."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := mailtest.NewServer(t, tt.server)
			err := newTestClient(t, server).Send(t.Context(), testMessage())
			commands := strings.Join(server.Commands(), "\n")
			if tt.command == "" && strings.Contains(commands, "AUTH") || !strings.Contains(commands, tt.command) {
				t.Errorf("commands\n%s\nwant %s", commands, tt.command)
			}
			if tt.detail != "" {
				if mustFail(t, err, tt.detail).Permanent {
					t.Error("the error is permanent")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m := oneMessage(t, server); m.User != testUser || m.Encrypted != (tt.server.Security != mailtest.InClear) {
				t.Errorf("user %q, encrypted %v", m.User, m.Encrypted)
			}
		})
	}
}

func TestAWrongPasswordIsRejected(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "LOGIN"} {
		server := mailtest.NewServer(t, mailtest.Options{
			Security: mailtest.StartTLS, User: testUser, Password: testPassword, Mechanisms: []string{mechanism},
		})
		client := newTestClient(t, server)
		client.server.password = "hunter2hunter2"
		failed := mustFail(t, client.Send(t.Context(), testMessage()), "The mail server did not accept user and password (535 5.7.8).")
		if failed.Permanent || failed.Code != 535 || server.Seen(mailtest.Sender) > 0 {
			t.Errorf("%s: permanent %v, code %d, commands %q", mechanism, failed.Permanent, failed.Code, server.Commands())
		}
	}
}

func TestPasswordIsNeverSentInClear(t *testing.T) {
	for host, detail := range map[string]string{
		// An attacker in between could have removed the offer.
		"mail.example.com": "The mail server does not offer STARTTLS, which is required.",
		// It is another machine here.
		"localhost": "The password was not sent, since the connection to the mail server is not encrypted.",
	} {
		t.Run(host, func(t *testing.T) {
			server := mailtest.NewServer(t, mailtest.Options{User: testUser, Password: testPassword})
			client := newTestClient(t, server, named(server, ""), func(o *Options) {
				o.URL = strings.Replace(o.URL, "mail.example.com", host, 1)
				dial := o.Dial
				o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := dial(ctx, network, address)
					return remoteConn{conn}, err
				}
			})
			if mustFail(t, client.Send(t.Context(), testMessage()), detail).Permanent || server.Seen(mailtest.Auth) > 0 {
				t.Errorf("the error is permanent, or the commands are %q", server.Commands())
			}
		})
	}
}

func TestCallerCancels(t *testing.T) {
	const stopped = "Sending was stopped before the mail server accepted the message."
	t.Run("before", func(t *testing.T) {
		server := mailtest.NewServer(t, mailtest.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failed := mustFail(t, newTestClient(t, server).Send(ctx, testMessage()), stopped)
		if failed.Permanent || !errors.Is(failed, context.Canceled) {
			t.Errorf("permanent %v, cause %v", failed.Permanent, failed.Unwrap())
		}
	})
	for _, step := range []mailtest.Step{mailtest.Connect, mailtest.Hello, mailtest.Encrypt, mailtest.Auth, mailtest.Sender, mailtest.Recipient, mailtest.Data, mailtest.Accept} {
		t.Run("at "+string(step), func(t *testing.T) {
			server := mailtest.NewServer(t, mailtest.Options{Security: mailtest.StartTLS, User: testUser, Password: testPassword})
			server.At(step, mailtest.Hang())
			failed := mustFail(t, newTestClient(t, server).Send(untilSeen(t, server, step), testMessage()), stopped)
			if failed.Permanent || !errors.Is(failed, context.Canceled) {
				t.Errorf("permanent %v, cause %v", failed.Permanent, failed.Unwrap())
			}
		})
	}
	t.Run("after", func(t *testing.T) {
		server := mailtest.NewServer(t, mailtest.Options{})
		server.At(mailtest.Quit, mailtest.Hang())
		if err := newTestClient(t, server).Send(untilSeen(t, server, mailtest.Quit), testMessage()); err != nil {
			t.Error(err)
		}
		oneMessage(t, server)
	})
}

// untilSeen returns a context that is canceled as soon as the step is reached.
func untilSeen(t *testing.T, server *mailtest.Server, step mailtest.Step) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = server.Wait(ctx, func() bool { return server.Seen(step) > 0 })
		cancel()
	}()
	return ctx
}

// closeCounter counts how often a connection is closed.
type closeCounter struct {
	net.Conn
	times int
}

// count makes it the client's connection.
func (c *closeCounter) count(o *Options) {
	o.Dial = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		c.Conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return c, err
	}
}

func (c *closeCounter) Close() error {
	c.times++
	return c.Conn.Close()
}

func TestContentOnTheWire(t *testing.T) {
	server := mailtest.NewServer(t, mailtest.Options{})
	message := testMessage()
	message.Text = ".\n..\nA dot:\r\n.\r\nQUIT\r\nGrüße – " + strings.Repeat("lang", 1000) + " \t\n=?utf-8?q?no?=\x00\n"
	message.HTML = "<p>" + strings.Repeat("ü", 3000) + "</p>"
	if err := newTestClient(t, server).Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	m := oneMessage(t, server)
	if want := strings.ReplaceAll(message.Text, "\r\n", "\n"); m.Text != want {
		t.Errorf("text %q, want %q", m.Text, want)
	}
	if m.HTML != message.HTML {
		t.Errorf("HTML %q", m.HTML)
	}
	for line := range bytes.Lines(m.Raw) {
		if len(line) > 80 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
	message.HTML = ""
	if err := newTestClient(t, server).Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	if m := server.Messages()[1]; len(m.Parts) != 1 || m.Parts[0] != "text/plain" {
		t.Errorf("text alone has the parts %v", m.Parts)
	}
}
