package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"millwright/worker"
)

// authority signs certificates of a test.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// file holds the authority's own certificate.
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.certificate, a.key, a.file = a.make("authority", nil)
	return a
}

// make creates a certificate: the authority's own the first time.
func (a *authority) make(name string, serial *big.Int) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = template, key
	} else {
		template.SerialNumber = serial
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	file := filepath.Join(a.t.TempDir(), name+".pem")
	writePEM(a.t, file, "CERTIFICATE", der)
	return certificate, key, file
}

// issue creates a certificate signed by the authority and returns its files.
func (a *authority) issue(name string, serial int64) (certificate, key string) {
	a.t.Helper()
	_, private, certificate := a.make(name, big.NewInt(serial))
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	key = strings.TrimSuffix(certificate, ".pem") + ".key"
	writePEM(a.t, key, "EC PRIVATE KEY", der)
	return certificate, key
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// frontend is the part of Temporal's frontend that a client calls first, over TLS, for
// clients with a certificate of its authority.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	address string

	mu sync.Mutex
	// authorizations are the calls' headers, serials the serial numbers of the clients' certificates.
	authorizations []string
	serials        []int64
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

// take returns the authorization headers since the previous take.
func (f *frontend) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.authorizations
	f.authorizations = nil
	return taken
}

func newFrontend(t *testing.T, a *authority, clients tls.ClientAuthType) *frontend {
	t.Helper()
	certificate, key := a.issue("temporal.example.com", 2)
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	f := &frontend{}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: clients, ClientCAs: pool, MinVersion: tls.VersionTLS12,
			VerifyConnection: func(state tls.ConnectionState) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, c := range state.PeerCertificates {
					f.serials = append(f.serials, c.SerialNumber.Int64())
				}
				return nil
			},
		})),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			sent, _ := metadata.FromIncomingContext(ctx)
			f.mu.Lock()
			f.authorizations = append(f.authorizations, strings.Join(sent.Get("authorization"), ","))
			f.mu.Unlock()
			return handle(ctx, request)
		}))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	alive := health.NewServer()
	alive.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, alive)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.address = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f
}

// reach checks the frontend's health with a client of these settings and returns the
// client's log.
func (f *frontend) reach(t *testing.T, s settings) (log string, err error) {
	t.Helper()
	var written bytes.Buffer
	s.TemporalAddress, s.Namespace = f.address, "default"
	c, err := newTemporalClient(s, slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		return written.String(), err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return written.String(), err
}

func TestTemporalIsReachedOverTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	f := newFrontend(t, ours, tls.RequireAndVerifyClientCert)
	certificate, key := ours.issue("worker", 7)
	strange, strangeKey := theirs.issue("worker", 8)
	good := settings{
		TemporalCA: ours.file, TemporalName: "temporal.example.com", TemporalCert: certificate, TemporalKey: key,
	}
	if _, err := f.reach(t, good); err != nil {
		t.Fatalf("a client with the right files: %v", err)
	}
	if !slices.Contains(f.serials, 7) {
		t.Errorf("the server saw the certificates %v", f.serials)
	}
	tests := []struct {
		name   string
		change func(*settings)
		says   string
	}{
		{"no TLS", func(s *settings) { *s = settings{} }, "error reading server preface"},
		{"the system's authorities", func(s *settings) { s.TemporalCA = "" }, "certificate signed by unknown authority"},
		{"another authority", func(s *settings) { s.TemporalCA = theirs.file }, "certificate signed by unknown authority"},
		{"another name", func(s *settings) { s.TemporalName = "temporal.example.org" }, "not temporal.example.org"},
		{"no name", func(s *settings) { s.TemporalName = "" }, "127.0.0.1"},
		{"no client certificate", func(s *settings) { s.TemporalCert, s.TemporalKey = "", "" }, "failed reaching server"},
		{"another authority's client", func(s *settings) { s.TemporalCert, s.TemporalKey = strange, strangeKey }, "failed reaching server"},
		{"a file that is not there", func(s *settings) { s.TemporalCA = "/no/such.pem" }, "TEMPORAL_TLS_SERVER_CA_CERT_PATH names a file that cannot be read"},
		{"a file without a certificate", func(s *settings) { s.TemporalCA = key }, "TEMPORAL_TLS_SERVER_CA_CERT_PATH: there is no PEM certificate in"},
		{"a key of another certificate", func(s *settings) { s.TemporalKey = strangeKey }, "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH name no pair"},
		{"a certificate without its key", func(s *settings) { s.TemporalKey = "" }, "must be set together"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := good
			tt.change(&s)
			if _, err := f.reach(t, s); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want %q", err, tt.says)
			}
		})
	}
}

