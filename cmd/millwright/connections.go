package main

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"millwright/web"
)

// connectionLimits bound the client connections that the API keeps open. Without
// them, idle clients would use up the file descriptors that the database connections
// need, and one client could keep all others out.
type connectionLimits struct {
	total int
	// perNetwork bounds the connections of one client network: an IPv4 address or an
	// IPv6 /64. Trusted proxies, which have the connections of many clients, are
	// exempt.
	perNetwork int
	proxies    []netip.Prefix
}

// limitedListener keeps connections within its limits. At a limit, a new connection
// replaces the one that has been idle longest. If none is idle, a network's own limit
// closes the new connection, and the total one lets it wait.
type limitedListener struct {
	net.Listener
	limits connectionLimits
	mu     sync.Mutex
	// room is signalled when a connection was closed or became idle, and when the
	// listener is closed.
	room   *sync.Cond
	closed bool
	all    connectionGroup
	// networks are the groups of the networks that have connections.
	networks map[string]*connectionGroup
}

// connectionGroup counts open connections and holds those that are idle, longest idle first.
type connectionGroup struct {
	open int
	idle list.List
}

// limitedConn is a connection of a limitedListener.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	network  string // "" for a trusted proxy
	// idle are its places in the groups, nil while it serves a call.
	idle   []idlePlace
	closed bool
}

type idlePlace struct {
	group   *connectionGroup
	element *list.Element
}

// limitConnections returns a listener that keeps connections within the limits. The
// server must report its connections' states to setState.
func limitConnections(listener net.Listener, limits connectionLimits) *limitedListener {
	l := &limitedListener{Listener: listener, limits: limits, networks: map[string]*connectionGroup{}}
	l.room = sync.NewCond(&l.mu)
	return l
}

// Accept returns the next connection for which there is room.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limited, err := l.admit(conn)
		if err != nil {
			return nil, err
		}
		if limited != nil {
			return limited, nil
		}
	}
}

// admit makes room for a connection. It returns nil if it closed the connection
// because its network has no room.
func (l *limitedListener) admit(conn net.Conn) (*limitedConn, error) {
	c := &limitedConn{Conn: conn, listener: l, network: l.networkOf(conn)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.networks[c.network]; n != nil && n.open >= l.limits.perNetwork && !n.closeOldestIdle() {
		_ = conn.Close()
		return nil, nil //nolint:nilnil // neither a connection nor a failure of the listener
	}
	for l.all.open >= l.limits.total && !l.closed && !l.all.closeOldestIdle() {
		l.room.Wait()
	}
	if l.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if c.network != "" && l.networks[c.network] == nil {
		l.networks[c.network] = &connectionGroup{}
	}
	for _, g := range c.groups() {
		g.open++
	}
	return c, nil
}

// networkOf returns the client network of a connection, "" for a trusted proxy and
// for what is not an IP connection.
func (l *limitedListener) networkOf(conn net.Conn) string {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	at := peer.Addr().Unmap()
	if slices.ContainsFunc(l.limits.proxies, func(p netip.Prefix) bool { return p.Contains(at) }) {
		return ""
	}
	return web.ClientNetwork(at)
}

// setState follows the state of a connection; it is the server's ConnState. A
// connection without its first complete call is idle too.
func (l *limitedListener) setState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*limitedConn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		if c.closed || c.idle != nil {
			return
		}
		for _, g := range c.groups() {
			c.idle = append(c.idle, idlePlace{g, g.idle.PushBack(c)})
		}
		l.room.Signal()
	case http.StateActive, http.StateHijacked, http.StateClosed:
		c.leaveIdle()
	}
}

// Close closes the listener and ends a wait for room.
func (l *limitedListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.room.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Close closes the connection and gives its place to the next one.
func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	c.release()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// closeOldestIdle closes the connection that has been idle longest and reports whether
// there was one. The caller holds the listener's lock.
func (g *connectionGroup) closeOldestIdle() bool {
	oldest := g.idle.Front()
	if oldest == nil {
		return false
	}
	c, _ := oldest.Value.(*limitedConn)
	c.release()
	_ = c.Conn.Close() // its server notices, and closes it again
	return true
}

// groups returns the groups that the connection is counted in.
func (c *limitedConn) groups() []*connectionGroup {
	groups := []*connectionGroup{&c.listener.all}
	if n := c.listener.networks[c.network]; n != nil {
		groups = append(groups, n)
	}
	return groups
}

// release gives up the connection's place, once. The caller holds the listener's lock.
func (c *limitedConn) release() {
	if c.closed {
		return
	}
	c.closed = true
	c.leaveIdle()
	for _, g := range c.groups() {
		g.open--
	}
	if n := c.listener.networks[c.network]; n != nil && n.open == 0 {
		delete(c.listener.networks, c.network)
	}
	c.listener.room.Signal()
}

// leaveIdle removes the connection from the idle ones. The caller holds the listener's lock.
func (c *limitedConn) leaveIdle() {
	for _, place := range c.idle {
		place.group.idle.Remove(place.element)
	}
	c.idle = nil
}
