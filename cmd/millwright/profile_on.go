//go:build profile

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"time"
)

// init serves the process's profiles on MILLWRIGHT_PROFILE_ADDR. Only binaries for
// benchmarks have it.
func init() { //nolint:gochecknoinits // see above
	address := os.Getenv("MILLWRIGHT_PROFILE_ADDR")
	if address == "" {
		return
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "millwright: profiles:", err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index) // the heap, its allocations, goroutines, …
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
}
