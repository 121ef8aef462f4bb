package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A rejected request with a large body costs its connection, not the time to read it.
func TestUnreadBodiesCloseTheConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		CloseUnread(w.Header(), r)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	for size, closes := range map[int]bool{0: false, readAnyway: false, readAnyway + 1: true, 255 << 10: true} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		// The body is not sent: who reads it waits for it.
		if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size); err != nil {
			t.Fatal(err)
		}
		if !closes {
			if _, err := conn.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusTooManyRequests || response.Close != closes {
			t.Errorf("%d bytes: status %d, the connection is closed: %v, want %v", size, response.StatusCode, response.Close, closes)
		}
	}
}
