package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queue is a listener whose connections come from a channel.
type queue struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func (q queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q queue) Close() error {
	q.close()
	return nil
}

// remoteConn is a connection from an address.
type remoteConn struct {
	net.Conn
	from   net.Addr
	closed *bool
}

func (c remoteConn) RemoteAddr() net.Addr { return c.from }

func (c remoteConn) Close() error {
	*c.closed = true
	return nil
}

// connections opens connections to a limited listener.
type connections struct {
	*limitedListener
	from     queue
	accepted chan net.Conn
	ended    chan error // has the error after the last connection
	t        *testing.T
}

func newConnections(t *testing.T, limits connectionLimits) connections {
	t.Helper()
	closed := make(chan struct{})
	from := queue{conns: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
	c := connections{limitConnections(from, limits), from, make(chan net.Conn, 100), make(chan error, 1), t}
	go func() {
		for {
			conn, err := c.Accept()
			if err != nil {
				c.ended <- err
				return
			}
			c.setState(conn, http.StateNew)
			c.accepted <- conn
		}
	}()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a connection from an address. It returns nil for the server's side while
// the connection waits for room, or if it was closed.
func (c connections) open(address string) (server net.Conn, closed *bool) {
	c.t.Helper()
	closed = new(bool)
	c.from.conns <- remoteConn{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), closed: closed}
	synctest.Wait()
	return c.next(), closed
}

func (c connections) next() net.Conn {
	select {
	case conn := <-c.accepted:
		return conn
	default:
		return nil
	}
}

func TestANetworkHasItsShareOfTheConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(t, connectionLimits{total: 100, perNetwork: 2, proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
		_, oldest := c.open("[2001:db8::1]:1")
		second, secondClosed := c.open("[2001:db8::2]:1")
		_, elsewhere := c.open("[2001:db8:0:1::1]:1")
		third, _ := c.open("[2001:db8::3]:1")
		if third == nil || !*oldest || *secondClosed || *elsewhere {
			t.Errorf("the third of a network: accepted %t, the oldest closed %t, the second %t, another network's %t", third != nil, *oldest, *secondClosed, *elsewhere)
		}
		c.setState(second, http.StateActive)
		c.setState(third, http.StateActive)
		if conn, closed := c.open("[2001:db8::4]:1"); conn != nil || !*closed {
			t.Errorf("while all serve calls, another one is accepted %t, closed %t", conn != nil, *closed)
		}
		c.setState(second, http.StateIdle)
		c.setState(third, http.StateIdle)
		c.setState(second, http.StateActive)
		if conn, _ := c.open("[2001:db8::5]:1"); conn == nil || *secondClosed {
			t.Errorf("with one idle, another one is accepted %t, the busy one closed %t", conn != nil, *secondClosed)
		}
		for range 5 {
			if conn, _ := c.open("10.1.2.3:4"); conn == nil {
				t.Error("a trusted proxy has a limit")
			}
		}
		if _, closed := c.open("192.0.2.1:1"); *closed {
			t.Error("another address is affected")
		}
		if network := c.networkOf(remoteConn{from: &net.UnixAddr{}}); network != "" {
			t.Errorf("a connection without an IP address has the limit of %s", network)
		}
	})
}

func TestAnIdleConnectionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(t, connectionLimits{total: 2, perNetwork: 100})
		first, firstClosed := c.open("192.0.2.1:1")
		second, secondClosed := c.open("192.0.2.2:1")
		c.setState(first, http.StateActive)
		third, _ := c.open("192.0.2.3:1")
		if third == nil || *firstClosed || !*secondClosed {
			t.Errorf("the third is accepted %t, the busy one closed %t, the idle one %t", third != nil, *firstClosed, *secondClosed)
		}
		_ = second.Close() // the server's own Close frees no second place
		c.setState(third, http.StateActive)
		if conn, closed := c.open("192.0.2.4:1"); conn != nil || *closed {
			t.Errorf("while all serve calls, the next one is accepted %t, closed %t; want it to wait", conn != nil, *closed)
		}
		c.setState(first, http.StateIdle)
		synctest.Wait()
		fourth := c.next()
		if fourth == nil || !*firstClosed {
			t.Errorf("a connection that became idle made room %t, is closed %t", fourth != nil, *firstClosed)
		}
		if c.all.open != 2 || len(c.networks) != 2 {
			t.Errorf("%d connections of %d networks are counted, want 2 of 2", c.all.open, len(c.networks))
		}
		c.setState(fourth, http.StateActive)
		for range 2 { // closing one twice frees one place
			_ = third.Close()
		}
		fifth, _ := c.open("192.0.2.5:1")
		c.setState(fifth, http.StateActive)
		sixth, sixthClosed := c.open("192.0.2.6:1")
		if fifth == nil || sixth != nil || *sixthClosed {
			t.Errorf("the fifth is accepted %t, the sixth %t, closed %t; want it to wait", fifth != nil, sixth != nil, *sixthClosed)
		}
		_ = c.Close()
		synctest.Wait()
		if err := <-c.ended; !errors.Is(err, net.ErrClosed) || !*sixthClosed {
			t.Errorf("a closed listener says %v, the waiting connection is closed: %t", err, *sixthClosed)
		}
	})
}

// Idle sockets keep no one out, with or without a part of a request.
func TestIdleSocketsDoNotFillTheServer(t *testing.T) {
	const limit = 50
	plain, err := listenOn(t.Context(), "MILLWRIGHT_ADDR", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := limitConnections(plain, connectionLimits{total: limit, perNetwork: limit})
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ConnState: listener.setState,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }),
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, server, listener) }()
	var open []net.Conn
	dial := func() net.Conn {
		conn, err := (&net.Dialer{Timeout: 20 * time.Second}).DialContext(t.Context(), "tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		return conn
	}
	for i := range 2 * limit {
		if conn := dial(); i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\n")
		}
	}
	conn := dial()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || line != "HTTP/1.1 200 OK\r\n" {
		t.Errorf("the response is %q: %v", line, err)
	}
	for _, conn := range open { // otherwise the server waits for them for seconds
		_ = conn.Close()
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
