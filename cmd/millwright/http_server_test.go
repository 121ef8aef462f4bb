package main

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
)

// crowd is a listener that always has another connection.
type crowd struct {
	net.Listener
	closed chan struct{}
}

func (c crowd) Accept() (net.Conn, error) {
	select {
	case <-c.closed:
		return nil, net.ErrClosed
	default:
		conn, _ := net.Pipe()
		return conn, nil
	}
}

func (c crowd) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

func TestConnectionsBeyondTheLimitWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := limitConnections(crowd{closed: make(chan struct{})}, 2)
		var open []net.Conn
		var ended error
		go func() {
			for ended == nil {
				conn, err := listener.Accept()
				if ended = err; err == nil {
					open = append(open, conn)
				}
			}
		}()
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(open) != n {
				t.Errorf("%d connections were accepted, want %d", len(open), n)
			}
		}
		want(2)
		for range 2 { // closing one twice frees one slot
			_ = open[0].Close()
			want(3)
		}
		_ = listener.Close()
		_ = listener.Close()
		synctest.Wait()
		if !errors.Is(ended, net.ErrClosed) {
			t.Errorf("a closed listener says %v", ended)
		}
	})
}
