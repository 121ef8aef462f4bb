package mailtest

import (
	"fmt"
	"strings"
)

// Step is a point in a conversation at which the server can misbehave.
type Step string

// The steps of a conversation, in their order.
const (
	// Connect comes before the greeting. A connection that finds the server down
	// is seen here, too.
	Connect   Step = "connect"
	Hello     Step = "EHLO"
	Encrypt   Step = "STARTTLS"
	Auth      Step = "AUTH"
	Sender    Step = "MAIL"
	Recipient Step = "RCPT"
	Data      Step = "DATA" // before the message
	// Accept comes when the server has the message, before it says so. The
	// message is one of Messages even if the server then says nothing, as it
	// would lie in the queue of a real one; only a refusal leaves it out.
	Accept Step = "."
	Quit   Step = "QUIT"
)

// Behaviour is what the server does at a step.
type Behaviour struct {
	kind kind
	code int
	text string
}

type kind int

const (
	normal kind = iota
	answer
	drop
	hang
)

// Answer gives a reply of its own, for instance Answer(421, "4.3.2 going down"),
// in as many lines as text has, and goes on with the conversation.
func Answer(code int, text string) Behaviour { return Behaviour{answer, code, text} }

// Drop closes the connection without an answer.
func Drop() Behaviour { return Behaviour{kind: drop} }

// Hang keeps the connection and says nothing any more, until the client leaves.
func Hang() Behaviour { return Behaviour{kind: hang} }

// At makes the server behave so at every step of the kind until BehaveWell.
func (s *Server) At(step Step, behaviour Behaviour) {
	s.change(func() { s.always[step] = behaviour })
}

// Once makes the server behave so the next time it comes to the step; called
// several times, it lines up. It goes before what At says.
func (s *Server) Once(step Step, behaviour Behaviour) {
	s.change(func() { s.once[step] = append(s.once[step], behaviour) })
}

// Refuse answers a recipient with the code, such as 550 or 451, until BehaveWell;
// code 0 accepts it again. The empty recipient stands for all that are not named.
func (s *Server) Refuse(recipient string, code int) {
	s.change(func() { s.refused[strings.ToLower(recipient)] = code })
}

// Down closes the connections there are, and every new one at once.
func (s *Server) Down() {
	s.change(func() { s.down = true })
	s.hangUp()
}

// Up ends Down, on the same port.
func (s *Server) Up() { s.change(func() { s.down = false }) }

// BehaveWell ends what At, Once and Refuse began.
func (s *Server) BehaveWell() {
	s.change(func() {
		s.always, s.once, s.refused = map[Step]Behaviour{}, map[Step][]Behaviour{}, map[string]int{}
	})
}

// reached counts the step and returns what is to be done at it. Accept keeps
// message, unless it is refused.
func (s *Server) reached(step Step, message *Message) (b Behaviour) {
	s.change(func() {
		s.seen[step]++
		b = s.always[step]
		if queue := s.once[step]; len(queue) > 0 {
			b, s.once[step] = queue[0], queue[1:]
		}
		if message != nil && (b.kind != answer || b.code < 400) {
			s.messages = append(s.messages, *message)
		}
	})
	return b
}

// refusal returns the reply to a recipient that Refuse named, "" to another.
func (s *Server) refusal(recipient string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	code, named := s.refused[strings.ToLower(recipient)]
	if !named {
		code = s.refused[""]
	}
	if code == 0 {
		return ""
	}
	return fmt.Sprintf("%d %d.1.1 <%s>: recipient refused", code, code/100, recipient)
}
