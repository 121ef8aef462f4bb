package main

import (
	"net"
	"sync"
)

// limitConnections returns a listener that has at most the number of
// connections open; who comes then waits for one to be closed. Without a limit,
// idle strangers would take the file descriptors that the database needs.
func limitConnections(listener net.Listener, most int) net.Listener {
	return &limitedListener{Listener: listener, places: make(chan struct{}, most), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placedConn{Conn: conn, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// placedConn gives its place back when it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

func (c *placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
