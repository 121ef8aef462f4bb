package main

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
)

func TestHostileClientEndsWithItsInput(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	responded := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request := make([]byte, 4096)
				for {
					if _, err := conn.Read(request); err != nil {
						return
					}
					if _, err := io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"); err != nil {
						return
					}
					select {
					case responded <- struct{}{}:
					default:
					}
				}
			}()
		}
	}()
	job, err := json.Marshal(hostileJob{"next to calls without a token", []*tenant{{Address: listener.Addr().String()}}})
	if err != nil {
		t.Fatal(err)
	}
	input, end := io.Pipe()
	go func() {
		_, _ = end.Write(job)
		<-responded
		<-responded
		end.Close()
	}()
	var printed strings.Builder
	if err := serveHostileClient(t.Context(), input, &printed); err != nil {
		t.Fatal(err)
	}
	if calls := strings.TrimSpace(printed.String()); calls == "" || calls == "0" {
		t.Errorf("it printed %q, want its number of calls", calls)
	}
}

func TestHostileClientRejectsAnUnknownPattern(t *testing.T) {
	if err := serveHostileClient(t.Context(), strings.NewReader(`{"Pattern":"none","Neighbor":{}}`), io.Discard); err == nil {
		t.Error("it did an unknown pattern")
	}
}
