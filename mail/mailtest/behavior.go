package mailtest

import (
	"fmt"
	"strings"
)

// Step is a point in a conversation at which the server can misbehave.
type Step string

// The steps of a conversation, in order.
const (
	// Connect is before the greeting. Connections to a server that is down count too.
	Connect   Step = "connect"
	Hello     Step = "EHLO"
	Encrypt   Step = "STARTTLS"
	Auth      Step = "AUTH"
	Sender    Step = "MAIL"
	Recipient Step = "RCPT"
	Data      Step = "DATA" // before the message
	// Accept is when the server has received the message, before its reply. The message
	// is added to Messages even if no reply is sent, as a real server would have queued
	// it, but not if the reply rejects it.
	Accept Step = "."
	Quit   Step = "QUIT"
)

// Behavior is how the server misbehaves at a step.
type Behavior struct {
	kind kind
	code int
	text string
}

type kind int

const (
	normal kind = iota
	reply
	drop
	hang
)

// Reply sends another reply, such as Reply(421, "4.3.2 going down"), in as many lines as
// text has, and continues.
func Reply(code int, text string) Behavior { return Behavior{reply, code, text} }

// Drop closes the connection without a reply.
func Drop() Behavior { return Behavior{kind: drop} }

// Hang keeps the connection open and sends nothing until the client closes it.
func Hang() Behavior { return Behavior{kind: hang} }

// At sets the behavior at the step until BehaveWell.
func (s *Server) At(step Step, behavior Behavior) {
	s.change(func() { s.always[step] = behavior })
}

// Once sets the behavior for the next time at the step; it precedes that of At. Several
// calls apply one after the other.
func (s *Server) Once(step Step, behavior Behavior) {
	s.change(func() { s.once[step] = append(s.once[step], behavior) })
}

// Reject makes the server reply with the code, such as 550 or 451, to the recipient until
// BehaveWell; code 0 accepts it again.
func (s *Server) Reject(recipient string, code int) {
	s.change(func() { s.rejected[strings.ToLower(recipient)] = code })
}

// Hang makes the server say nothing to a connection that names the recipient, until BehaveWell.
func (s *Server) Hang(recipient string) { s.Reject(recipient, hanging) }

// hanging is the code of a recipient whose connection hangs.
const hanging = -1

// Down closes all connections, and from then on closes new ones immediately.
func (s *Server) Down() {
	s.change(func() { s.down = true })
	s.hangUp()
}

// Up ends Down, on the same port.
func (s *Server) Up() { s.change(func() { s.down = false }) }

// BehaveWell undoes At, Once and Reject.
func (s *Server) BehaveWell() {
	s.change(func() {
		s.always, s.once, s.rejected = map[Step]Behavior{}, map[Step][]Behavior{}, map[string]int{}
	})
}

// reached counts the step and returns the behavior at it. It stores message, if any,
// unless the behavior rejects it.
func (s *Server) reached(step Step, message *Message) (b Behavior) {
	s.change(func() {
		s.seen[step]++
		b = s.always[step]
		if queue := s.once[step]; len(queue) > 0 {
			b, s.once[step] = queue[0], queue[1:]
		}
		if message != nil && (b.kind != reply || b.code < 400) {
			s.messages = append(s.messages, *message)
		}
	})
	return b
}

// hangs is the reply of a connection that hangs.
const hangs = "hangs"

// rejection returns the reply to a recipient that Reject or Hang named, "" for others.
func (s *Server) rejection(recipient string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch code := s.rejected[strings.ToLower(recipient)]; code {
	case 0:
		return ""
	case hanging:
		return hangs
	default:
		return fmt.Sprintf("%d %d.1.1 <%s>: recipient rejected", code, code/100, recipient)
	}
}
