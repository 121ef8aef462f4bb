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
	"slices"
	"strings"
)

// errGone ends a conversation.
var errGone = errors.New("the conversation is over")

// conversation is the state of one connection. Its order is left to the client's library.
type conversation struct {
	server            *Server
	conn              net.Conn
	in                *bufio.Reader
	encrypted         bool
	user              string // as authenticated
	sender, recipient string
	utf8              bool // SMTPUTF8 was asked for
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
	conn := tls.Server(c.conn, c.server.tls)
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
	return strings.TrimSuffix(line, "\r\n"), err
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

func (c *conversation) obey(line string) error {
	verb, argument, _ := strings.Cut(line, " ")
	step := Step(strings.ToUpper(verb))
	if handled, err := c.act(c.server.reached(step, nil)); err != nil || handled {
		return err
	}
	switch step {
	case Hello:
		return c.hello()
	case Encrypt:
		if err := c.reply("220 2.0.0 go ahead"); err != nil {
			return err
		}
		return c.encrypt()
	case Auth:
		return c.authenticate(argument)
	case Sender:
		return c.from(argument)
	case Recipient:
		return c.to(argument)
	case Data:
		return c.data()
	case Quit:
		_ = c.reply("221 2.0.0 goodbye")
		return errGone
	case Connect, Accept: // no commands
	}
	return c.reply("500 5.5.1 not a command: " + line)
}

func (c *conversation) hello() error {
	lines := []string{"250-mail.example.com", "250-8BITMIME"}
	options := c.server.options
	starts := options.Security == StartTLS && !c.encrypted
	if starts {
		lines = append(lines, "250-STARTTLS")
	}
	if options.User != "" && !starts {
		lines = append(lines, "250-AUTH "+strings.Join(options.Mechanisms, " "))
	}
	if options.SMTPUTF8 {
		lines = append(lines, "250-SMTPUTF8")
	}
	return c.reply(append(lines, "250 ENHANCEDSTATUSCODES")...)
}

func (c *conversation) authenticate(argument string) error {
	mechanism, initial, _ := strings.Cut(argument, " ")
	var user, password string
	var err error
	if mechanism == "PLAIN" {
		var plain string
		plain, err = c.ask("", initial)
		if parts := strings.Split(plain, "\x00"); len(parts) == 3 {
			user, password = parts[1], parts[2]
		}
	} else if user, err = c.ask("Username:", initial); err == nil {
		password, err = c.ask("Password:", "")
	}
	if err != nil {
		return err
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

func (c *conversation) from(argument string) error {
	path, parameters, _ := strings.Cut(strings.TrimPrefix(argument, "FROM:"), " ")
	if c.server.options.User != "" && c.user == "" {
		return c.reply("530 5.7.0 authentication is required")
	}
	c.sender, c.utf8 = strings.Trim(path, "<>"), slices.Contains(strings.Fields(parameters), "SMTPUTF8")
	return c.reply("250 2.1.0 <" + c.sender + "> may send")
}

func (c *conversation) to(argument string) error {
	recipient := strings.Trim(strings.TrimPrefix(argument, "TO:"), "<>")
	if !c.utf8 && !isASCII(recipient) {
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
	c.recipient = recipient
	return c.reply("250 2.1.5 <" + recipient + "> may receive")
}

func (c *conversation) data() error {
	if err := c.reply("354 end with a dot"); err != nil {
		return err
	}
	raw, problem, err := c.readData()
	if err != nil {
		return err
	}
	message, err := read(raw, c.utf8)
	if problem == "" && err != nil {
		problem = err.Error()
	}
	if problem != "" {
		return c.reply("554 5.6.0 malformed: " + problem)
	}
	message.Sender, message.Recipient = c.sender, c.recipient
	message.User, message.Encrypted = c.user, c.encrypted
	if handled, err := c.act(c.server.reached(Accept, message)); err != nil || handled {
		return err
	}
	return c.reply("250 2.0.0 message for <" + c.recipient + "> accepted")
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
