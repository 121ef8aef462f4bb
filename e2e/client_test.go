package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// integrator calls the API as an integration does.
type integrator struct {
	t      testing.TB
	base   string
	node   string
	http   *http.Client
	tokens oauth2.TokenSource
}

// apiResponse is a response that was read completely.
type apiResponse struct {
	status int
	header http.Header
	body   []byte
}

func (h *harness) integrator() *integrator {
	return h.integratorAs(h.org.clientID, h.org.clientSecret)
}

// integratorAs returns the integrator with the client id and secret, at the address
// that clients use.
func (h *harness) integratorAs(clientID, clientSecret string) *integrator {
	base := h.settings["MILLWRIGHT_PUBLIC_URL"] + "/v1"
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	h.t.Cleanup(transport.CloseIdleConnections)
	config := clientcredentials.Config{ClientID: clientID, ClientSecret: clientSecret, TokenURL: base + "/oauth/token"}
	ctx := context.WithValue(h.t.Context(), oauth2.HTTPClient, &http.Client{Transport: transport})
	tokens := config.TokenSource(ctx)
	return &integrator{
		t: h.t, base: base, node: h.org.imported.IDs["ahu1"], tokens: tokens,
		http: &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: transport}},
	}
}

// token returns the current access token; later calls reuse it.
func (i *integrator) token() string {
	i.t.Helper()
	token, err := i.tokens.Token()
	if err != nil {
		i.t.Fatalf("get a token: %v", err)
	}
	return token.AccessToken
}

// call makes one call. key is its Idempotency-Key, if any. It returns an error if no
// response came.
func (i *integrator) call(method, path, key string, body any) (apiResponse, error) {
	request, err := i.request(method, path, key, body)
	if err != nil {
		return apiResponse{}, err
	}
	return i.do(request)
}

// request returns the request of a call.
func (i *integrator) request(method, path, key string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(i.t.Context(), method, i.base+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return request, nil
}

// do makes the call and reads its response.
func (i *integrator) do(request *http.Request) (apiResponse, error) {
	response, err := i.http.Do(request)
	if err != nil {
		return apiResponse{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return apiResponse{response.StatusCode, response.Header, text}, err
}

// post sends a request to create a work order.
func (i *integrator) post(title, key string) (apiResponse, error) {
	return i.call(http.MethodPost, "/work-orders", key, map[string]string{"inventory_id": i.node, "title": title})
}

// create creates a work order and returns its id. Any goroutine may call it.
func (i *integrator) create(title string) string {
	response, err := i.post(title, "")
	if err != nil || response.status != http.StatusCreated {
		i.t.Errorf("create %q: status %d, error %v, body %s", title, response.status, err, response.body)
		return ""
	}
	return idOf(i.t, response.body)
}

// createMany creates n work orders, four at a time, and returns their ids.
func (i *integrator) createMany(n int) []string {
	ids := make([]string, n)
	next := make(chan int)
	var creators sync.WaitGroup
	for range 4 {
		creators.Go(func() {
			for k := range next {
				ids[k] = i.create(fmt.Sprintf("Replace filter %d", k+1))
			}
		})
	}
	for k := range n {
		next <- k
	}
	close(next)
	creators.Wait()
	return ids
}

// want makes a call and fails the test unless it gets the status.
func (i *integrator) want(status int, method, path string, body any) apiResponse {
	i.t.Helper()
	response, err := i.call(method, path, "", body)
	if err != nil || response.status != status {
		i.t.Fatalf("%s %s: status %d, want %d, error %v, body %s", method, path, response.status, status, err, response.body)
	}
	return response
}

func (i *integrator) get(path string) apiResponse {
	i.t.Helper()
	return i.want(http.StatusOK, http.MethodGet, path, nil)
}

// createRecord creates a record with a POST to the path and returns its id.
func (i *integrator) createRecord(path string, body any) string {
	i.t.Helper()
	return idOf(i.t, i.want(http.StatusCreated, http.MethodPost, path, body).body)
}

// createFeedback gives feedback on the node and returns its id.
func (i *integrator) createFeedback() string {
	i.t.Helper()
	return i.createRecord("/issues", object{"inventory_id": i.node, "subject": "It rattles"})
}

// workOrders returns the ids of the work orders on the first page, newest first.
func (i *integrator) workOrders() []string {
	i.t.Helper()
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(i.get("/work-orders").body, &page); err != nil {
		i.t.Fatalf("the list of work orders: %v", err)
	}
	ids := make([]string, len(page.Data))
	for k, record := range page.Data {
		ids[k] = record.ID
	}
	return ids
}

func idOf(t testing.TB, record []byte) string {
	t.Helper()
	var r struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(record, &r); err != nil || r.ID == "" {
		t.Errorf("a record without id (%v): %s", err, record)
	}
	return r.ID
}
