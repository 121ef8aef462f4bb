package mailtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const valid = "From: Mill <mill@example.com>\r\nTo: =?utf-8?q?Ann_F=C3=BCld?= <ann@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n" +
	"Date: Sun, 01 Mar 2026 07:30:00 +0000\r\nMessage-ID: <1@example.com>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/alternative; boundary=xx\r\n\r\n" +
	"--xx\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\nHi=\r\n, Z=C3=B6\r\n.\r\n\r\n" +
	"--xx\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n<p>Hi</p>\r\n" +
	"--xx--\r\n"

// send sends a message with the standard library's client.
func send(server *Server, recipient string) error {
	return smtp.SendMail(server.Addr(), nil, "mill@example.com", []string{recipient}, []byte(valid))
}

// client is connected to a server and has read its greeting.
type client struct {
	t *testing.T
	*textproto.Conn
}

func dial(t *testing.T, server *Server) client {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// A missing reply must not block until the timeout of go test.
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	c := client{t, textproto.NewConn(conn)}
	c.expect("220 ")
	return c
}

// say sends a line and expects a reply that begins with reply.
func (c client) say(line, reply string) {
	c.t.Helper()
	if _, err := io.WriteString(c.W, line+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
	if err := c.W.Flush(); err != nil {
		c.t.Fatal(err)
	}
	c.expect(reply)
}

func (c client) expect(reply string) {
	c.t.Helper()
	for {
		line, err := c.ReadLine()
		if err != nil {
			c.t.Fatalf("want %q: %v", reply, err)
		}
		if len(line) > 3 && line[3] == '-' {
			continue
		}
		if !strings.HasPrefix(line, reply) {
			c.t.Errorf("reply %q, want %q", line, reply)
		}
		return
	}
}

// expectEnd expects the server to have closed the connection.
func (c client) expectEnd() {
	c.t.Helper()
	if line, err := c.ReadLine(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("the connection is open: read %q, error %v", line, err)
	}
}

func TestMessage(t *testing.T) {
	server := NewServer(t, Options{})
	if err := send(server, "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	messages := server.Messages()
	if len(messages) != 1 {
		t.Fatalf("%d messages", len(messages))
	}
	m := messages[0]
	if m.Sender != "mill@example.com" || m.Recipient != "ann@example.com" || m.From.Name != "Mill" || m.To.Name != "Ann Füld" ||
		m.To.Address != "ann@example.com" || m.Subject != "Grüße" || m.MessageID != "<1@example.com>" ||
		m.Text != "Hi, Zö\n.\n" || m.HTML != "<p>Hi</p>" || !slices.Equal(m.Parts, []string{"text/plain", "text/html"}) ||
		string(m.Raw) != valid || m.User != "" || m.Encrypted {
		t.Errorf("message %+v", m)
	}
	if want := []string{"EHLO localhost", "MAIL FROM:<mill@example.com> BODY=8BITMIME", "RCPT TO:<ann@example.com>", "DATA", "QUIT"}; !slices.Equal(server.Commands(), want) {
		t.Errorf("commands %q", server.Commands())
	}
}

func TestProtocol(t *testing.T) {
	const from, to = "MAIL FROM:<mill@example.com>", "RCPT TO:<ann@example.com>"
	auth := Options{User: "mill", Password: "hunter2"}
	tests := []struct {
		name    string
		options Options
		lines   [][2]string // a line and the beginning of its reply
	}{
		{"hello comes first", Options{}, [][2]string{{from, "503 "}, {"HELO x", "250 "}, {from, "250 "}}},
		{"sender comes first", Options{}, [][2]string{{"EHLO x", "250 "}, {to, "503 "}, {"DATA", "503 "}, {from, "250 "}, {"DATA", "503 "}}},
		{"one sender", Options{}, [][2]string{{"EHLO x", "250 "}, {from, "250 "}, {from, "503 "}, {"RSET", "250 "}, {from, "250 "}}},
		{"one recipient", Options{}, [][2]string{{"EHLO x", "250 "}, {from, "250 "}, {to, "250 "}, {to, "452 "}}},
		{"paths", Options{}, [][2]string{
			{"EHLO x", "250 "}, {"MAIL FROM: <a@b>", "501 "}, {"MAIL FROM:a@b", "501 "}, {"MAIL TO:<a@b>", "501 "}, {"MAIL", "501 "},
			{"mail from:<a@b>", "250 "}, {"RCPT FROM:<a@b>", "501 "}, {"RCPT TO:<>", "501 "}, {"RCPT TO:<a@b> NOTIFY=NEVER", "501 "}, {"RCPT TO:<a b@c>", "501 "},
		}},
		{"parameters", Options{}, [][2]string{{"EHLO x", "250 "}, {from + " SMTPUTF8", "555 "}, {from + " SIZE=3", "555 "}, {from + " BODY=8BITMIME", "250 "}}},
		{"non-ASCII letters", Options{SMTPUTF8: true}, [][2]string{
			{"EHLO x", "250 "}, {"MAIL FROM:<ü@b>", "553 "}, {from, "250 "}, {"RCPT TO:<ü@b>", "553 "}, {"RSET", "250 "},
			{from + " SMTPUTF8", "250 "}, {"RCPT TO:<ü@b>", "250 "},
		}},
		{"other commands", Options{}, [][2]string{{"NOOP", "250 "}, {"VRFY ann", "500 "}, {"", "500 "}, {"STARTTLS", "502 "}, {"AUTH PLAIN", "538 "}, {"QUIT", "221 "}}},
		{"STARTTLS before AUTH", Options{Security: StartTLS, User: "mill", Password: "hunter2"}, [][2]string{
			{"EHLO x", "250 "}, {"AUTH PLAIN AG1pbGwAaHVudGVyMg==", "538 "}, {from, "530 "},
		}},
		{"AUTH PLAIN", auth, [][2]string{
			{"EHLO x", "250 "}, {from, "530 "}, {"AUTH PLAIN AG1pbGwAaHVudGVyMw==", "535 5.7.8 no user mill with password hunter3"},
			{"AUTH PLAIN bWlsbA==", "501 "}, {"AUTH XOAUTH2", "504 "}, {"AUTH PLAIN", "334 "}, {"AG1pbGwAaHVudGVyMg==", "235 "}, {from, "250 "},
		}},
		{"AUTH LOGIN", auth, [][2]string{
			{"EHLO x", "250 "}, {"AUTH LOGIN", "334 VXNlcm5hbWU6"}, {"bWlsbA==", "334 UGFzc3dvcmQ6"}, {"aHVudGVyMw==", "535 "},
			{"AUTH LOGIN bWlsbA==", "334 "}, {"aHVudGVyMg==", "235 "}, {from, "250 "},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, NewServer(t, tt.options))
			for _, exchange := range tt.lines {
				c.say(exchange[0], exchange[1])
			}
		})
	}
}

func TestMalformedMessages(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(valid, old) {
			t.Fatalf("the message does not contain %q", old)
		}
		return strings.Replace(valid, old, with, 1)
	}
	tests := []struct{ name, message, reply string }{
		{"well-formed", valid, "250 "},
		{"bare LF", replace("Hi=\r\n", "Hi\n"), "554 5.6.0 malformed: a line that does not end in CR and LF"},
		{"bare CR", replace("Hi=\r\n", "H\ri\r\n"), "554 5.6.0 malformed: a line that does not end in CR and LF"},
		{"long line", replace("Hi=", strings.Repeat("x", 999)), "554 5.6.0 malformed: a line of more than 998 bytes"},
		{"no subject", replace("Subject: ", "X: "), "554 5.6.0 malformed: 0 headers Subject"},
		{"two subjects", replace("Subject: ", "Subject: no\r\nSubject: "), "554 5.6.0 malformed: 2 headers Subject"},
		{"non-ASCII headers", replace("Mill", "Müll"), "554 5.6.0 malformed: non-ASCII headers"},
		{"no headers", "hello\r\n", "554 5.6.0 malformed: "},
		{"malformed date", replace("01 Mar", "March 1st"), "554 5.6.0 malformed: "},
		{"malformed address", replace("<mill@", "<mill"), "554 5.6.0 malformed: From: "},
		{"two addresses", replace("<mill@example.com>", "<mill@example.com>, eve@example.com"), "554 5.6.0 malformed: 2 addresses in From"},
		{"character set of the subject", replace("=?utf-8?q?Gr", "=?x?q?Gr"), "554 5.6.0 malformed: "},
		{"character set of the text", replace("UTF-8", "latin1"), `554 5.6.0 malformed: character set "latin1"`},
		{"transfer encoding", replace("quoted-printable", "8bit"), `554 5.6.0 malformed: transfer encoding "8bit"`},
		{"quoted-printable", replace("=C3=B6", "\x01"), "554 5.6.0 malformed: "},
		{"order of parts", replace("text/plain", "text/html"), "554 5.6.0 malformed: alternatives are [text/html text/html]"},
		{"unknown part", replace("text/html", "image/png"), "554 5.6.0 malformed: a part of type image/png"},
		{"truncated", replace("--xx--", ""), "554 5.6.0 malformed: "},
		{"content type", replace("multipart/alternative; ", ";"), "554 5.6.0 malformed: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := NewServer(t, Options{})
			c := dial(t, server)
			c.say("EHLO x", "250 ")
			c.say("MAIL FROM:<mill@example.com>", "250 ")
			c.say("RCPT TO:<ann@example.com>", "250 ")
			c.say("DATA", "354 ")
			c.say(strings.ReplaceAll(tt.message, "\r\n.", "\r\n..")+".", tt.reply)
			if want := strings.HasPrefix(tt.reply, "250"); len(server.Messages()) == 1 != want {
				t.Errorf("%d messages", len(server.Messages()))
			}
		})
	}
}

