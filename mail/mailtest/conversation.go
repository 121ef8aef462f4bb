package mailtest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
)

// errGone ends a conversation.
var errGone = errors.New("the conversation is over")

// conversation is the state of one connection.
type conversation struct {
	server    *Server
	conn      net.Conn
	in        *bufio.Reader
	encrypted bool
	greeted   bool
	user      string // as authenticated
	mail      transaction
}

// transaction is the envelope of the next message.
type transaction struct {
	sender, recipient string
	begun, utf8       bool
}

func (s *Server) converse(conn net.Conn) {
	c := &conversation{server: s, conn: conn, in: bufio.NewReader(conn)}
	// Errors are expected: the client hung up, or the test asked for it.
	_ = c.run()
}

func (c *conversation) run() error {
	if c.server.options.Security == ImplicitTLS {
		if err := c.encrypt(); err != nil {
			return err
		}
	}
	if handled, err := c.act(c.server.reached(Connect, nil)); err != nil || handled {
		return err
	}
	if err := c.reply("220 mail.example.com ESMTP mailtest"); err != nil {
		return err
	}
	for {
		line, err := c.readLine()
		if err != nil {
			return err
		}
		c.server.change(func() { c.server.commands = append(c.server.commands, line) })
		if err := c.obey(line); err != nil {
			return err
		}
	}
}

func (c *conversation) encrypt() error {
	conn := tls.Server(c.conn, c.server.tlsConfig())
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.conn, c.in, c.encrypted = conn, bufio.NewReader(conn), true
	return nil
}

func (c *conversation) reply(lines ...string) error {
	_, err := io.WriteString(c.conn, strings.Join(lines, "\r\n")+"\r\n")
	return err
}

func (c *conversation) readLine() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	text, valid := strings.CutSuffix(line, "\r\n")
	if !valid || strings.ContainsRune(text, '\r') {
		_ = c.reply("500 5.5.2 lines end in CR and LF")
		return "", errGone
	}
	return text, nil
}

// act performs the behavior. If it returns false, the server does the right thing.
func (c *conversation) act(b Behavior) (handled bool, err error) {
	switch b.kind {
	case reply:
		lines := strings.Split(b.text, "\n")
		for n, line := range lines {
			separator := "-"
			if n == len(lines)-1 {
				separator = " "
			}
			lines[n] = fmt.Sprint(b.code) + separator + line
		}
		return true, c.reply(lines...)
	case drop:
		return true, errGone
	case hang:
		_, _ = io.Copy(io.Discard, c.conn)
		return true, errGone
	case normal:
	}
	return false, nil
}

var verbs = map[string]Step{
	"EHLO": Hello, "STARTTLS": Encrypt, "AUTH": Auth,
	"MAIL": Sender, "RCPT": Recipient, "DATA": Data, "QUIT": Quit,
}

func (c *conversation) obey(line string) error {
	verb, argument, _ := strings.Cut(line, " ")
	verb = strings.ToUpper(verb)
	if step, known := verbs[verb]; known {
		if handled, err := c.act(c.server.reached(step, nil)); err != nil || handled {
			return err
		}
	}
	switch verb {
	case "EHLO":
		return c.hello()
	case "STARTTLS":
		return c.startTLS()
	case "AUTH":
		return c.authenticate(argument)
	case "MAIL":
		return c.from(argument)
	case "RCPT":
		return c.to(argument)
	case "DATA":
		return c.data()
	case "QUIT":
		_ = c.reply("221 2.0.0 goodbye")
		return errGone
	default:
		return c.reply("500 5.5.1 not a command: " + line)
	}
}

func (c *conversation) hello() error {
	c.greeted, c.mail = true, transaction{}
	lines := []string{"250-mail.example.com", "250-8BITMIME"}
	if c.offersSTARTTLS() {
		lines = append(lines, "250-STARTTLS")
	}
	if c.offersAuth() {
		lines = append(lines, "250-AUTH "+strings.Join(c.server.options.Mechanisms, " "))
	}
	if c.server.options.SMTPUTF8 {
		lines = append(lines, "250-SMTPUTF8")
	}
	return c.reply(append(lines, "250 ENHANCEDSTATUSCODES")...)
}

func (c *conversation) offersSTARTTLS() bool {
	return c.server.options.Security == StartTLS && !c.encrypted
}

func (c *conversation) offersAuth() bool {
	return c.server.options.User != "" && !c.offersSTARTTLS()
}

func (c *conversation) startTLS() error {
	if !c.offersSTARTTLS() {
		return c.reply("502 5.5.1 STARTTLS is not offered")
	}
	if err := c.reply("220 2.0.0 go ahead"); err != nil {
		return err
	}
	c.greeted, c.user, c.mail = false, "", transaction{}
	return c.encrypt()
}

