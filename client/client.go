// Package client calls the API from Go. Its operations and records are generated
// from the OpenAPI document; New adds the tokens.
//
//	api, err := client.New(ctx, "https://api.example.com/v1", clientID, clientSecret)
//	me, err := api.GetMeWithResponse(ctx, nil)
//	if me.JSON200 == nil { … me.ApplicationProblemJSONDefault says why … }
//
// Receivers of webhooks find the payloads here as well: WorkOrderCreatedEvent
// and its like. Package webhook verifies their signatures.
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

// New returns a client of the API at the base address, which includes the
// version: https://…/v1. It gets access tokens with the client id and secret,
// all of the integration's scopes or the ones that are named, and a new one when
// a call answers 401. The context is that of its token requests; its values may
// carry an HTTP client for them (oauth2.HTTPClient).
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

// transport sends an access token with every call. A 401 means that the token is
// no longer valid: the call is made once more with a new one.
type transport struct {
	base   http.RoundTripper
	source func() oauth2.TokenSource

	mu     sync.Mutex
	tokens oauth2.TokenSource // keeps its token until that expires
}

// RoundTrip makes one call.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	tokens := t.current(nil)
	answer, err := t.send(r, tokens)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || r.Body != nil && r.GetBody == nil {
		return answer, err
	}
	again := r.Clone(r.Context())
	if r.Body != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return answer, nil //nolint:nilerr // the answer is worth more than why it cannot be asked for again
		}
	}
	_ = answer.Body.Close()
	return t.send(again, t.current(tokens))
}

// current returns the source of tokens, a new one in place of the one that is spent.
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

// Error returns the problem's code and its sentence for people, so that a
// problem can be returned as an error.
func (p *Problem) Error() string { return string(p.Code) + ": " + p.Detail }