func TestARenewedClientCertificateNeedsNoRestart(t *testing.T) {
	a := newAuthority(t)
	f := newFrontend(t, a, tls.RequireAndVerifyClientCert)
	certificate, key := a.issue("worker", 7)
	s := settings{TemporalCA: a.file, TemporalName: "temporal.example.com", TemporalCert: certificate, TemporalKey: key}
	config, err := s.temporalTLS()
	if err != nil {
		t.Fatal(err)
	}
	renewed, renewedKey := a.issue("worker", 9)
	for from, to := range map[string]string{renewed: certificate, renewedKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	config.NextProtos = []string{"h2"} // as gRPC asks
	conn, err := tls.Dial("tcp", f.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the server's first frame, after it saw the certificate
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.serials, []int64{9}) {
		t.Errorf("the server saw the certificates %v, want the renewed one", f.serials)
	}
}

func TestTheAPIKeyIsSentAndNeverLogged(t *testing.T) {
	a := newAuthority(t)
	f := newFrontend(t, a, tls.NoClientCert)
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-key")
	t.Setenv("TEMPORAL_API_KEY_FILE", file)
	s := settings{TemporalAPIKey: "first-key", TemporalCA: a.file, TemporalName: "temporal.example.com", TemporalAddress: f.address, Namespace: "default"}
	var written bytes.Buffer
	c, err := newTemporalClient(s, slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, key := range []string{"first-key", "second-key"} {
		write(key)
		f.take()
		if _, err := c.CheckHealth(t.Context(), &client.CheckHealthRequest{}); err != nil {
			t.Fatal(err)
		}
		if sent := f.take(); len(sent) == 0 || slices.ContainsFunc(sent, func(s string) bool { return s != "Bearer "+key }) {
			t.Errorf("the calls carry %q, want %s", sent, key)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err = c.CheckHealth(t.Context(), &client.CheckHealthRequest{})
	if err == nil || !strings.Contains(err.Error(), "TEMPORAL_API_KEY_FILE names a file that cannot be read") {
		t.Errorf("without its file: %v", err)
	}
	// A failing connection makes the client log.
	if log, err := f.reach(t, settings{TemporalAPIKey: "second-key"}); err == nil || strings.Contains(err.Error()+log, "second-key") {
		t.Errorf("without the authority: %v\n%s", err, log)
	}
	if strings.Contains(written.String(), "-key") {
		t.Errorf("the key is logged: %s", written.String())
	}
}

func TestAnAPIKeyNeverTravelsInTheClear(t *testing.T) {
	for _, s := range []settings{{TemporalAPIKey: "k"}, {TemporalTLS: true}, {TemporalName: "n"}} {
		if config, err := s.temporalTLS(); err != nil || config == nil || config.InsecureSkipVerify {
			t.Errorf("%+v is reached with %v, %v", s, config, err)
		}
	}
	if config, err := (settings{}).temporalTLS(); err != nil || config != nil {
		t.Errorf("without settings: %v, %v", config, err)
	}
}

func TestTheVersionOfAWorkerHasTwoSettings(t *testing.T) {
	for _, test := range []struct {
		name, build string
		fails       bool
	}{{"", "", false}, {"millwright", "7", false}, {"millwright", "", true}, {"", "7", true}} {
		s := settings{Deployment: test.name, BuildID: test.build}
		version, err := s.deployment()
		if (err != nil) != test.fails || err == nil && version != (worker.Version{Deployment: test.name, BuildID: test.build}) {
			t.Errorf("%q and %q are %+v, %v", test.name, test.build, version, err)
		}
	}
}

// Temporal's name is looked up for its addresses alone: a name server that responds to nothing else delays no start.
func TestTemporalIsFoundByItsAddressesAlone(t *testing.T) {
	t.Parallel()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	asked := make(chan dnsmessage.Type, 100)
	go respondWithAddresses(server, asked)
	dialed := make(chan string, 10)
	dial := grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) {
		select {
		case dialed <- address:
		default:
		}
		return nil, errors.New("no connection")
	})
	temporal, err := newTemporalClient(settings{
		TemporalAddress: "dns://" + server.LocalAddr().String() + "/temporal.test:7233", Namespace: "test",
	}, slog.New(slog.DiscardHandler), nil, dial)
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := temporal.CheckHealth(ctx, nil); err == nil {
		t.Error("Temporal is healthy")
	}
	select {
	case address := <-dialed:
		if address != "192.0.2.1:7233" {
			t.Errorf("dialed %s", address)
		}
	default:
		t.Error("nothing was dialed within five seconds")
	}
	for range len(asked) {
		if kind := <-asked; kind != dnsmessage.TypeA && kind != dnsmessage.TypeAAAA {
			t.Errorf("the name was looked up for %s", kind)
		}
	}
}

// respondWithAddresses is a name server that responds to queries for addresses alone: each name has 192.0.2.1.
func respondWithAddresses(server net.PacketConn, asked chan<- dnsmessage.Type) {
	packet := make([]byte, 1500)
	for {
		n, from, err := server.ReadFrom(packet)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(packet[:n]) != nil || len(query.Questions) != 1 {
			continue
		}
		question := query.Questions[0]
		asked <- question.Type
		response := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true}, Questions: query.Questions}
		switch question.Type {
		case dnsmessage.TypeA:
			response.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
			}}
		case dnsmessage.TypeAAAA: // none
		default:
			continue
		}
		if sent, err := response.Pack(); err == nil {
			_, _ = server.WriteTo(sent, from)
		}
	}
}
