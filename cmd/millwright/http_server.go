package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
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

// listenOn listens on the address of a setting.
func listenOn(ctx context.Context, setting, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: is another program using it?", setting, address)
	}
	return listener, nil
}

// allowHosts rejects requests whose Host is a name other than localhost and those
// given: a web page whose name was made to resolve to this machine (DNS rebinding)
// must not read what next serves. IP addresses are allowed, since no page can take
// one as its name.
func allowHosts(next http.Handler, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.ToLower(strings.TrimSuffix(hostOf(r.Host), "."))
		_, notAddress := netip.ParseAddr(host)
		if notAddress != nil && host != "localhost" && !slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.EqualFold(name, host) }) {
			http.Error(w, "This server does not serve this host name.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address, with or without a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
}