func TestMalformedLines(t *testing.T) {
	for _, line := range []string{"EHLO x\nNOOP", "EHLO x\rNOOP"} {
		c := dial(t, NewServer(t, Options{}))
		c.say(line, "500 5.5.2 ")
		c.expectEnd()
	}
}

func TestBehaviors(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*Server)
		errs    []string // the error of each message, or ""
		stored  int
	}{
		{"no misbehavior", func(*Server) {}, []string{"", ""}, 2},
		{"always", func(s *Server) { s.At(Sender, Reply(451, "no")) }, []string{"451 no", "451 no"}, 0},
		{"several lines", func(s *Server) { s.At(Sender, Reply(451, "no\nreally")) }, []string{"451 no\nreally"}, 0},
		{"once", func(s *Server) { s.Once(Sender, Reply(451, "no")) }, []string{"451 no", ""}, 1},
		{"once, in order, before always", func(s *Server) {
			s.At(Data, Reply(452, "c"))
			s.Once(Data, Reply(450, "a"))
			s.Once(Data, Reply(451, "b"))
		}, []string{"450 a", "451 b", "452 c", "452 c"}, 0},
		{"BehaveWell", func(s *Server) {
			s.At(Data, Drop())
			s.Once(Hello, Drop())
			s.Reject("", 550)
			s.BehaveWell()
		}, []string{""}, 1},
		{"greeting", func(s *Server) { s.Once(Connect, Reply(554, "no")) }, []string{"554 no", ""}, 1},
		{"drop before the message", func(s *Server) { s.Once(Data, Drop()) }, []string{"EOF", ""}, 1},
		{"drop after the message", func(s *Server) { s.Once(Accept, Drop()) }, []string{"EOF", ""}, 2},
		{"drop at the end", func(s *Server) { s.Once(Quit, Drop()) }, []string{"EOF", ""}, 2},
		{"rejected message", func(s *Server) { s.Once(Accept, Reply(554, "no")) }, []string{"554 no", ""}, 1},
		{"rejected recipient", func(s *Server) { s.Reject("ANN@example.com", 550) },
			[]string{"550 5.1.1 <ann@example.com>: recipient rejected", "550 5.1.1 <ann@example.com>: recipient rejected"}, 0},
		{"temporarily rejected recipient", func(s *Server) { s.Reject("ann@example.com", 451) }, []string{"451 4.1.1 <ann@example.com>: recipient rejected"}, 0},
		{"other recipient rejected", func(s *Server) { s.Reject("bob@example.com", 550) }, []string{""}, 1},
		{"all recipients rejected", func(s *Server) { s.Reject("", 550) }, []string{"550 5.1.1 <ann@example.com>: recipient rejected"}, 0},
		{"all recipients rejected except one", func(s *Server) {
			s.Reject("", 550)
			s.Reject("ann@example.com", 0)
		}, []string{""}, 1},
		{"down", (*Server).Down, []string{"EOF", "EOF"}, 0},
		{"down and up", func(s *Server) {
			s.Down()
			s.Up()
		}, []string{""}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := NewServer(t, Options{})
			tt.arrange(server)
			for n, want := range tt.errs {
				err := send(server, "ann@example.com")
				// The error of a connection that is closed before its first
				// use depends on the timing.
				if want == "EOF" && err != nil && !isReply(err) {
					continue
				}
				got := ""
				if err != nil {
					got = err.Error()
				}
				if reply, ok := errors.AsType[*textproto.Error](err); ok {
					got = fmt.Sprint(reply.Code, " ", reply.Msg)
				}
				if got != want {
					t.Errorf("message %d: %q, want %q", n, got, want)
				}
			}
			if n := len(server.Messages()); n != tt.stored {
				t.Errorf("%d messages, want %d", n, tt.stored)
			}
			if err := server.Wait(t.Context(), func() bool { return server.Seen(Connect) == len(tt.errs) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func isReply(err error) bool {
	_, ok := errors.AsType[*textproto.Error](err)
	return ok
}

func TestDownEndsConversations(t *testing.T) {
	server := NewServer(t, Options{})
	c := dial(t, server)
	server.Down()
	c.expectEnd()
}

func TestHang(t *testing.T) {
	server, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	server.At(Accept, Hang())
	sent := make(chan error)
	go func() { sent <- send(server, "ann@example.com") }()
	// The message is stored although its sender still waits.
	if messages, err := server.WaitForMessages(t.Context(), 1); err != nil || messages[0].MessageID != "<1@example.com>" {
		t.Errorf("messages %v, error %v", messages, err)
	}
	select {
	case err := <-sent:
		t.Errorf("the server did not hang: %v", err)
	default:
	}
	server.Close()
	if err := <-sent; err == nil || isReply(err) {
		t.Errorf("error %v", err)
	}
	if conn, err := net.Dial("tcp", server.Addr()); err == nil {
		conn.Close()
		t.Error("the server still listens after Close")
	}
}

func TestWait(t *testing.T) {
	server := NewServer(t, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("test over")
	// Wait starts before the first message and ends with the second.
	counts := make(chan int, 100)
	done := make(chan error)
	go func() {
		done <- server.Wait(ctx, func() bool {
			counts <- len(server.Messages())
			return len(server.Messages()) == 2
		})
	}()
	if n := <-counts; n != 0 {
		t.Errorf("%d messages before the first", n)
	}
	for range 2 {
		if err := send(server, "ann@example.com"); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}

	go func() {
		_, err := server.WaitForMessages(ctx, 3)
		done <- err
	}()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) || err.Error() != "wanted 3 messages, got 2: test over" {
		t.Errorf("error %v", err)
	}
}

func TestTLS(t *testing.T) {
	server := NewServer(t, Options{Security: StartTLS, User: "mill", Password: "hunter2"})
	for _, name := range []string{"127.0.0.1", "localhost", "mail.example.com"} {
		c, err := smtp.Dial(server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.StartTLS(&tls.Config{RootCAs: server.RootCAs(), ServerName: name}); err != nil {
			t.Fatal(err)
		}
		if offered, _ := c.Extension("STARTTLS"); offered {
			t.Error("STARTTLS is offered on an encrypted connection")
		}
		if offered, mechanisms := c.Extension("AUTH"); !offered || mechanisms != "PLAIN LOGIN" {
			t.Errorf("mechanisms %q", mechanisms)
		}
	}
}

func TestURL(t *testing.T) {
	tests := []struct {
		options Options
		want    string // ADDR stands for the address
	}{
		{Options{}, "smtp://ADDR"},
		{Options{User: "a@b", Password: "p/#"}, "smtp://a%40b:p%2F%23@ADDR"},
		{Options{Security: StartTLS}, "smtp://ADDR?starttls=required"},
		{Options{Security: ImplicitTLS, User: "a", Password: "b"}, "smtps://a:b@ADDR"},
	}
	for _, tt := range tests {
		server := NewServer(t, tt.options)
		if want := strings.Replace(tt.want, "ADDR", server.Addr(), 1); server.URL() != want {
			t.Errorf("%s, want %s", server.URL(), want)
		}
		if u, err := url.Parse(server.URL()); err != nil || u.Hostname() != "127.0.0.1" {
			t.Errorf("%v, error %v", u, err)
		}
	}
}
