package mail

import (
	"bytes"
	"io"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"millwright/mail/mailtest"
)

func TestNamesAndSubjects(t *testing.T) {
	long := strings.Repeat("word ", 100)
	tests := []struct {
		name     string
		in       string
		subject  string // as shown
		fullName string // as shown; "" means the same as the subject
	}{
		{"plain", "Ann Field", "Ann Field", ""},
		{"empty", "", "", ""},
		{"not ASCII", "Zoë Grüßer – 李雷", "Zoë Grüßer – 李雷", ""},
		{"emoji", "👩‍🔧 done", "👩‍🔧 done", ""},
		{"quotes and commas", `Field, "Ann" \ (boss) <ann@other.example>; x:`, `Field, "Ann" \ (boss) <ann@other.example>; x:`, ""},
		{"CR and LF", "Ann\r\nBcc: eve@example.net", "Ann Bcc: eve@example.net", ""},
		{"LF", "Ann\n\nBody", "Ann Body", ""},
		{"CR", "Ann\rBcc: eve@example.net", "Ann Bcc: eve@example.net", ""},
		{"folded", "Ann\r\n Field", "Ann Field", ""},
		{"not ASCII, CR and LF", "Zoë\r\nBcc: eve@example.net", "Zoë Bcc: eve@example.net", ""},
		{"other line ends", "a\vb\fc\u0085d\u2028e\u2029f\x00g\x1bh\u009bi", "a b c d e f g h i", ""},
		{"white space around", "  \tAnn \n", "Ann", ""},
		{"invalid UTF-8", "Ann\xff\xfe", "Ann\uFFFD", ""},
		{"an encoded word", "=?utf-8?q?Eve=0D=0ABcc:x?=", "= ?utf-8?q?Eve=0D=0ABcc:x?=", ""},
		{"the end of an encoded word", "is a=?", "is a=?", ""},
		{"long", long, long[:249] + "…", long[:99] + "…"},
		{"long, not ASCII", strings.Repeat("ü", 300), strings.Repeat("ü", 249) + "…", strings.Repeat("ü", 99) + "…"},
		{"one long word", strings.Repeat("x", 250), strings.Repeat("x", 250), strings.Repeat("x", 99) + "…"},
	}
	server := mailtest.NewServer(t, mailtest.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := newTestClient(t, server, func(o *Options) { o.From.Name = tt.in })
			message := testMessage()
			message.To.Name, message.Subject = tt.in, tt.in
			if err := client.Send(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			if tt.fullName == "" {
				tt.fullName = tt.subject
			}
			messages := server.Messages()
			m := messages[len(messages)-1]
			if m.Subject != tt.subject || m.To.Name != tt.fullName || m.From.Name != tt.fullName {
				t.Errorf("subject %q, to %q, from %q", m.Subject, m.To.Name, m.From.Name)
			}
			if m.To.Address != message.To.Email || m.From.Address != testFrom.Email || m.Text != message.Text {
				t.Errorf("to %v, from %v, text %q", m.To, m.From, m.Text)
			}
			checkHeaders(t, m.Raw)
		})
	}
}

// checkHeaders checks that the message has exactly the headers that Send writes, each
// once.
func checkHeaders(t *testing.T, raw []byte) {
	t.Helper()
	parsed, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	want := []string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}
	var got []string
	for name, values := range parsed.Header {
		for range values {
			got = append(got, name)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n\x00") {
			t.Errorf("header line %q", line)
		}
	}
}

