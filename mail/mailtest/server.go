package mailtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Security is the way in which a server offers TLS.
type Security int

// The ways of offering TLS.
const (
	InClear     Security = iota // not at all
	StartTLS                    // by STARTTLS
	ImplicitTLS                 // from the start
)

// Options of a Server. The zero value accepts mail from anyone, unencrypted.
type Options struct {
	Security Security
	// User and Password are required before any mail if they are set.
	User, Password string
	// Mechanisms are the offered AUTH mechanisms; nil means PLAIN and LOGIN, which are
	// the only ones that work.
	Mechanisms []string
	// SMTPUTF8 offers to accept addresses with non-ASCII letters.
	SMTPUTF8 bool
}

// Server is an SMTP server. Its methods are safe for concurrent use.
type Server struct {
	options  Options
	listener net.Listener
	tls      *tls.Config
	roots    *x509.CertPool
	open     sync.WaitGroup // goroutines that Close waits for

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change of the fields below
	messages []Message
	commands []string
	seen     map[Step]int
	always   map[Step]Behavior
	once     map[Step][]Behavior
	rejected map[string]int
	down     bool
	closed   bool
	conns    map[net.Conn]bool
}

// NewServer starts a server and closes it at the end of the test.
func NewServer(t testing.TB, options Options) *Server {
	t.Helper()
	if options.Mechanisms == nil {
		options.Mechanisms = []string{"PLAIN", "LOGIN"}
	}
	web := httptest.NewTLSServer(nil) // for its certificate
	web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		options: options, listener: listener, roots: roots,
		tls:     &tls.Config{MinVersion: tls.VersionTLS12, Certificates: web.TLS.Certificates},
		changed: make(chan struct{}),
		seen:    map[Step]int{}, conns: map[net.Conn]bool{},
	}
	s.BehaveWell()
	s.open.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Close stops the server and closes its connections.
func (s *Server) Close() {
	s.change(func() { s.closed = true })
	s.listener.Close()
	s.hangUp()
	s.open.Wait()
}

// Addr returns the server's host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the server's SMTP_URL, with user and password, and with TLS required if the
// server offers it.
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

// RootCAs returns the authority of the server's certificate, which is valid for 127.0.0.1 and
// mail.example.com.
func (s *Server) RootCAs() *x509.CertPool { return s.roots }

// Messages returns the accepted messages, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Commands returns every command line the server received, oldest first, without
// messages and the lines that follow AUTH.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Seen returns how often all connections together reached the step.
func (s *Server) Seen(step Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[step]
}

// Wait returns nil as soon as condition holds. It checks condition, which may call the
// server's methods, whenever the server's state changes.
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

// change changes the state and notifies Wait.
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
