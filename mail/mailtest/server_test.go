package mailtest

import (
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
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
	if err := c.PrintfLine("%s", line); err != nil {
		c.t.Fatal(err)
	}
	c.expect(reply)
}

func (c client) expect(reply string) {
	c.t.Helper()
	code, text, err := c.ReadResponse(0)
	if got := fmt.Sprint(code, " ", text); !strings.HasPrefix(got, reply) {
		c.t.Errorf("reply %q, %v; want %q", got, err, reply)
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
		{"hello comes first", Options{}, [][2]string{{from, "503 "}, {"EHLO x", "250 "}, {from, "250 "}}},
		{"sender comes first", Options{}, [][2]string{{"EHLO x", "250 "}, {to, "503 "}, {"DATA", "503 "}, {from, "250 "}, {"DATA", "503 "}}},
		{"one sender", Options{}, [][2]string{{"EHLO x", "250 "}, {from, "250 "}, {from, "503 "}, {"EHLO x", "250 "}, {from, "250 "}}},
		{"one recipient", Options{}, [][2]string{{"EHLO x", "250 "}, {from, "250 "}, {to, "250 "}, {to, "452 "}}},
		{"paths", Options{}, [][2]string{
			{"EHLO x", "250 "}, {"MAIL FROM: <a@b>", "501 "}, {"MAIL FROM:a@b", "501 "}, {"MAIL TO:<a@b>", "501 "}, {"MAIL", "501 "},
			{"mail from:<a@b>", "250 "}, {"RCPT FROM:<a@b>", "501 "}, {"RCPT TO:<>", "501 "}, {"RCPT TO:<a@b> NOTIFY=NEVER", "501 "}, {"RCPT TO:<a b@c>", "501 "},
		}},
		{"parameters", Options{}, [][2]string{{"EHLO x", "250 "}, {from + " SMTPUTF8", "555 "}, {from + " SIZE=3", "555 "}, {from + " BODY=8BITMIME", "250 "}}},
		{"non-ASCII letters", Options{SMTPUTF8: true}, [][2]string{
			{"EHLO x", "250 "}, {"MAIL FROM:<ü@b>", "553 "}, {from, "250 "}, {"RCPT TO:<ü@b>", "553 "}, {"EHLO x", "250 "},
			{from + " SMTPUTF8", "250 "}, {"RCPT TO:<ü@b>", "250 "},
		}},
		{"other commands", Options{}, [][2]string{{"VRFY ann", "500 "}, {"", "500 "}, {"STARTTLS", "502 "}, {"AUTH PLAIN", "538 "}, {"QUIT", "221 "}}},
		{"bare LF", Options{}, [][2]string{{"EHLO x\nQUIT", "500 5.5.2 "}}},
		{"bare CR", Options{}, [][2]string{{"EHLO x\rQUIT", "500 5.5.2 "}}},
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

// What the tests of package mail do not see of a misbehaving server.
func TestBehaviors(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(*Server)
		codes   []int // the reply to each message that is an error, or 0
		stored  int
	}{
		{"once, in order, before always", func(s *Server) {
			s.At(Data, Reply(452, "c"))
			s.Once(Data, Reply(450, "a"))
			s.Once(Data, Reply(451, "b"))
		}, []int{450, 451, 452, 452}, 0},
		{"BehaveWell", func(s *Server) {
			s.At(Data, Drop())
			s.Once(Hello, Drop())
			s.Reject("ann@example.com", 550)
			s.BehaveWell()
		}, []int{0}, 1},
		{"dropped after the message", func(s *Server) { s.Once(Accept, Drop()) }, []int{0, 0}, 2},
		{"rejected message", func(s *Server) { s.Once(Accept, Reply(554, "no")) }, []int{554, 0}, 1},
		{"another recipient rejected", func(s *Server) { s.Reject("bob@example.com", 550) }, []int{0}, 1},
		{"accepted again", func(s *Server) {
			s.Reject("ann@example.com", 550)
			s.Reject("ann@example.com", 0)
		}, []int{0}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := NewServer(t, Options{})
			tt.arrange(server)
			for n, want := range tt.codes {
				code := 0
				err := smtp.SendMail(server.Addr(), nil, "mill@example.com", []string{"ann@example.com"}, []byte(valid))
				if reply, ok := errors.AsType[*textproto.Error](err); ok {
					code = reply.Code
				}
				if code != want {
					t.Errorf("message %d: %v, want %d", n, err, want)
				}
			}
			if n := len(server.Messages()); n != tt.stored {
				t.Errorf("%d messages, want %d", n, tt.stored)
			}
		})
	}
}
