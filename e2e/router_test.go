package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// router is the address of several cells. It forwards each call to the cell that its
// client id names (docs/scaling.md, Cells).
type router struct {
	cells map[string]*httputil.ReverseProxy
	// fallback is the cell of calls without a client id: every cell has their response.
	fallback string
}

// add adds a cell, whose api listens on the address.
func (r *router) add(t testing.TB, cell, address string) {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	r.cells[cell] = &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: address})
			p.SetXForwarded()
			p.Out.Host = p.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "The service is temporarily unavailable.", http.StatusServiceUnavailable)
		},
	}
}

func (r *router) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	cell := r.cells[cellOf(clientOf(request))]
	if cell == nil {
		cell = r.cells[r.fallback]
	}
	cell.ServeHTTP(w, request)
}

// cellOf returns the cell in a client id, "" if it names none.
func cellOf(clientID string) string {
	parts := strings.Split(clientID, "_")
	if len(parts) != 3 || parts[0] != "cli" {
		return ""
	}
	return parts[1]
}

// clientOf returns the client id of a call: from its token, HTTP Basic, or its form.
// It does not verify it: the cell does, and knows only its own secrets and keys, so a
// forged id gets 401 from the wrong cell.
func clientOf(request *http.Request) string {
	if token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer "); ok {
		return clientOfToken(token)
	}
	if id, _, ok := request.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id)
		return id
	}
	if !strings.HasPrefix(request.URL.Path, "/v1/oauth/") {
		return ""
	}
	const maxForm = 16 << 10
	form, err := io.ReadAll(io.LimitReader(request.Body, maxForm))
	rest := request.Body
	request.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(form), rest), rest}
	if err != nil {
		return ""
	}
	values, _ := url.ParseQuery(string(form))
	return values.Get("client_id")
}

// clientOfToken returns the client id in an access token.
func clientOfToken(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		ClientID string `json:"client_id"`
	}
	_ = json.Unmarshal(payload, &claims) // without a client id any cell rejects it
	return claims.ClientID
}
