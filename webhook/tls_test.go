package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestPostOverTLS(t *testing.T) {
	// httptest's certificate is for example.com and 127.0.0.1.
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	tests := []struct {
		name    string
		host    string
		trusted bool
		change  func(*httptest.Server)
		detail  string // of the failure, or empty
	}{
		{"trusted", "example.com", true, nil, ""},
		{"trusted, by IP address", "127.0.0.1", true, nil, ""},
		{"trusted, TLS 1.2", "example.com", true, func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS12 }, ""},
		{"HTTP/2 is offered", "example.com", true, func(s *httptest.Server) { s.EnableHTTP2 = true }, ""},
		{"unknown authority", "example.com", false, nil,
			"The certificate of example.com is not signed by a known authority, or its chain is incomplete."},
		{"another name", "hooks.example.net", true, nil, "The certificate is not valid for hooks.example.net."},
		{"expired", "expired.example.com", true, func(s *httptest.Server) {
			s.TLS.Certificates = []tls.Certificate{expiredCertificate(t, "expired.example.com")}
		}, "The certificate of expired.example.com has expired or is not valid yet."},
		{"TLS 1.1", "example.com", true, func(s *httptest.Server) { s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
			"No TLS connection with example.com could be agreed on; TLS 1.2 or later is needed."},
		{"asks for a client certificate", "example.com", true, func(s *httptest.Server) {
			s.TLS.ClientAuth, s.TLS.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
		}, "No TLS connection with example.com could be agreed on; TLS 1.2 or later is needed."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, r.Proto)
			}))
			server.TLS = &tls.Config{}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			if tt.change != nil {
				tt.change(server)
			}
			server.StartTLS()
			defer server.Close()

			roots := x509.NewCertPool()
			if tt.trusted {
				roots.AddCert(server.Certificate())
			}
			client := newTestClient(t, Options{RootCAs: roots, Resolver: resolvesTo{"127.0.0.1"}})
			response, err := client.Post(t.Context(), "https://"+net.JoinHostPort(tt.host, portOf(server))+"/hunter2", nil, nil)
			if tt.detail != "" {
				if failed := mustFail(t, err, KindTLS); failed.Detail != tt.detail {
					t.Errorf("detail %q, want %q", failed.Detail, tt.detail)
				}
				return
			}
			if err != nil || string(response.Body) != "HTTP/1.1" || !response.RemoteIP.IsLoopback() {
				t.Errorf("body %q from %v, error %v", response.Body, response.RemoteIP, err)
			}
		})
	}

	t.Run("no TLS on the port", func(t *testing.T) {
		client := newTestClient(t, Options{})
		_, err := client.Post(t.Context(), "https://127.0.0.1:"+portOf(plain)+"/", nil, nil)
		if failed := mustFail(t, err, KindTLS); failed.Detail != "127.0.0.1 does not speak TLS on this port." {
			t.Errorf("detail %q", failed.Detail)
		}
	})
}

// expiredCertificate returns a self-signed certificate that expired an hour ago.
func expiredCertificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{name},
		NotBefore:    time.Now().Add(-2 * time.Hour),
		NotAfter:     time.Now().Add(-time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}

func portOf(server *httptest.Server) string {
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	return port
}
