package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// noDials returns a Dial that fails the test if it is called.
func noDials(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	return func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("%s was dialled", address)
		return nil, errors.New("no dials here")
	}
}

// rebinding resolves a name to a public address the first time and to the hostile
// one from then on.
func rebinding(hostile string) Resolver {
	var lookups atomic.Int32
	return lookupFunc(func(context.Context, string, string) ([]netip.Addr, error) {
		if lookups.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		}
		return []netip.Addr{netip.MustParseAddr(hostile)}, nil
	})
}

func TestPostRejectsHostileIPsAtDialTime(t *testing.T) {
	for _, ip := range hostileIPs {
		t.Run(ip, func(t *testing.T) {
			// A name that resolved to a public address while it was saved.
			resolver := rebinding(ip)
			if err := CheckURL(t.Context(), "https://hooks.example.com/hunter2", Rules{Resolver: resolver}); err != nil {
				t.Fatalf("while it is saved: %v", err)
			}
			client := NewClient(Options{Resolver: resolver, Dial: noDials(t)})
			response, err := client.Post(t.Context(), "https://hooks.example.com/hunter2", nil, nil)
			failed := mustFail(t, err, KindBlockedAddress)
			if strings.Contains(failed.Detail, netip.MustParseAddr(ip).Unmap().String()) {
				t.Errorf("the error about a name contains its IP address: %q", failed.Detail)
			}
			if response.RemoteIP.IsValid() || response.Status != 0 {
				t.Errorf("response %+v", response)
			}
			// The address itself, and at last on the socket.
			_, err = NewClient(Options{Resolver: noLookups{t}, Dial: noDials(t)}).Post(t.Context(), literalURL(ip), nil, nil)
			mustFail(t, err, KindBlockedAddress)
			var blocked *blockedError
			if err := newGuard(nil).control("tcp", net.JoinHostPort(ip, "443"), nil); !errors.As(err, &blocked) {
				t.Errorf("on the socket: %v", err)
			}
		})
	}
}

// The socket's check is the last one: it works even if no other check ran.
func TestGuardedDialChecksTheSocket(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(net.Conn, http.ConnState) { requests.Add(1) }
	server.Start()
	defer server.Close()
	address := server.Listener.Addr().String()

	_, err := guardedDial(newGuard(nil))(t.Context(), "tcp", address)
	var blocked *blockedError
	if !errors.As(err, &blocked) {
		t.Errorf("closed network: %v", err)
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d connections arrived", n)
	}
	conn, err := guardedDial(newGuard(loopback))(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("opened network: %v", err)
	}
	conn.Close()
}

// dialRecorder records the dialled addresses. Dialling one of failing is refused;
// the others connect to server.
type dialRecorder struct {
	server  string
	failing string

	mu      sync.Mutex
	dialled []string
}

func (d *dialRecorder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.dialled = append(d.dialled, address)
	d.mu.Unlock()
	if strings.Contains(d.failing, address) {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return new(net.Dialer).DialContext(ctx, network, d.server)
}

func TestPostDialsWhatItChecked(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	tests := []struct {
		name    string
		ips     resolvesTo
		failing string
		dialled string
		kind    Kind // of the failure, or empty
	}{
		{"one address", resolvesTo{"1.1.1.1"}, "", "1.1.1.1:8080", ""},
		{"a mapped address as IPv4", resolvesTo{"::ffff:1.1.1.1"}, "", "1.1.1.1:8080", ""},
		{"IPv6", resolvesTo{"2606:4700::1"}, "", "[2606:4700::1]:8080", ""},
		{"the first of two", resolvesTo{"1.1.1.1", "8.8.8.8"}, "", "1.1.1.1:8080", ""},
		{"the second if the first refuses the connection", resolvesTo{"1.1.1.1", "8.8.8.8"}, "1.1.1.1:8080", "1.1.1.1:8080 8.8.8.8:8080", ""},
		{"the public one after a private one", resolvesTo{"10.0.0.1", "8.8.8.8", "::1"}, "", "8.8.8.8:8080", ""},
		{"no private one after a public one that refuses the connection", resolvesTo{"1.1.1.1", "127.0.0.1"}, "1.1.1.1:8080", "1.1.1.1:8080", KindConnectionRefused},
		{"at most four", resolvesTo{"1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5"},
			"1.0.0.1:8080 1.0.0.2:8080 1.0.0.3:8080 1.0.0.4:8080", "1.0.0.1:8080 1.0.0.2:8080 1.0.0.3:8080 1.0.0.4:8080", KindConnectionRefused},
		{"none", resolvesTo{"127.0.0.1", "::1"}, "", "", KindBlockedAddress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recorder := &dialRecorder{server: server.Listener.Addr().String(), failing: tt.failing}
			var lookups atomic.Int32
			resolver := lookupFunc(func(ctx context.Context, network, host string) ([]netip.Addr, error) {
				lookups.Add(1)
				return tt.ips.LookupNetIP(ctx, network, host)
			})
			client := NewClient(Options{AllowHTTP: true, Resolver: resolver, Dial: recorder.dial})
			defer client.Close()
			_, err := client.Post(t.Context(), "http://hooks.example.com:8080/", nil, nil)
			if tt.kind != "" {
				mustFail(t, err, tt.kind)
			} else if err != nil {
				t.Error(err)
			}
			if got := strings.Join(recorder.dialled, " "); got != tt.dialled {
				t.Errorf("dialled %q, want %q", got, tt.dialled)
			}
			if n := lookups.Load(); n != 1 {
				t.Errorf("%d lookups for one connection", n)
			}
		})
	}
}

func TestSystemResolverLooksUpCompleteNames(t *testing.T) {
	var names []string
	resolver := systemResolver{lookupFunc(func(_ context.Context, _, host string) ([]netip.Addr, error) {
		names = append(names, host)
		return nil, nil
	})}
	_, _ = resolver.LookupNetIP(t.Context(), "ip", "hooks.example.com")
	_, _ = resolver.LookupNetIP(t.Context(), "ip", "hooks.example.com.")
	if got := strings.Join(names, " "); got != "hooks.example.com. hooks.example.com." {
		t.Errorf("looked up %s", got)
	}
}
