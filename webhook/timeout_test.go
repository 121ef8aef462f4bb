package webhook

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run on a synthetic clock and in-memory connections, so that the
// limits hold to the nanosecond and take no time.

// pipeTo returns a Dial that connects to serve.
func pipeTo(serve func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
}

func readRequest(conn net.Conn) (*http.Request, string, error) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(r.Body)
	return r, string(body), err
}

// drip writes text again and again, once a second, until the connection ends.
func drip(conn net.Conn, text string) {
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		if _, err := io.WriteString(conn, text); err != nil {
			tick.Stop()
			return
		}
	}
}

// sip reads a byte a second until the connection ends.
func sip(conn net.Conn) {
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			tick.Stop()
			return
		}
	}
}

// silentDNS answers no lookup.
var silentDNS = lookupFunc(func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
})

// waitForEnd returns when the client gave the connection up.
func waitForEnd(conn net.Conn) { io.Copy(io.Discard, conn) }

func TestAttemptEndsAfterTenSeconds(t *testing.T) {
	untilDone := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	afterRequest := func(then func(net.Conn)) func(context.Context, string, string) (net.Conn, error) {
		return pipeTo(func(conn net.Conn) {
			readRequest(conn)
			then(conn)
		})
	}
	const connecting, answering = "No connection could be made within 10 seconds.", "No response came within 10 seconds."
	tests := []struct {
		name   string
		scheme string
		dial   func(context.Context, string, string) (net.Conn, error)
		detail string
	}{
		{"connecting hangs", "http", untilDone, connecting},
		{"TLS handshake hangs", "https", pipeTo(waitForEnd), connecting},
		{"the request is read a byte a second", "http", pipeTo(sip), answering},
		{"no answer", "http", afterRequest(waitForEnd), answering},
		{"half an answer", "http", afterRequest(func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
			waitForEnd(conn)
		}), answering},
		{"headers drip", "http", afterRequest(func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			drip(conn, "X-Slow: 1\r\n")
		}), answering},
		{"interim answers drip", "http", afterRequest(func(conn net.Conn) {
			drip(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
		}), answering},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := NewClient(Options{AllowHTTP: true, Resolver: answers{"93.184.215.14"}, Dial: tt.dial})
				defer client.Close()
				start := time.Now()
				answer, err := client.Post(t.Context(), tt.scheme+"://hooks.example.com/", nil, []byte("{}"))
				if took := time.Since(start); took != 10*time.Second || answer.Latency != took {
					t.Errorf("took %v, latency %v", took, answer.Latency)
				}
				if failed := mustFail(t, err, KindTimeout); failed.Detail != tt.detail {
					t.Errorf("detail %q, want %q", failed.Detail, tt.detail)
				}
				<-time.After(time.Second) // the server's last tick
			})
		})
	}

	t.Run("lookup hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := NewClient(Options{Resolver: silentDNS}).Post(t.Context(), "https://hooks.example.com/", nil, nil)
			mustFail(t, err, KindTimeout)
			if took := time.Since(start); took != 10*time.Second {
				t.Errorf("took %v", took)
			}
			<-time.After(dialGrace) // the lookup outlives the attempt
		})
	})
	t.Run("lookup hangs when an address is saved", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			mustRefuse(t, CheckURL(t.Context(), "https://hooks.example.com/", Rules{Resolver: silentDNS}))
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("the limit is a setting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := NewClient(Options{Timeout: 1500 * time.Millisecond, AllowHTTP: true, Resolver: answers{"93.184.215.14"}, Dial: pipeTo(waitForEnd)})
			defer client.Close()
			_, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
			if failed := mustFail(t, err, KindTimeout); failed.Detail != "No response came within 1.5 seconds." {
				t.Errorf("detail %q", failed.Detail)
			}
		})
	})
}

func TestAnswerJustInTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := NewClient(Options{AllowHTTP: true, Resolver: answers{"93.184.215.14"}, Dial: pipeTo(func(conn net.Conn) {
			readRequest(conn)
			<-time.After(10*time.Second - 1)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			<-time.After(time.Second)
			io.WriteString(conn, "ok")
			waitForEnd(conn)
		})})
		defer client.Close()
		answer, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if err != nil || answer.Status != 200 || string(answer.Body) != "ok" {
			t.Errorf("status %d, body %q, error %v", answer.Status, answer.Body, err)
		}
		if answer.Latency != 10*time.Second-1 {
			t.Errorf("latency %v", answer.Latency)
		}
	})
}

// A body that does not end costs two seconds and changes nothing.
func TestHangingBodyIsCut(t *testing.T) {
	tests := []struct {
		name  string
		serve func(net.Conn)
		body  string
	}{
		{"nothing of it comes", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			waitForEnd(conn)
		}, ""},
		{"a part comes", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
			waitForEnd(conn)
		}, "part"},
		{"it drips", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			<-time.After(time.Millisecond)
			drip(conn, "drop ")
		}, "drop drop "},
		{"it hangs behind what is kept", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", 5000))
			waitForEnd(conn)
		}, strings.Repeat("x", 4096)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := NewClient(Options{AllowHTTP: true, Resolver: answers{"93.184.215.14"}, Dial: pipeTo(func(conn net.Conn) {
					readRequest(conn)
					tt.serve(conn)
				})})
				defer client.Close()
				start := time.Now()
				answer, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("took %v", took)
				}
				if err != nil || answer.Status != 200 || string(answer.Body) != tt.body {
					t.Errorf("status %d, %d bytes of body, error %v", answer.Status, len(answer.Body), err)
				}
				<-time.After(time.Second) // the server's last tick
			})
		})
	}
}

// After 101 the body is the connection, which no context ends.
func TestSwitchOfProtocolsIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := NewClient(Options{AllowHTTP: true, Resolver: answers{"93.184.215.14"}, Dial: pipeTo(func(conn net.Conn) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			waitForEnd(conn)
		})})
		defer client.Close()
		start := time.Now()
		answer, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if err != nil || answer.Status != 101 || time.Since(start) != 0 {
			t.Errorf("status %d, error %v after %v", answer.Status, err, time.Since(start))
		}
	})
}

// An address that swallows packets leaves time for the next.
func TestSilentAddressLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answering := pipeTo(func(conn net.Conn) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			waitForEnd(conn)
		})
		client := NewClient(Options{AllowHTTP: true, Resolver: answers{"2606:4700::1", "1.1.1.1"}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return answering(ctx, network, address)
		}})
		defer client.Close()
		answer, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if err != nil || answer.Status != 204 || answer.Latency != (10*time.Second+dialGrace)/2 {
			t.Errorf("status %d after %v, error %v", answer.Status, answer.Latency, err)
		}
	})
}

func TestSilentAddressAmongFailingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := NewClient(Options{AllowHTTP: true, Resolver: answers{"2606:4700::1", "1.1.1.1"}, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, syscall.ECONNREFUSED
		}})
		_, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if failed := mustFail(t, err, KindTimeout); failed.Detail != "hooks.example.com did not respond in time." {
			t.Errorf("detail %q", failed.Detail)
		}
	})
}