func TestMessagesThatCannotBeSent(t *testing.T) {
	const noAddress, noID = "The recipient's address is not an e-mail address.", "The message's id is not valid in a Message-ID."
	to := func(email string) func(*Message) { return func(m *Message) { m.To.Email = email } }
	id := func(id string) func(*Message) { return func(m *Message) { m.ID = id } }
	tests := []struct {
		name   string
		change func(*Message)
		detail string
	}{
		{"no address", to(""), noAddress},
		{"no domain", to("ann.field"), noAddress},
		{"no local part", to("@example.com"), noAddress},
		{"two at signs", to("ann@field@example.com"), noAddress},
		{"a name", to("Ann <ann@example.com>"), noAddress},
		{"brackets", to("<ann@example.com>"), noAddress},
		{"a comment", to("ann@example.com (Ann)"), noAddress},
		{"two addresses", to("ann@example.com, eve@example.net"), noAddress},
		{"white space around", to(" ann@example.com"), noAddress},
		{"line end", to("ann@example.com\n"), noAddress},
		{"another command", to("ann@example.com>\r\nRCPT TO:<eve@example.net"), noAddress},
		{"quotes", to(`"ann field"@example.com`), noAddress},
		{"parameter in quotes", to(`"eve@example.net> ORCPT=ann"@example.com`), noAddress},
		{"line end in quotes", to("\"ann\r\n field\"@example.com"), noAddress},
		{"control character", to("ann@exam\u0085ple.com"), noAddress},
		{"parameter", to("ann@example.com> NOTIFY=NEVER <x"), noAddress},
		{"too long", to(strings.Repeat("a", 250) + "@example.com"), noAddress},
		{"no id", id(""), noID},
		{"id with a line end", id("note\r\nBcc: eve@example.net"), noID},
		{"id with an at sign", id("note@example.com"), noID},
		{"id with a bracket", id("note>"), noID},
		{"id with white space", id("no te"), noID},
		{"id ends in a dot", id("note."), noID},
		{"id with two dots", id("no..te"), noID},
		{"id not ASCII", id("nöte"), noID},
		{"id too long", id(strings.Repeat("x", 129)), noID},
		{"no text", func(m *Message) { m.Text = "" }, "The message has no text."},
	}
	server := mailtest.NewServer(t, mailtest.Options{SMTPUTF8: true})
	client := newTestClient(t, server)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			message := testMessage()
			tt.change(&message)
			if !mustFail(t, client.Send(t.Context(), message), tt.detail).Permanent {
				t.Error("the error is not permanent")
			}
			if server.Seen(mailtest.Connect) > 0 {
				t.Error("the client connected to the server")
			}
		})
	}
}

func TestUnusualAddresses(t *testing.T) {
	emails := []string{
		"o'hara+tag@sub.example.com", "a@b", "ann@[192.0.2.1]", "ann@xn--exmple-cua.com", "!#$%&'*/=?^_`{|}~@example.com",
		strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 90) + "example",
	}
	server := mailtest.NewServer(t, mailtest.Options{})
	client := newTestClient(t, server)
	for n, email := range emails {
		message := testMessage()
		message.To.Email = email
		if err := client.Send(t.Context(), message); err != nil {
			t.Errorf("%s: %v", email, err)
		} else if m := server.Messages()[n]; m.Recipient != email || m.To.Address != email {
			t.Errorf("%s: recipient %q, to %v", email, m.Recipient, m.To)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("note_1", "Ann Field", "ann@example.com", "Done", "Text", "<p>HTML")
	f.Add("a.b", "Ann\r\nBcc: x@y", `"a b"@example.com`, "=?utf-8?q?=0D?= \r\n\r\n", ".\r\n.\r\n", "")
	f.Add("x", "ü\u2028\x00", "grå@example.com", strings.Repeat("ü", 400), "\r", "\x00")
	client, err := New(Options{URL: "smtp://localhost:25", From: testFrom})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, name, email, subject, text, html string) {
		message, err := client.compose(Message{ID: id, To: Address{Name: name, Email: email}, Subject: subject, Text: text, HTML: html})
		if err != nil {
			return
		}
		if message.to != "<"+email+">" || strings.ContainsAny(email, " <>\"") || strings.ContainsFunc(email, unicode.IsControl) {
			t.Errorf("envelope to %q for %q", message.to, email)
		}
		if html == "" {
			// A message with one part has the part's encoding among its headers.
			message.content = bytes.Replace(message.content, []byte("Content-Transfer-Encoding: quoted-printable\r\n"), nil, 1)
		}
		checkHeaders(t, message.content)
		parsed, err := netmail.ReadMessage(bytes.NewReader(message.content))
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.Header.Get("Message-Id"); got != "<"+id+"@millwright.example>" {
			t.Errorf("Message-ID %q", got)
		}
		if list, err := parsed.Header.AddressList("To"); err != nil || len(list) != 1 || list[0].Address != email {
			t.Errorf("To %q, error %v", list, err)
		}
		shown, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
		if err != nil || shown != oneLine(subject, maxSubject) || !utf8.ValidString(shown) || strings.ContainsFunc(shown, unicode.IsControl) {
			t.Errorf("subject %q shown as %q, error %v", subject, shown, err)
		}
		if _, err := io.Copy(io.Discard, parsed.Body); err != nil {
			t.Error(err)
		}
	})
}
