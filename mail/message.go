package mail

import (
	"bytes"
	netmail "net/mail"
	"regexp"
	"strings"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Address is a sender or a recipient.
type Address struct {
	// Name is shown by mail programs and may be empty. Control characters and line ends
	// in it become spaces.
	Name  string
	Email string
}

// Message is an e-mail to one person.
type Message struct {
	// ID identifies the message and is the same each time it is sent: 1 to 128 letters,
	// digits and -_+=, with single dots between them. The Message-ID is the ID and the
	// sender's domain.
	ID string
	To Address
	// Subject is cleaned like a name.
	Subject string
	// Text and HTML are alternatives with the same content. HTML may be empty.
	Text string
	HTML string
}

const (
	// Longer names and subjects are truncated: mail programs show no more of a name, and
	// no header comes near the 998 bytes of a line.
	maxName    = 100
	maxSubject = 250
	// The longest address that SMTP allows.
	maxEmail = 254
)

// messageID matches the left side of a Message-ID: RFC 5322's dot-atom-text with fewer
// characters.
var messageID = regexp.MustCompile(`^[A-Za-z0-9_+=-]+(\.[A-Za-z0-9_+=-]+)*$`)

// composedMessage is a message in the form that is sent.
type composedMessage struct {
	from, to string // the envelope, in angle brackets
	// international: the recipient's address has non-ASCII letters, so the server must
	// offer SMTPUTF8.
	international bool
	content       []byte
}

// compose returns the message to send, or *Error if m is invalid.
func (c *Client) compose(m Message) (composedMessage, error) {
	to, ok := parseEmail(m.To.Email)
	switch {
	case !ok:
		return composedMessage{}, &Error{Permanent: true, Detail: "The recipient's address is not an e-mail address."}
	case len(m.ID) > 128 || !messageID.MatchString(m.ID):
		return composedMessage{}, &Error{Permanent: true, Detail: "The message's id is not valid in a Message-ID."}
	case m.Text == "":
		return composedMessage{}, &Error{Permanent: true, Detail: "The message has no text."}
	}
	to.Name = oneLine(m.To.Name, maxName)

	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(c.from)
	msg.ToMailAddress(to)
	msg.Subject(oneLine(m.Subject, maxSubject))
	msg.SetMessageIDWithValue(m.ID + "@" + c.domain)
	msg.SetDateWithValue(c.now().UTC())
	// Keeps automatic replies away (RFC 3834).
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}

	var content bytes.Buffer
	if _, err := msg.WriteTo(&content); err != nil {
		return composedMessage{}, &Error{Detail: "The message could not be composed."}
	}
	return composedMessage{
		from:          "<" + c.from.Address + ">",
		to:            "<" + to.Address + ">",
		international: !isASCII(to.Address),
		content:       content.Bytes(),
	}, nil
}

// parseEmail accepts only a plain address, without a name, a comment, surrounding white
// space or quotes: a careless server might read quoted text as a parameter.
func parseEmail(email string) (*netmail.Address, bool) {
	if len(email) > maxEmail || strings.ContainsFunc(email, unicode.IsControl) {
		return nil, false
	}
	parsed, err := netmail.ParseAddress(email)
	if err != nil || parsed.Address != email {
		return nil, false
	}
	return parsed, true
}

// oneLine returns the text without anything that a parser might take for the end of a
// line or for an encoded word, for use in a header.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if strings.Contains(text, "?=") {
		text = strings.ReplaceAll(text, "=?", "= ?")
	}
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit-1]) + "…"
	}
	return text
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}
