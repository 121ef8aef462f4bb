package mailtest

import (
	"net/smtp"
	"strings"
	"testing"
)

const valid = "From: Mill <mill@example.com>\r\nTo: =?utf-8?q?Ann_F=C3=BCld?= <ann@example.com>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n" +
	"Date: Sun, 01 Mar 2026 07:30:00 +0000\r\nMessage-ID: <1@example.com>\r\nMIME-Version: 1.0\r\n" +
	"Content-Type: multipart/alternative; boundary=xx\r\n\r\n" +
	"--xx\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\nHi=\r\n, Z=C3=B6\r\n.\r\n\r\n" +
	"--xx\r\nContent-Transfer-Encoding: quoted-printable\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n<p>Hi</p>\r\n" +
	"--xx--\r\n"

// The tests of messages rely on it.
func TestMalformedMessagesAreRejected(t *testing.T) {
	server := NewServer(t, Options{})
	for name, test := range map[string]struct{ old, with, problem string }{
		"well-formed":               {},
		"bare CR":                   {"Hi=\r\n", "H\ri\r\n", "a line that does not end in CR and LF"},
		"long line":                 {"Hi=", strings.Repeat("x", 999), "a line of more than 998 bytes"},
		"no subject":                {"Subject: ", "X: ", "0 headers Subject"},
		"two subjects":              {"Subject: ", "Subject: no\r\nSubject: ", "2 headers Subject"},
		"non-ASCII headers":         {"Mill", "Müll", "non-ASCII headers"},
		"malformed date":            {"01 Mar", "March 1st", "mail: "},
		"two addresses":             {"<mill@example.com>", "<mill@example.com>, eve@example.com", "2 addresses in From"},
		"character set of the text": {"UTF-8", "latin1", "character set"},
		"transfer encoding":         {"quoted-printable", "8bit", "transfer encoding"},
		"order of parts":            {"text/plain", "text/html", "alternatives are [text/html text/html]"},
		"truncated":                 {"--xx--", "", "EOF"},
	} {
		before := len(server.Messages())
		message := strings.Replace(valid, test.old, test.with, 1)
		err := smtp.SendMail(server.Addr(), nil, "mill@example.com", []string{"ann@example.com"}, []byte(message))
		if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: %v, want %q", name, err, test.problem)
		}
		if stored := len(server.Messages()) > before; stored != (test.problem == "") {
			t.Errorf("%s: stored %t", name, stored)
		}
	}
}