func (c *conversation) authenticate(argument string) error {
	mechanism, initial, _ := strings.Cut(argument, " ")
	var user, password string
	switch mechanism = strings.ToUpper(mechanism); {
	case !c.offersAuth():
		return c.reply("538 5.7.11 encryption is required")
	case mechanism == "PLAIN":
		plain, err := c.ask("", initial)
		if err != nil {
			return err
		}
		parts := strings.Split(plain, "\x00")
		if len(parts) != 3 {
			return c.reply("501 5.5.2 not PLAIN")
		}
		user, password = parts[1], parts[2]
	case mechanism == "LOGIN":
		var err error
		if user, err = c.ask("Username:", initial); err != nil {
			return err
		}
		if password, err = c.ask("Password:", ""); err != nil {
			return err
		}
	default:
		return c.reply("504 5.5.4 unknown mechanism")
	}
	if user != c.server.options.User || password != c.server.options.Password {
		return c.reply("535 5.7.8 no user " + user + " with password " + password)
	}
	c.user = user
	return c.reply("235 2.7.0 welcome, " + user)
}

// ask prompts the client unless it has given the value already, and decodes the value.
func (c *conversation) ask(prompt, given string) (string, error) {
	if given == "" {
		if err := c.reply("334 " + base64.StdEncoding.EncodeToString([]byte(prompt))); err != nil {
			return "", err
		}
		var err error
		if given, err = c.readLine(); err != nil {
			return "", err
		}
	}
	text, err := base64.StdEncoding.DecodeString(given)
	if err != nil {
		_ = c.reply("501 5.5.2 not base64")
		return "", errGone
	}
	return string(text), nil
}

var path = regexp.MustCompile(`^(?i:FROM|TO):<([^ ]*)>((?: [^ ]+)*)$`)

func (c *conversation) from(argument string) error {
	match := path.FindStringSubmatch(argument)
	if match == nil || !strings.EqualFold(argument[:5], "FROM:") {
		return c.reply("501 5.5.4 not a sender: " + argument)
	}
	switch {
	case !c.greeted:
		return c.reply("503 5.5.1 say EHLO first")
	case c.server.options.User != "" && c.user == "":
		return c.reply("530 5.7.0 authentication is required")
	case c.mail.begun:
		return c.reply("503 5.5.1 there is a sender already")
	}
	next := transaction{sender: match[1], begun: true}
	for parameter := range strings.FieldsSeq(match[2]) {
		switch {
		case parameter == "BODY=8BITMIME" || parameter == "BODY=7BIT":
		case parameter == "SMTPUTF8" && c.server.options.SMTPUTF8:
			next.utf8 = true
		default:
			return c.reply("555 5.5.4 unknown parameter " + parameter)
		}
	}
	if !next.utf8 && !isASCII(next.sender) {
		return c.reply("553 5.6.7 <" + next.sender + "> needs SMTPUTF8")
	}
	c.mail = next
	return c.reply("250 2.1.0 <" + next.sender + "> may send")
}

func (c *conversation) to(argument string) error {
	match := path.FindStringSubmatch(argument)
	if match == nil || !strings.EqualFold(argument[:3], "TO:") || match[1] == "" || match[2] != "" {
		return c.reply("501 5.1.3 not a recipient: " + argument)
	}
	recipient := match[1]
	switch {
	case !c.mail.begun:
		return c.reply("503 5.5.1 say MAIL first")
	case c.mail.recipient != "":
		return c.reply("452 4.5.3 one recipient per message")
	case !c.mail.utf8 && !isASCII(recipient):
		return c.reply("553 5.6.7 <" + recipient + "> needs SMTPUTF8")
	}
	switch rejection := c.server.rejection(recipient); rejection {
	case "":
	case hangs:
		_, _ = io.Copy(io.Discard, c.conn)
		return errGone
	default:
		return c.reply(rejection)
	}
	c.mail.recipient = recipient
	return c.reply("250 2.1.5 <" + recipient + "> may receive")
}

func (c *conversation) data() error {
	if c.mail.recipient == "" {
		return c.reply("503 5.5.1 say RCPT first")
	}
	if err := c.reply("354 end with a dot"); err != nil {
		return err
	}
	raw, problem, err := c.readData()
	if err != nil {
		return err
	}
	mail := c.mail
	c.mail = transaction{}

	message, err := read(raw, mail.utf8)
	if problem == "" && err != nil {
		problem = err.Error()
	}
	if problem != "" {
		return c.reply("554 5.6.0 malformed: " + problem)
	}
	message.Sender, message.Recipient = mail.sender, mail.recipient
	message.User, message.Encrypted = c.user, c.encrypted
	if handled, err := c.act(c.server.reached(Accept, message)); err != nil || handled {
		return err
	}
	return c.reply("250 2.0.0 message for <" + mail.recipient + "> accepted")
}

// readData returns the message without SMTP's dot stuffing, and a problem with its lines.
func (c *conversation) readData() (raw []byte, problem string, err error) {
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil, "", err
		}
		text, valid := bytes.CutSuffix(line, []byte("\r\n"))
		switch {
		case valid && string(text) == ".":
			return raw, problem, nil
		case !valid || bytes.ContainsRune(text, '\r'):
			problem = "a line that does not end in CR and LF"
		case len(line) > 1000:
			problem = "a line of more than 998 bytes"
		}
		raw = append(raw, bytes.TrimPrefix(line, []byte("."))...)
	}
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 127 })
}
