package mailtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
)

// Message is a message that the server accepted.
type Message struct {
	// Sender and Recipient are the envelope's addresses.
	Sender, Recipient string
	// From, To and Subject are the decoded headers.
	From, To mail.Address
	Subject  string
	// MessageID is the header's value, in angle brackets.
	MessageID string
	// Text and HTML are the decoded parts, with \n for line ends; "" for a missing one.
	Text, HTML string
	// Parts are the media types of the parts, in order.
	Parts []string
	// Header has every header, not decoded; Raw is the message as received.
	Header mail.Header
	Raw    []byte
	// User is the authenticated user; Encrypted is true if the connection used TLS.
	User      string
	Encrypted bool
}

// read parses a message strictly.
func read(raw []byte, utf8 bool) (*Message, error) {
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !utf8 && !isASCII(string(head)) {
		return nil, errors.New("non-ASCII headers")
	}
	for _, name := range []string{"From", "To", "Subject", "Date", "Message-Id", "Mime-Version", "Content-Type"} {
		if n := len(parsed.Header[name]); n != 1 {
			return nil, fmt.Errorf("%d headers %s", n, name)
		}
	}
	m := &Message{Header: parsed.Header, Raw: raw, MessageID: parsed.Header.Get("Message-ID")}
	if _, err := parsed.Header.Date(); err != nil {
		return nil, err
	}
	for name, address := range map[string]*mail.Address{"From": &m.From, "To": &m.To} {
		list, err := parsed.Header.AddressList(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(list) != 1 {
			return nil, fmt.Errorf("%d addresses in %s", len(list), name)
		}
		*address = *list[0]
	}
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return nil, err
	}
	return m, m.readBody(parsed)
}

func (m *Message) readBody(parsed *mail.Message) error {
	media, parameters, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if media != "multipart/alternative" {
		return m.readPart(parsed.Header.Get, parsed.Body)
	}
	parts := multipart.NewReader(parsed.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := m.readPart(part.Header.Get, part); err != nil {
			return err
		}
	}
	if !slices.Equal(m.Parts, []string{"text/plain", "text/html"}) {
		return fmt.Errorf("alternatives are %v", m.Parts)
	}
	return nil
}

func (m *Message) readPart(header func(string) string, body io.Reader) error {
	media, parameters, err := mime.ParseMediaType(header("Content-Type"))
	if err != nil {
		return err
	}
	if charset := parameters["charset"]; !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("character set %q", charset)
	}
	if encoding := header("Content-Transfer-Encoding"); encoding != "quoted-printable" {
		return fmt.Errorf("transfer encoding %q", encoding)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(body))
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, media)
	switch content := strings.ReplaceAll(string(text), "\r\n", "\n"); media {
	case "text/plain":
		m.Text = content
	case "text/html":
		m.HTML = content
	default:
		return fmt.Errorf("a part of type %s", media)
	}
	return nil
}
