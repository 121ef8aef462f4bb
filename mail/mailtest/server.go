package mailtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Security is how a server offers TLS.
type Security int

// The ways of offering TLS.
const (
	InClear     Security = iota // not at all
	StartTLS                    // by STARTTLS
	ImplicitTLS                 // from the start
)

// Options of a Server. The zero value takes mail from anyone, in clear.
type Options struct {
	Security Security
	// User and Password, when set, are asked for before any mail is taken.
	User, Password string
	// Mechanisms are the ways of authentication on offer; nil means PLAIN and
	// LOGIN. The server knows no others, but can pretend to.
	Mechanisms []string
	// SMTPUTF8 offers to take addresses with letters beyond ASCII.
	SMTPUTF8 bool
}

// Server is an SMTP server. Its methods may be called at any time by anyone.
type Server struct {
	options  Options
	listener net.Listener
	identity *identity
	open     sync.WaitGroup // what Close waits for

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced by every change to what follows
	messages []Message
	commands []string
	seen     map[Step]int
	always   map[Step]Behaviour
	once     map[Step][]Behaviour
	refused  map[string]int
	down     bool
	closed   bool
	conns    map[net.Conn]bool
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB, options Options) *Server {
	t.Helper()
	s, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server that runs until it is closed.
func Start(options Options) (*Server, error) {
	if options.Mechanisms == nil {
		options.Mechanisms = []string{"PLAIN", "LOGIN"}
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: options, listener: listener, identity: identity,
		changed: make(chan struct{}),
		seen:    map[Step]int{}, conns: map[net.Conn]bool{},
	}
	s.BehaveWell()
	s.open.Go(s.accept)
	return s, nil
}

// Close ends the server and every conversation with it.
func (s *Server) Close() {
	s.change(func() { s.closed = true })
	s.listener.Close()
	s.hangUp()
	s.open.Wait()
}

// Addr returns the server's host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the server as the setting SMTP_URL has it, with user and password
// and with TLS required if it is offered.
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", Host: s.Addr()}
	if s.options.User != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	switch s.options.Security {
	case StartTLS:
		u.RawQuery = "starttls=required"
	case ImplicitTLS:
		u.Scheme = "smtps"
	case InClear:
	}
	return u.String()
}

// RootCAs returns what the server's certificate is to be verified by. It is valid
// for 127.0.0.1, localhost and mail.example.com.
func (s *Server) RootCAs() *x509.CertPool { return s.identity.roots }

// RootPEM returns the same for a file, as SSL_CERT_FILE names one.
func (s *Server) RootPEM() []byte { return slices.Clone(s.identity.rootPEM) }

// Messages returns what the server accepted so far, the oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Commands returns every line that was sent to the server as a command, the
// oldest first: neither the messages nor answers to AUTH, but AUTH itself.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Seen returns how often a step was reached, by all conversations together.
func (s *Server) Seen(step Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[step]
}

// Wait returns nil as soon as condition, which may ask the server, holds. It is
// looked at again whenever something happens at the server.
func (s *Server) Wait(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// WaitForMessages returns all messages as soon as there are n of them.
func (s *Server) WaitForMessages(ctx context.Context, n int) ([]Message, error) {
	err := s.Wait(ctx, func() bool { return len(s.Messages()) >= n })
	messages := s.Messages()
	if err != nil {
		return messages, fmt.Errorf("of %d messages %d came: %w", n, len(messages), err)
	}
	return messages, nil
}

// change makes a change and tells those who wait.
func (s *Server) change(by func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		welcome := false
		s.change(func() {
			if welcome = !s.down && !s.closed; welcome {
				s.conns[conn] = true
			}
		})
		if !welcome {
			conn.Close()
			s.change(func() { s.seen[Connect]++ })
			continue
		}
		s.open.Go(func() {
			s.converse(conn)
			conn.Close()
			s.change(func() { delete(s.conns, conn) })
		})
	}
}

func (s *Server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
}

func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.identity.certificate}}
}
