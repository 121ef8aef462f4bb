package client

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config oapi-codegen.yaml ../api/openapi.json

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// timeout bounds each call and each token request.
const timeout = 30 * time.Second

// New returns a client of the API at the base URL, which includes the version:
// https://…/v1. It gets access tokens with the client id and secret, for all of the
// integration's scopes or only the given ones, and a new token when a call responds
// with 401. Token requests use the context and its HTTP client, if it has one
// (oauth2.HTTPClient).
func New(ctx context.Context, baseURL, clientID, clientSecret string, scopes ...string) (*ClientWithResponses, error) {
	baseURL = strings.TrimSuffix(baseURL, "/")
	base := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if ctx.Value(oauth2.HTTPClient) == nil {
		ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: base, Timeout: timeout})
	}
	config := &clientcredentials.Config{
		ClientID: clientID, ClientSecret: clientSecret, TokenURL: baseURL + "/oauth/token",
		AuthStyle: oauth2.AuthStyleInHeader, Scopes: scopes,
	}
	authorized := &transport{base: base, source: func() oauth2.TokenSource { return config.TokenSource(ctx) }}
	return NewClientWithResponses(baseURL, WithHTTPClient(&http.Client{Transport: authorized, Timeout: timeout}))
}

// transport sends an access token with every call. After a 401, it retries the call
// once with a new token.
type transport struct {
	base   http.RoundTripper
	source func() oauth2.TokenSource

	mu     sync.Mutex
	tokens oauth2.TokenSource // caches its token until it expires
}

// RoundTrip makes one call.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	tokens := t.current(nil)
	response, err := t.send(r, tokens)
	if err != nil || response.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return response, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return response, nil //nolint:nilerr // the response is more useful than why it cannot be retried
		}
	}
	_ = response.Body.Close()
	return t.send(again, t.current(tokens))
}

// current returns the source of tokens, a new one if the caller's is spent.
func (t *transport) current(spent oauth2.TokenSource) oauth2.TokenSource {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == spent {
		t.tokens = t.source()
	}
	return t.tokens
}

func (t *transport) send(r *http.Request, tokens oauth2.TokenSource) (*http.Response, error) {
	return (&oauth2.Transport{Source: tokens, Base: t.base}).RoundTrip(r)
}

// Error returns the problem's code and detail. It makes *Problem an error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }
