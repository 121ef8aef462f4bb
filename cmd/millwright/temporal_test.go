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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	a.file = a.issue("authority", 1)
	return a
}

// issue creates a certificate, the authority's own the first time, and returns the file with it and its key.
func (a *authority) issue(name string, serial int64) (file string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if a.certificate == nil {
		certificate.IsCA, certificate.BasicConstraintsValid, certificate.KeyUsage = true, true, x509.KeyUsageCertSign
		a.certificate, a.key = certificate, key
	}
	public, err := x509.CreateCertificate(rand.Reader, certificate, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return writeFile(a.t, string(slices.Concat(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))))
}

// frontend is the part of Temporal's frontend that a client calls first, over TLS.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	address string

	mu sync.Mutex
	// authorizations are the calls' headers.
	authorizations []string
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
	file := a.issue("temporal.example.com", 2)
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clients, ClientCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.ClientCAs.AppendCertsFromPEM(authority)
	f := &frontend{}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)),
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

// dial returns a client of these settings, and its log.
func (f *frontend) dial(t *testing.T, s settings) (client.Client, *bytes.Buffer, error) {
	t.Helper()
	var written bytes.Buffer
	s.TemporalAddress, s.Namespace = f.address, "default"
	c, err := newTemporalClient(s, slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, &written, err
}

// reach checks the frontend's health with a client of these settings and returns the client's log.
func (f *frontend) reach(t *testing.T, s settings) (log string, err error) {
	t.Helper()
	c, written, err := f.dial(t, s)
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = c.CheckHealth(ctx, &client.CheckHealthRequest{})
	}
	return written.String(), err
}

func TestTemporalIsReachedOverTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	f := newFrontend(t, ours, tls.RequireAndVerifyClientCert)
	own, strange := ours.issue("worker", 7), theirs.issue("worker", 8)
	good := settings{TemporalCA: ours.file, TemporalName: "temporal.example.com", TemporalCert: own, TemporalKey: own}
	if _, err := f.reach(t, good); err != nil {
		t.Fatalf("a client with the right files: %v", err)
	}
	for _, tt := range []struct {
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
		{"another authority's client", func(s *settings) { s.TemporalCert, s.TemporalKey = strange, strange }, "failed reaching server"},
		{"a file that is not there", func(s *settings) { s.TemporalCA = "/no/such.pem" }, "TEMPORAL_TLS_SERVER_CA_CERT_PATH names a file that cannot be read"},
		{"a file without a certificate", func(s *settings) { s.TemporalCA = writeFile(t, "x") }, "TEMPORAL_TLS_SERVER_CA_CERT_PATH: there is no PEM certificate in"},
		{"a key of another certificate", func(s *settings) { s.TemporalKey = strange }, "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH name no pair"},
		{"a certificate without its key", func(s *settings) { s.TemporalKey = "" }, "must be set together"},
	} {
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
	file := a.issue("worker", 7)
	config, err := settings{TemporalCert: file, TemporalKey: file}.temporalTLS()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(a.issue("worker", 9), file); err != nil {
		t.Fatal(err)
	}
	// TLS calls it for each connection.
	if pair, err := config.GetClientCertificate(nil); err != nil || pair.Leaf.SerialNumber.Int64() != 9 {
		t.Errorf("the next connection has %+v (%v), want the renewed certificate", pair, err)
	}
}

func TestTheAPIKeyIsSentAndNeverLogged(t *testing.T) {
	a := newAuthority(t)
	f := newFrontend(t, a, tls.NoClientCert)
	file := writeFile(t, "first-key\n")
	t.Setenv("TEMPORAL_API_KEY_FILE", file)
	c, written, err := f.dial(t, settings{TemporalAPIKey: "first-key", TemporalCA: a.file, TemporalName: "temporal.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"first-key", "second-key"} {
		if err := os.Rename(writeFile(t, key+"\n"), file); err != nil {
			t.Fatal(err)
		}
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
	var dialed, otherQuestion atomic.Value
	go respondWithAddresses(server, &otherQuestion)
	dial := grpc.WithContextDialer(func(_ context.Context, address string) (net.Conn, error) {
		dialed.Store(address)
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
	if address := dialed.Load(); address != "192.0.2.1:7233" {
		t.Errorf("dialed within five seconds: %v", address)
	}
	if question := otherQuestion.Load(); question != nil {
		t.Errorf("the name was looked up for %v", question)
	}
}

// respondWithAddresses is a name server that responds to queries for addresses alone, and keeps another
// question: each name has 192.0.2.1.
func respondWithAddresses(server net.PacketConn, otherQuestion *atomic.Value) {
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
		response := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true}, Questions: query.Questions}
		switch question.Type {
		case dnsmessage.TypeA:
			response.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
			}}
		case dnsmessage.TypeAAAA: // none
		default:
			otherQuestion.Store(question.Type)
			continue
		}
		if sent, err := response.Pack(); err == nil {
			_, _ = server.WriteTo(sent, from)
		}
	}
}
