package mail

import (
	"bytes"
	netmail "net/mail"
	"regexp"
	"strings"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Address is someone whom mail comes from or goes to.
type Address struct {
	// Name is what mail programs show. Control characters and line ends in it
	// become spaces; it may be empty.
	Name  string
	Email string
}

// Message is an e-mail to one person.
type Message struct {
	// ID is unique to the message and the same whenever it is sent: 1 to 128
	// letters, digits, and -_+= with single dots between them. The Message-ID is
	// made of it and the sender's domain.
	ID string
	To Address
	// Subject is treated as a name is.
	Subject string
	// Text and HTML say the same. Text comes first, for mail programs that take
	// the last they understand; without HTML it goes alone.
	Text string
	HTML string
}

// What is longer is cut: the first is what mail programs show at most, the second
// leaves every header far from the 998 bytes a line may have.
const (
	maxName    = 100
	maxSubject = 250
	// The longest address SMTP has room for.
	maxEmail = 254
)

// messageID is the left side of a Message-ID, RFC 5322's dot-atom-text but for
// characters nobody needs.
var messageID = regexp.MustCompile(`^[A-Za-z0-9_+=-]+(\.[A-Za-z0-9_+=-]+)*$`)

// letter is a message as the server gets it.
type letter struct {
	from, to string // the envelope, in angle brackets
	// international: the recipient's address has letters beyond ASCII, so the
	// server must offer SMTPUTF8.
	international bool
	content       []byte
}

// compose returns *Error for a message that cannot be sent as it is.
func (c *Client) compose(m Message) (letter, error) {
	to, ok := parseEmail(m.To.Email)
	switch {
	case !ok:
		return letter{}, &Error{Permanent: true, Detail: "The recipient's address is not an e-mail address."}
	case len(m.ID) > 128 || !messageID.MatchString(m.ID):
		return letter{}, &Error{Permanent: true, Detail: "The message's id cannot be made a Message-ID."}
	case m.Text == "":
		return letter{}, &Error{Permanent: true, Detail: "The message has no text."}
	}
	to.Name = oneLine(m.To.Name, maxName)

	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(c.from)
	msg.ToMailAddress(to)
	msg.Subject(oneLine(m.Subject, maxSubject))
	msg.SetMessageIDWithValue(m.ID + "@" + c.domain)
	msg.SetDateWithValue(c.now().UTC())
	// So that nobody's holiday notice answers, RFC 3834.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}

	var content bytes.Buffer
	if _, err := msg.WriteTo(&content); err != nil {
		return letter{}, &Error{Detail: "The message could not be put together."}
	}
	return letter{
		from:          "<" + c.from.Address + ">",
		to:            "<" + to.Address + ">",
		international: !isASCII(to.Address),
		content:       content.Bytes(),
	}, nil
}

// parseEmail takes an address that is nothing but one: no name, no comment, no
// white space around it. Nor any quotes: nobody has such an address, and what
// stands in them might be a parameter to a careless server.
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

// oneLine returns text as it may stand in a header. Whatever a parser might take
// for a line's end or for an encoded word is gone.
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
