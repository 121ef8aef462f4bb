package main

import (
	"net"

	"golang.org/x/net/netutil"
)

// limitConnections returns a listener that has at most the number of
// connections open; who comes then waits for one to be closed. Without a limit,
// idle strangers would take the file descriptors that the database needs.
func limitConnections(listener net.Listener, most int) net.Listener {
	return netutil.LimitListener(listener, most)
}
