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

// These tests use a synthetic clock and in-memory connections: they check the
// limits to the nanosecond and take no time.

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

// dialing returns a client whose connections the function makes.
func dialing(t *testing.T, dial func(context.Context, string, string) (net.Conn, error)) *Client {
	client := NewClient(Options{AllowHTTP: true, Resolver: resolvesTo{"93.184.215.14"}, Dial: dial})
	t.Cleanup(client.Close)
	return client
}

// responding returns a client to which each request is answered by the function.
func responding(t *testing.T, respond func(net.Conn)) *Client {
	return dialing(t, pipeTo(func(conn net.Conn) {
		readRequest(conn)
		respond(conn)
	}))
}

func readRequest(conn net.Conn) (*http.Request, string, error) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(r.Body)
	return r, string(body), err
}

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

// silentDNS never responds to a lookup.
var silentDNS = lookupFunc(func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
})

// waitForEnd returns when the client closes the connection.
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
	const noConnection, noResponse = "No connection could be made within 10 seconds.", "No response came within 10 seconds."
	tests := []struct {
		name   string
		scheme string
		dial   func(context.Context, string, string) (net.Conn, error)
		detail string
	}{
		{"connecting hangs", "http", untilDone, noConnection},
		{"TLS handshake hangs", "https", pipeTo(waitForEnd), noConnection},
		{"the request is read a byte a second", "http", pipeTo(readSlowly), noResponse},
		{"no response", "http", afterRequest(waitForEnd), noResponse},
		{"incomplete headers", "http", afterRequest(func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
			waitForEnd(conn)
		}), noResponse},
		{"headers arrive one a second", "http", afterRequest(func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			drip(conn, "X-Slow: 1\r\n")
		}), noResponse},
		{"interim responses arrive one a second", "http", afterRequest(func(conn net.Conn) {
			drip(conn, "HTTP/1.1 103 Early Hints\r\n\r\n")
		}), noResponse},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := dialing(t, tt.dial)
				start := time.Now()
				response, err := client.Post(t.Context(), tt.scheme+"://hooks.example.com/", nil, []byte("{}"))
				if took := time.Since(start); took != 10*time.Second || response.Latency != took {
					t.Errorf("took %v, latency %v", took, response.Latency)
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
			mustReject(t, CheckURL(t.Context(), "https://hooks.example.com/", Rules{Resolver: silentDNS}))
			if took := time.Since(start); took != 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("another limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := NewClient(Options{Timeout: 1500 * time.Millisecond, AllowHTTP: true, Resolver: resolvesTo{"93.184.215.14"}, Dial: pipeTo(waitForEnd)})
			defer client.Close()
			_, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
			if failed := mustFail(t, err, KindTimeout); failed.Detail != "No response came within 1.5 seconds." {
				t.Errorf("detail %q", failed.Detail)
			}
		})
	})
}

func TestResponseJustWithinTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := responding(t, func(conn net.Conn) {
			<-time.After(10*time.Second - 1)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			<-time.After(time.Second)
			io.WriteString(conn, "ok")
			waitForEnd(conn)
		})
		response, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if err != nil || response.Status != 200 || string(response.Body) != "ok" {
			t.Errorf("status %d, body %q, error %v", response.Status, response.Body, err)
		}
		if response.Latency != 10*time.Second-1 {
			t.Errorf("latency %v", response.Latency)
		}
	})
}

// A body that does not end is cut after two seconds; the attempt still succeeds.
func TestHangingBodyIsCut(t *testing.T) {
	tests := []struct {
		name  string
		serve func(net.Conn)
		body  string
	}{
		{"nothing arrives", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			waitForEnd(conn)
		}, ""},
		{"a part arrives", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
			waitForEnd(conn)
		}, "part"},
		{"it arrives slowly", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			<-time.After(time.Millisecond)
			drip(conn, "drop ")
		}, "drop drop "},
		{"it hangs after the part that is kept", func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat("x", 5000))
			waitForEnd(conn)
		}, strings.Repeat("x", 4096)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := responding(t, tt.serve)
				start := time.Now()
				response, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("took %v", took)
				}
				if err != nil || response.Status != 200 || string(response.Body) != tt.body {
					t.Errorf("status %d, %d bytes of body, error %v", response.Status, len(response.Body), err)
				}
				<-time.After(time.Second) // the server's last tick
			})
		})
	}
}

// After 101 the body is the connection, which no context ends.
func TestBodyAfterSwitchingProtocolsIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := responding(t, func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			waitForEnd(conn)
		})
		start := time.Now()
		response, err := client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
		if err != nil || response.Status != 101 || time.Since(start) != 0 {
			t.Errorf("status %d, error %v after %v", response.Status, err, time.Since(start))
		}
	})
}

// An IP address that drops packets leaves time for the next one. If that fails, the timeout is what people read.
func TestSilentAddressLeavesTimeForTheNext(t *testing.T) {
	post := func(t *testing.T, next func(context.Context, string, string) (net.Conn, error)) (Response, error) {
		client := NewClient(Options{AllowHTTP: true, Resolver: resolvesTo{"2606:4700::1", "1.1.1.1"}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return next(ctx, network, address)
		}})
		defer client.Close()
		return client.Post(t.Context(), "http://hooks.example.com/", nil, nil)
	}
	synctest.Test(t, func(t *testing.T) {
		response, err := post(t, pipeTo(func(conn net.Conn) {
			readRequest(conn)
			io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			waitForEnd(conn)
		}))
		if err != nil || response.Status != 204 || response.Latency != (10*time.Second+dialGrace)/2 {
			t.Errorf("status %d after %v, error %v", response.Status, response.Latency, err)
		}
		_, err = post(t, func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED })
		if failed := mustFail(t, err, KindTimeout); failed.Detail != "hooks.example.com did not respond in time." {
			t.Errorf("detail %q", failed.Detail)
		}
	})
}
