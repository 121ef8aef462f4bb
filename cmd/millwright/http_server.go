package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// shutdownTimeout bounds how long a stopping server finishes the calls in flight.
const shutdownTimeout = 20 * time.Second

// serve runs the server until the context ends, then lets it finish its calls.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	return server.Shutdown(ctx)
}

// limitConnections returns a listener that keeps at most limit connections open;
// further clients wait until one is closed. Without a limit, idle clients would use
// up the file descriptors that the database connections need.
func limitConnections(listener net.Listener, limit int) net.Listener {
	return netutil.LimitListener(listener, limit)
}
