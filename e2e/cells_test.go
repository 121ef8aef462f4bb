package e2e

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
)

// cell is an installation with its own database and Temporal namespace.
type cell struct {
	*harness
	name        string
	receiver    *receiver
	api, worker *process
	integrator  *integrator
}

// newCells starts two installations behind one address, which is their public URL.
func newCells(t *testing.T) (one, two *cell) {
	t.Helper()
	front := &router{cells: map[string]*httputil.ReverseProxy{}, fallback: "one"}
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	newCell := func(name string) *cell {
		c := &cell{name: name, receiver: newReceiver(t)}
		c.harness = newHarness(t, settings{
			"CELL":                  name,
			"MILLWRIGHT_PUBLIC_URL": server.URL,
			"TRUSTED_PROXIES":       "127.0.0.0/8",
		}, c.receiver)
		front.add(t, name, c.settings["MILLWRIGHT_ADDR"])
		c.worker, c.api = c.startWorker(), c.startAPI(nil)
		c.integrator = c.harness.integrator()
		return c
	}
	return newCell("one"), newCell("two")
}

// Cells are installations with separate databases and Temporal namespaces behind one
// address: a call reaches the cell of its client id, no other cell accepts its token,
// and none needs another one (docs/scaling.md, Cells).
func TestCellsBehindOneAddress(t *testing.T) {
	t.Parallel()
	one, two := newCells(t)
	one.ownsWhatItCreates(t, two)
	two.ownsWhatItCreates(t, one)
	for _, c := range []*cell{one, two} {
		c.wantTokens(t, c.org.clientID, c.org.clientSecret, http.StatusOK)
	}
	two.wantTokens(t, one.org.clientID, two.org.clientSecret, http.StatusUnauthorized)
	two.wantTokens(t, "cli_three_01jd8q4v6cf5e8hbbfwj0zq3tk", two.org.clientSecret, http.StatusUnauthorized)
	one.ownsItsTokens(t, two)
	two.diesNextTo(t, one)

	// A service company that exists in one cell cannot work for a customer in another.
	two.importFile(companyFile)
	file := filepath.Join(t.TempDir(), "customer.yaml")
	if err := os.WriteFile(file, []byte(customerFile), 0o600); err != nil {
		t.Fatal(err)
	}
	one.wantError(`service company "polar": there is no other organization with this key`, "import", file)
}

// ownsWhatItCreates checks that a call through the common address ends in the cell's
// database, workflows and receiver, and not in the other cell's.
func (c *cell) ownsWhatItCreates(t *testing.T, other *cell) {
	t.Helper()
	id := c.integrator.create("Replace filter")
	awaitDelivery(t, c.receiver, id)
	c.awaitWorkflow("work-order/"+id, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
	if listed := c.integrator.workOrders(); !slices.Equal(listed, []string{id}) {
		t.Errorf("cell %s lists %v, want %s", c.name, listed, id)
	}
	if response, err := other.integrator.call(http.MethodGet, "/work-orders/"+id, "", nil); err != nil || response.status != http.StatusNotFound {
		t.Errorf("cell %s shows a work order of cell %s: status %d, %v", other.name, c.name, response.status, err)
	}
	if n := other.count(`SELECT count(*) FROM work_orders WHERE id = $1`, id); n != 0 {
		t.Errorf("cell %s has a work order of cell %s", other.name, c.name)
	}
	if _, err := other.temporal.DescribeWorkflowExecution(t.Context(), "work-order/"+id, ""); err == nil {
		t.Errorf("cell %s runs a work order workflow of cell %s", other.name, c.name)
	}
	if other.receiver.missing([]string{id}) == 0 {
		t.Errorf("cell %s sent an event of cell %s", other.name, c.name)
	}
}

// wantTokens requests a token with HTTP Basic and with a form and checks the status.
func (c *cell) wantTokens(t *testing.T, clientID, clientSecret string, status int) {
	t.Helper()
	for name, basic := range map[string]bool{"HTTP Basic": true, "a form": false} {
		form := url.Values{"grant_type": {"client_credentials"}}
		if !basic {
			form.Set("client_id", clientID)
			form.Set("client_secret", clientSecret)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			c.settings["MILLWRIGHT_PUBLIC_URL"]+"/v1/oauth/token", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if basic {
			request.SetBasicAuth(url.QueryEscape(clientID), url.QueryEscape(clientSecret))
		}
		if got := statusOf(t, request); got != status {
			t.Errorf("a token request of %s with %s: status %d, want %d", clientID, name, got, status)
		}
	}
}

// ownsItsTokens checks that the other cell rejects a token of this one, whether it
// comes by mistake or claims to belong there.
func (c *cell) ownsItsTokens(t *testing.T, other *cell) {
	t.Helper()
	token := c.integrator.token()
	parts := strings.Split(token, ".")
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.ReplaceAll(string(claims), c.org.clientID, other.org.clientID)
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(forged))
	front := c.settings["MILLWRIGHT_PUBLIC_URL"]
	wantMe(t, front, token, http.StatusOK)
	wantMe(t, "http://"+other.settings["MILLWRIGHT_ADDR"], token, http.StatusUnauthorized)
	wantMe(t, front, strings.Join(parts, "."), http.StatusUnauthorized)
	wantMe(t, front, "x", http.StatusUnauthorized)
}

// wantMe calls /me at the address with the token and checks the status.
func wantMe(t *testing.T, address, token string, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/me", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if got := statusOf(t, request); got != status {
		t.Errorf("/me at %s: status %d, want %d", address, got, status)
	}
}

// statusOf makes the call on a new connection and returns its status.
func statusOf(t *testing.T, request *http.Request) int {
	t.Helper()
	response, err := directClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// diesNextTo kills the processes of the cell. The other one works as before; calls of
// this one get 503, and it continues where it was once it runs again.
func (c *cell) diesNextTo(t *testing.T, other *cell) {
	t.Helper()
	c.worker.kill()
	pending := c.integrator.create("Accepted before the cell dies")
	c.api.kill()
	id := other.integrator.create("Replace filter next to a dead cell")
	awaitDelivery(t, other.receiver, id)
	response, err := c.integrator.call(http.MethodGet, "/me", "", nil)
	if err != nil || response.status != http.StatusServiceUnavailable || response.header.Get("Retry-After") == "" {
		t.Errorf("a call of the dead cell: status %d, %v", response.status, err)
	}
	c.wantTokens(t, c.org.clientID, c.org.clientSecret, http.StatusServiceUnavailable)

	c.worker, c.api = c.startWorker(), c.startAPI(nil)
	awaitDelivery(t, c.receiver, pending)
}

// companyFile is an organization that is a service company.
const companyFile = `
organization: {key: polar, name: Polar Lifts, plan: {name: basic, api: true, manual_work_orders: false, calls_per_minute: 1000, integrations: 2}}
`

// customerFile makes it a service company of the harness's organization.
const customerFile = `
organization: {key: acme}
permission_definitions: [{key: working, name: Works, applies_below: true, grants: [work_orders.read]}]
service_companies: [{key: polar}]
assignments: [{node: hq, identity: polar, definition: working}]
`
