package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"millwright/telemetry"
	"millwright/worker"
)

// newTemporalClient returns a client that connects when it is first used. It fails
// if a setting is malformed or names an unusable file. o is nil for commands, which
// report no metrics.
func newTemporalClient(s settings, log *slog.Logger, o *observability, dial ...grpc.DialOption) (client.Client, error) {
	encryption, err := s.temporalTLS()
	if err != nil {
		return nil, err
	}
	options := client.Options{
		HostPort:    s.TemporalAddress,
		Namespace:   s.Namespace,
		Logger:      temporallog.NewStructuredLogger(slog.New(telemetry.WithoutPolls(log.Handler()))),
		Credentials: s.temporalCredentials(),
		ConnectionOptions: client.ConnectionOptions{
			// gRPC would also look up its settings under the name, which takes seconds where the name server does not respond
			// to that.
			TLS: encryption, DialOptions: append(dial, grpc.WithDisableServiceConfig()),
			// Requests have a few hundred bytes, and compressing them takes longer than sending them.
			GrpcCompression: &client.GrpcCompressionNone{},
		},
	}
	if err := o.observeTemporal(&options); err != nil {
		return nil, err
	}
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("TEMPORAL_ADDRESS or TEMPORAL_NAMESPACE is malformed: %w", err)
	}
	return c, nil
}

// deployment returns the version as which the worker runs, the zero value without one.
func (s settings) deployment() (worker.Version, error) {
	if (s.Deployment == "") != (s.BuildID == "") {
		return worker.Version{}, errors.New("TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID must be set together")
	}
	return worker.Version{Deployment: s.Deployment, BuildID: s.BuildID}, nil
}

// temporalCredentials returns credentials that read the API key at each call, nil if
// none is set.
func (s settings) temporalCredentials() client.Credentials {
	if s.TemporalAPIKey == "" {
		return nil
	}
	return client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) {
		return lookup("TEMPORAL_API_KEY")
	})
}

// temporalTLS returns the TLS configuration for Temporal, nil for a plain connection.
func (s settings) temporalTLS() (*tls.Config, error) {
	if !s.TemporalTLS && s.TemporalAPIKey == "" && s.TemporalCA == "" && s.TemporalName == "" && s.TemporalCert == "" && s.TemporalKey == "" {
		return nil, nil //nolint:nilnil // no encryption is a choice
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.TemporalName}
	if s.TemporalCA != "" {
		text, err := os.ReadFile(s.TemporalCA)
		if err != nil {
			return nil, fmt.Errorf("TEMPORAL_TLS_SERVER_CA_CERT_PATH names a file that cannot be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("TEMPORAL_TLS_SERVER_CA_CERT_PATH: there is no PEM certificate in %s", s.TemporalCA)
		}
	}
	if (s.TemporalCert == "") != (s.TemporalKey == "") {
		return nil, errors.New("TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH must be set together")
	}
	if s.TemporalCert != "" {
		if _, err := s.temporalCertificate(nil); err != nil {
			return nil, err
		}
		config.GetClientCertificate = s.temporalCertificate
	}
	return config, nil
}

// temporalCertificate reads the client's certificate at each connection, so it can be
// renewed without a restart.
func (s settings) temporalCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(s.TemporalCert, s.TemporalKey)
	if err != nil {
		return nil, fmt.Errorf("TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH name no pair of PEM files: %w", err)
	}
	return &pair, nil
}
