package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"millwright/api"
	"millwright/service"
)

// Keys of the bench's throwaway databases.
const (
	tokenKeys   = "bench:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	sealingKeys = "bench:MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
)

// stand is the API over HTTP on a database of its own.
type stand struct {
	pool   *pgxpool.Pool
	server *httptest.Server
	client *http.Client
}

// newStand makes a database, brings it to the schema and serves the API on it.
func newStand(ctx context.Context, name string) (*stand, error) {
	database, err := newDatabase(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, err := service.Migrate(ctx, database); err != nil {
		return nil, err
	}
	return serveStand(ctx, database)
}

// newDatabase makes an empty database beside that of DATABASE_URL and returns its URL.
func newDatabase(ctx context.Context, name string) (string, error) {
	base := os.Getenv("DATABASE_URL")
	if base == "" {
		return "", errors.New("DATABASE_URL is not set: run `make bench`")
	}
	admin, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", err
	}
	defer func() { _ = admin.Close(ctx) }()
	name = "bench_" + name
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		if _, err := admin.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

func serveStand(ctx context.Context, database string) (*stand, error) {
	pool, err := service.Connect(ctx, database, "bench")
	if err != nil {
		return nil, err
	}
	tokens, err := service.NewTokenKeys(tokenKeys)
	if err != nil {
		return nil, err
	}
	vault, err := service.NewVault(sealingKeys)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	svc, err := service.New(pool, service.Options{Tokens: tokens, Vault: vault, Issuer: "http://bench.test", Log: quiet, AddressCallsPerMinute: 1 << 30})
	if err != nil {
		return nil, err
	}
	if _, err := svc.Import(ctx, []byte(benchOrganization)); err != nil {
		return nil, err
	}
	handler, err := api.New(svc, api.Options{PublicURL: "http://bench.test", Version: "bench", Log: quiet})
	if err != nil {
		return nil, err
	}
	server := httptest.NewServer(handler)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return &stand{pool: pool, server: server, client: &http.Client{Transport: transport}}, nil
}

func (s *stand) close() {
	s.server.Close()
	s.pool.Close()
}

// token gets an access token of an integration of the bench's organization.
func (s *stand) token(ctx context.Context, client string) (string, error) {
	return fetchToken(ctx, s.client, s.server.URL, client)
}

// fetchToken gets an access token from the API at the URL.
func fetchToken(ctx context.Context, client *http.Client, base, clientID string) (string, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {"secret-of-" + clientID + "-in-the-bench"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	body, err := do(client, r, http.StatusOK)
	if err != nil {
		return "", err
	}
	err = json.Unmarshal(body, &answer)
	return answer.AccessToken, err
}

// get makes a call and returns the body of its 200.
func (s *stand) get(ctx context.Context, token, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL+"/v1"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return do(s.client, r, http.StatusOK)
}

func do(client *http.Client, r *http.Request, want int) ([]byte, error) {
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("%s %s answers %d: %s", r.Method, r.URL.Path, answer.StatusCode, body)
	}
	return body, err
}

// latencies runs the call n times after some to warm up and returns p50 and p99 in milliseconds.
func latencies(n int, call func() error) (p50, p99 float64, err error) {
	for range n / 10 {
		if err := call(); err != nil {
			return 0, 0, err
		}
	}
	took := make([]time.Duration, n)
	for i := range took {
		started := time.Now()
		if err := call(); err != nil {
			return 0, 0, err
		}
		took[i] = time.Since(started)
	}
	slices.Sort(took)
	return milliseconds(took[n/2]), milliseconds(took[n*99/100]), nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
