package mail

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// These tests use a synthetic clock and in-memory connections: they check the
// limits to the nanosecond and take no time.

// converse replies as a server does, until it receives a line that begins with stop;
// "." is the end of the message. Then it calls then.
func converse(conn net.Conn, stop string, then func(net.Conn)) {
	in := bufio.NewReader(conn)
	replies := map[string]string{
		"EHLO": "250 mail.example.com", "MAIL": "250 yes", "RCPT": "250 yes", "DATA": "354 go on", ".": "250 taken", "QUIT": "221 bye",
	}
	line := ""
	for {
		reply, known := replies[strings.TrimSuffix(line, "\r\n")]
		if len(line) > 4 && !known {
			reply = replies[line[:4]]
		}
		switch {
		case line == "":
			reply = "220 mail.example.com"
		case stop != "" && strings.HasPrefix(line, stop):
			then(conn)
			return
		}
		if reply != "" {
			io.WriteString(conn, reply+"\r\n")
		}
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return
		}
	}
}

// dialTo returns a Dial that connects to serve.
func dialTo(serve func(net.Conn)) dialer {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
}

func silent(conn net.Conn) { io.Copy(io.Discard, conn) }

// drip writes text once a second until the connection ends.
func drip(conn net.Conn, text string) {
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		if _, err := io.WriteString(conn, text); err != nil {
			tick.Stop()
			return
		}
	}
}

// readSlowly reads one byte a second until the connection ends.
func readSlowly(conn net.Conn) {
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			tick.Stop()
			return
		}
	}
}

func TestSendEndsAfterTheTimeout(t *testing.T) {
	silentAt := func(stop string) dialer {
		return dialTo(func(conn net.Conn) { converse(conn, stop, silent) })
	}
	const (
		url           = "smtp://mail.example.com:25"
		greeting      = "The mail server did not greet within 30 seconds. One that speaks TLS from the start needs smtps://."
		late          = "The mail server did not accept the message within 30 seconds."
		mayBeAccepted = "The mail server did not respond within 30 seconds; whether it accepted the message is not known."
	)
	tests := []struct {
		name   string
		url    string
		dial   dialer
		detail string
	}{
		{"connecting", url, func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "The mail server could not be reached within 30 seconds."},
		{"no greeting", url, dialTo(silent), greeting},
		{"TLS from the start", "smtps://mail.example.com:465", dialTo(silent), late},
		{"STARTTLS", url + "?starttls=required", dialTo(func(conn net.Conn) {
			in := bufio.NewReader(conn)
			for _, reply := range []string{"220 hello", "250-hello\r\n250 STARTTLS", "220 go ahead"} {
				io.WriteString(conn, reply+"\r\n")
				_, _ = in.ReadString('\n')
			}
			silent(conn)
		}), late},
		{"greeting arrives a line a second", url, dialTo(func(conn net.Conn) { drip(conn, "220-wait\r\n") }), greeting},
		{"hello", url, silentAt("EHLO"), greeting},
		{"sender", url, silentAt("MAIL"), late},
		{"reply to the sender arrives a line a second", url, dialTo(func(conn net.Conn) {
			converse(conn, "MAIL", func(conn net.Conn) { drip(conn, "250-wait\r\n") })
		}), late},
		{"recipient", url, silentAt("RCPT"), late},
		{"data", url, silentAt("DATA"), late},
		{"the message is read a byte a second", url, dialTo(func(conn net.Conn) {
			converse(conn, "DATA", func(conn net.Conn) {
				io.WriteString(conn, "354 go on\r\n")
				readSlowly(conn)
			})
		}), mayBeAccepted},
		{"after the message", url, silentAt(".\r\n"), mayBeAccepted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newDialingClient(t, tt.dial, func(o *Options) { o.URL = tt.url })
				start := time.Now()
				failed := mustFail(t, client.Send(t.Context(), testMessage()), tt.detail)
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("took %v", took)
				}
				if failed.Permanent || failed.Unwrap() != nil {
					t.Errorf("permanent %v, cause %v", failed.Permanent, failed.Unwrap())
				}
				<-time.After(time.Second) // the server's last tick
			})
		})
	}
}

func TestSlowServerWithinTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newDialingClient(t, dialTo(func(conn net.Conn) {
			<-time.After(59 * time.Second)
			converse(conn, "", nil)
		}), func(o *Options) { o.Timeout = time.Minute })
		if err := client.Send(t.Context(), testMessage()); err != nil {
			t.Error(err)
		}
	})
}

func TestQuitTimeout(t *testing.T) {
	tests := []struct {
		name    string
		stop    string
		waits   time.Duration // how long the server takes for everything else
		goodbye time.Duration
	}{
		{"no response", "QUIT", 0, 2 * time.Second},
		{"QUIT is not read", ".\r\n", 0, 2 * time.Second},
		{"the timeout is close", "QUIT", 29 * time.Second, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newDialingClient(t, dialTo(func(conn net.Conn) {
					<-time.After(tt.waits)
					converse(conn, tt.stop, func(conn net.Conn) {
						if tt.stop == "QUIT" {
							silent(conn)
							return
						}
						io.WriteString(conn, "250 taken\r\n")
						<-time.After(time.Minute)
					})
				}))
				start := time.Now()
				if err := client.Send(t.Context(), testMessage()); err != nil {
					t.Errorf("the message was accepted, but: %v", err)
				}
				if took := time.Since(start); took != tt.waits+tt.goodbye {
					t.Errorf("took %v", took)
				}
				<-time.After(time.Minute) // until the server closes the connection
			})
		})
	}
}

func TestCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newDialingClient(t, dialTo(silent))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		failed := mustFail(t, client.Send(ctx, testMessage()), "Sending was stopped before the mail server accepted the message.")
		if took := time.Since(start); took != 3*time.Second || !errors.Is(failed, context.DeadlineExceeded) {
			t.Errorf("took %v, cause %v", took, failed.Unwrap())
		}
	})
}
